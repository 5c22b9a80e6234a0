package cpu_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

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

// Two processes that work share one CPU, and so are switched while they want to go on. Such switches don't count: they
// are those of other programs. The kernel tells the two kinds in lines of their own.
func TestSwitchesAreVoluntary(t *testing.T) {
	var allowed, one unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &allowed))
	for i := range len(allowed) * 64 {
		if allowed.IsSet(i) {
			one.Set(i)
			break
		}
	}
	var pids []int
	for range 2 {
		busy := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
		require.NoError(t, busy.Start())
		defer func() {
			require.NoError(t, busy.Process.Kill())
			require.Error(t, busy.Wait())
		}()
		pids = append(pids, busy.Process.Pid)
		require.NoError(t, unix.SchedSetaffinity(busy.Process.Pid, &one))
	}
	told := func(kind string) (n int64) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pids[0]))
		require.NoError(t, err)
		found := regexp.MustCompile(`(?m)^` + kind + `_ctxt_switches:\t(\d+)$`).FindSubmatch(text)
		if found == nil {
			t.Skip("this system does not tell")
		}
		n, err = strconv.ParseInt(string(found[1]), 10, 64)
		require.NoError(t, err)
		return n
	}
	require.Eventually(t, func() bool { return told("nonvoluntary") > told("voluntary")+2 }, time.Minute, time.Millisecond,
		"two busy processes on one CPU are not switched")
	before := told("voluntary")
	got := cpu.Switches(pids[0])
	require.GreaterOrEqual(t, got, before, "voluntary switches, beside %d others", told("nonvoluntary"))
	require.LessOrEqual(t, got, told("voluntary"), "voluntary switches, beside %d others", told("nonvoluntary"))
}
