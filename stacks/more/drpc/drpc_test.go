package drpc_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/stacks/more/drpc"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func TestConformance(t *testing.T) { stacktest.Conformance(t, drpc.New()) }

// TestCallAfterOneThatCantBeEncoded: the library's connection would wait for the request of the call before.
func TestCallAfterOneThatCantBeEncoded(t *testing.T) {
	f := stacktest.Start(t, drpc.New(), rpcbench.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range 3 {
		broken := rpcbench.SampleUser(0, 0)
		broken.Name = "in\xffvalid"
		_, err := f.Client.(rpcbench.Users).CreateUser(ctx, broken)
		require.Equal(t, rpcbench.CodeMalformed, rpcbench.CodeOf(err))
		_, err = f.Client.(rpcbench.Users).CreateUser(ctx, rpcbench.SampleUser(1, 0))
		require.NoError(t, err)
	}
}
