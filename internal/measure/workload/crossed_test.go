package workload

import (
	"context"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
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
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		_, err = conn.Write(make([]byte, 100))
		require.NoError(t, err)
		return conn
	}
	const warm, calls = 4, 10
	for _, test := range []struct {
		why                   string
		each                  int // bytes that a call writes
		before, during, fails bool
	}{
		{"open", 100, false, false, false},
		{"a byte is enough", 1, false, false, false},
		{"nothing is too little", 0, false, false, true},
		{"closed meanwhile", 0, false, true, false},
		{"closed before, by a start that was tried again", 0, true, false, true},
	} {
		conn := dial()
		defer conn.Close()
		made := 0
		o := &Open{Fixture: new(rpcbench.Fixture),
			Loop: loop.New(loop.Spec{Rounds: [][]func(context.Context) error{{func(context.Context) error {
				switch made++; {
				case made <= warm:
					_, err := conn.Write(make([]byte, 100))
					return err
				case test.during:
					_ = conn.Close()
					return nil
				}
				_, err := conn.Write(make([]byte, test.each))
				return err
			}}}, Figures: loop.NewFigures(false)})}
		o.crossed.keep(conn)
		if test.before {
			require.NoError(t, o.crossed.keep(dial()).Close())
		}
		require.NoError(t, o.Start(warm), test.why)
		require.NoError(t, o.Loop.Run(t.Context(), calls), test.why)
		if err := o.missed(); test.fails {
			require.ErrorContains(t, err, "10 calls carried 0 bytes", test.why)
		} else {
			require.NoError(t, err, test.why)
		}
	}
}
