package relay

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who sees a connection counted finds what Wrap has recorded of it.
func TestAConnectionIsWrappedBeforeItCounts(t *testing.T) {
	bare, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &Listener{Listener: bare}
	defer l.Close()
	counted := int64(-1)
	l.Wrap = func(c net.Conn) net.Conn {
		counted = l.Accepted.Load()
		return c
	}
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", bare.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	server, err := l.Accept()
	require.NoError(t, err)
	defer server.Close()
	require.Zero(t, counted, "while it is wrapped")
	require.EqualValues(t, 1, l.Accepted.Load())
}
