package workload

import (
	"context"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/measure/loop"
)

// TestAClosedConnectionTellsNothing: net/http gives connections up now and then, and their bytes are then unknown. The
// bytes of those after it are known.
func TestAClosedConnectionTellsNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system does not tell a connection's bytes")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	for reason, least := range map[string]float64{"open": 50, "closed in the warm-up": 0, "closed before it": 50} {
		conn, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		o := &Open{Loop: loop.New(loop.Spec{Rounds: [][]func(context.Context) error{{func(context.Context) error {
			if least == 0 {
				_ = conn.Close()
				return nil
			}
			_, err := conn.Write(make([]byte, 100))
			return err
		}}}, Figures: loop.NewFigures(false)})}
		o.crossed.keep(conn)
		_, err = conn.Write(make([]byte, 100))
		require.NoError(t, err)
		if reason == "closed before it" { // by a start that was tried again
			given, err := net.Dial("tcp", ln.Addr().String())
			require.NoError(t, err)
			require.NoError(t, o.crossed.keep(given).Close())
		}
		require.NoError(t, o.Start(4), reason)
		require.Equal(t, least, o.Least, reason)
	}
}
