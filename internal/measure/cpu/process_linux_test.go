package cpu_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/measure/cpu"
)

// The clock of a process is its CPU time: this one's agrees with its own account, and another one's grows while it
// works, whatever this one does.
func TestTimeOfAProcess(t *testing.T) {
	before, _ := cpu.Time()
	own, ok := cpu.Of(os.Getpid())
	require.True(t, ok)
	after, _ := cpu.Time()
	const tick = 50 * time.Millisecond // for each of a few threads
	require.GreaterOrEqual(t, own, before-tick)
	require.LessOrEqual(t, own, after+tick)

	busy := exec.Command("sh", "-c", "while :; do :; done")
	require.NoError(t, busy.Start())
	used, began := time.Duration(0), time.Now()
	for used < 200*time.Millisecond && time.Since(began) < 20*time.Second {
		<-time.After(time.Millisecond)
		used, ok = cpu.Of(busy.Process.Pid)
		require.True(t, ok)
	}
	require.GreaterOrEqual(t, used, 200*time.Millisecond)
	require.NoError(t, busy.Process.Kill())
	require.Error(t, busy.Wait())
	_, ok = cpu.Of(busy.Process.Pid)
	require.False(t, ok, "it has ended")
}

// A process that waits a hundred times has so many more switches.
func TestSwitches(t *testing.T) {
	before := cpu.Switches(os.Getpid())
	if before == 0 {
		t.Skip("this system does not tell")
	}
	for range 100 {
		<-time.After(100 * time.Microsecond)
	}
	require.GreaterOrEqual(t, cpu.Switches(os.Getpid())-before, int64(50))
	require.Zero(t, cpu.Switches(1<<30), "there is none")
}
