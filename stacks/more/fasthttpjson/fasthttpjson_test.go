package fasthttpjson_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/stacks/more/fasthttpjson"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m, fasthttpjson.New()) }

func TestConformance(t *testing.T) { stacktest.Conformance(t, fasthttpjson.New()) }

// TestProtocolIsThatOfHTTPJSON: either client calls the server of the other.
func TestProtocolIsThatOfHTTPJSON(t *testing.T) {
	own, other := fasthttpjson.New(), httpjson.New()
	for _, pair := range [][2]rpcbench.Stack{{own, other}, {other, own}} {
		stack, err := rpcbench.Cross(pair[0], pair[1])
		require.NoError(t, err)
		stacktest.Conformance(t, stack)
	}
}
