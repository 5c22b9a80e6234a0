package fasthttpjson_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/suite/crossed"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
	"github.com/rpcbench/rpcbench/stacks/more/fasthttpjson"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m, fasthttpjson.New()) }

func TestConformance(t *testing.T) { stacktest.Conformance(t, fasthttpjson.New()) }

// TestProtocolIsThatOfHTTPJSON: either client calls the server of the other.
//
// fasthttp's client reads a reply after it has sent the whole request. net/http's server refuses a body that is too
// large before it has read all of it, and resets the connection half a second later. Which of the two comes first
// depends on how much the kernel's buffers hold, so a link holds what the client sends.
func TestProtocolIsThatOfHTTPJSON(t *testing.T) {
	own, other := fasthttpjson.New(), httpjson.New()
	holding := own
	holding.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		dial := config.DialContext
		config.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return tap.Link{}.Shared()(conn), nil
		}
		return own.Dial(config)
	}
	for _, pair := range [][2]rpcbench.Stack{{holding, other}, {other, own}} {
		stack, err := crossed.Of(pair[0], pair[1])
		require.NoError(t, err)
		stacktest.Conformance(t, stack)
	}
}
