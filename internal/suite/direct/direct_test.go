package direct

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacks/connectrpc"
	"github.com/rpcbench/rpcbench/stacks/connectrpc2"
	"github.com/rpcbench/rpcbench/stacks/grpcservehttp"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

// A form is a stack and the same written without it.
type form struct {
	name   string
	stack  rpcbench.Stack
	direct func(tb testing.TB, dial dialFunc, asked []rpcbench.User) create
}

// forms have one of each way to serve and call, by internal/transport/grpcapi, httpapi, connectapi and connectapi2.
// Other stacks differ from one of these in the codec, but for rawtcp, which is the floor.
func forms() []form {
	return []form{
		{"grpcprotobuf", grpcprotobuf.New(), directGRPCProtobuf},
		{"httpjson", httpjson.New(), directHTTPJSON},
		{"grpcservehttp", grpcservehttp.New(), directGRPCServeHTTP},
		{"connectrpc", connectrpc.New(), directConnectRPC},
		{"connectrpc2", connectrpc2.New(), directConnectRPC2},
	}
}

// create creates one of the asked users, by its index, and compares the reply.
type create func(ctx context.Context, i int) error

// dialFunc opens every connection of a direct form's client.
type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// viaStack is the stack's counterpart of a form's direct.
func (f form) viaStack(tb testing.TB, wrap func(net.Conn) net.Conn, asked []rpcbench.User) create {
	tb.Helper()
	fixture := stacktest.Start(tb, f.stack, rpcbench.Config{WrapClient: wrap})
	calls := make([]rpcbench.Call, len(asked))
	for i, u := range asked {
		var err error
		calls[i], err = testkit.As[rpcbench.Users](tb, fixture).PrepareUser(u)
		require.NoError(tb, err)
	}
	return func(ctx context.Context, i int) error { return calls[i](ctx) }
}

// sample returns the users that a round sends.
func sample() []rpcbench.User {
	asked := make([]rpcbench.User, corpus.Round)
	for i := range asked {
		asked[i] = rpcbench.SampleUser(i, 0)
	}
	return asked
}

// inTurn returns an op that creates the users of a sample one after the other, and has made every one often enough that
// connections, pools and caches are what they stay.
func inTurn(tb testing.TB, create create) (op func() error) {
	tb.Helper()
	n := 0
	op = func() error {
		n++
		return create(context.Background(), n%corpus.Round)
	}
	for range 16 * corpus.Round {
		require.NoError(tb, op())
	}
	return op
}

// bare is how both forms dial when they are measured.
func bare() dialFunc { return new(net.Dialer).DialContext }
