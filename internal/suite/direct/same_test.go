package direct

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
	"github.com/rpcbench/rpcbench/internal/suite/wire"
)

// directTapped starts the direct form with its connections wrapped as viaStack wraps the stack's.
func (f form) directTapped(t *testing.T, tap *tap.Tap, asked []rpcbench.User) create {
	t.Helper()
	dial := bare()
	return f.direct(t, func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return tap.Wrap(c), nil
	}, asked)
}

// The direct form sends what the stack sends and is answered the same, header by header and byte by byte.
func TestSameMessages(t *testing.T) {
	asked := append(sample(), rpcbench.SampleUser(0, 1000), rpcbench.SampleUser(1, 100_000))
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			var directTap, stackTap tap.Tap
			direct, stack := f.directTapped(t, &directTap, asked), f.viaStack(t, stackTap.Wrap, asked)
			for i := range asked {
				require.NoError(t, direct(t.Context(), i))
				require.NoError(t, stack(t.Context(), i))
			}
			directRequests, directReplies := lastMessages(t, &directTap, len(asked))
			stackRequests, stackReplies := lastMessages(t, &stackTap, len(asked))
			assert.Equal(t, stackRequests, directRequests)
			assert.Equal(t, stackReplies, directReplies)
		})
	}
}

// lastMessages returns the last n of a tap's one connection: the first of a stack are of its start. The address and the
// time, which can't be the same, are taken out.
func lastMessages(t *testing.T, tap *tap.Tap, n int) (requests, replies []wire.Message) {
	t.Helper()
	conns := tap.Conns()
	require.Len(t, conns, 1)
	requests, replies, err := wire.Read(conns[0].Bytes())
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(requests), n)
	require.Len(t, replies, len(requests))
	requests, replies = requests[len(requests)-n:], replies[len(replies)-n:]
	for i := range n {
		require.NotEmpty(t, requests[i].Header[":authority"])
		delete(requests[i].Header, ":authority")
		delete(replies[i].Header, "Date")
	}
	return requests, replies
}
