package cpu

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		why, text string
		busy      time.Duration
		idle      time.Duration
		cpus      int
	}{
		{"two CPUs: idle and waiting are not busy, guests are part of user",
			"cpu  1 2 4 1000 2000 8 16 32 64 128\ncpu0 1 1 1 1 1 1 1 1 1 1\ncpu1 0 0 0 0 0 0 0 0 0 0\nintr 5\n",
			63 * tick, 3000 * tick, 2},
		{"no file", "", 0, 0, 0},
		{"another system's", "hello\ncpu0 1\n", 0, 0, 0},
		{"too few fields", "cpu 1 2 3\ncpu0 1 2 3\n", 0, 0, 0},
	} {
		t.Run(c.why, func(t *testing.T) {
			busy, idle, cpus := parse([]byte(c.text))
			require.Equal(t, []time.Duration{c.busy, c.idle}, []time.Duration{busy, idle})
			require.Equal(t, c.cpus, cpus)
		})
	}
}

// What this process and its ended children use is not others': a tree that keeps a core busy adds nothing.
func TestOwnTimeIsNotOthers(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("the child is a shell")
	}
	busy, own, cpus := usage()
	require.Positive(t, cpus)
	require.Positive(t, Others()(), "0 would mean that the system does not tell")
	for until := time.Now().Add(100 * time.Millisecond); time.Now().Before(until); {
	}
	require.NoError(t, exec.CommandContext(t.Context(), "sh", "-c",
		"i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done").Run())
	busyNow, ownNow, _ := usage()
	require.Greater(t, ownNow-own, 50*time.Millisecond, "this process and its child")
	if busyNow == busy {
		t.Skip("this system's /proc/stat stands still")
	}
	require.GreaterOrEqual(t, busyNow-busy, (ownNow-own)/2, "is part of what the machine did, which the kernel samples")
}
