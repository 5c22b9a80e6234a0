//go:build unix

package command

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/testkit"
)

// TestSignalsEnd: a command that has nothing to tidy up ends at the first signal, whatever it waits for.
func TestSignalsEnd(t *testing.T) {
	testkit.Alone(t)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			unread, pipe, err := os.Pipe()
			require.NoError(t, err)
			defer unread.Close()
			defer pipe.Close()
			raw, err := pipe.SyscallConn()
			require.NoError(t, err)
			require.NoError(t, raw.Write(func(fd uintptr) bool { // until the pipe is full
				for err == nil {
					_, err = syscall.Write(int(fd), make([]byte, 1))
				}
				return true
			}))
			require.ErrorIs(t, err, syscall.EAGAIN)
			out := t.TempDir()
			cmd := testkit.Again(t, asMain+"=1", "report", "-out", out, saved(t))
			cmd.Stdout = pipe
			begin(t, cmd, signal, false)
			require.Eventually(t, func() bool {
				_, err := os.Stat(filepath.Join(out, "answer.svg"))
				return err == nil
			}, 10*time.Second, time.Millisecond, "the last file, before it prints")
			require.NoError(t, cmd.Process.Signal(signal))
			finished(t, cmd)
			require.Equal(t, "signal: "+signal.String(), cmd.ProcessState.String())
		})
	}
}
