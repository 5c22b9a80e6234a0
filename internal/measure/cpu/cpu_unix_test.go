//go:build unix

package cpu_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/measure/cpu"
)

// The kernel's own account of the user and system time of all threads, read before and after, encloses the sum.
func TestTimeIsUserAndSystem(t *testing.T) {
	usage := func() (user, system time.Duration) {
		var u syscall.Rusage
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
	}
	began := time.Now()
	for user, system := usage(); min(user, system) < 10*time.Millisecond; user, system = usage() { // each would be missed
		require.Less(t, time.Since(began), 10*time.Second, "CPU time stands still")
		for range 1000 {
			syscall.Getppid()
		}
	}
	user, system := usage()
	got, ok := cpu.Time()
	userAfter, systemAfter := usage()
	require.True(t, ok)
	assert.GreaterOrEqual(t, got, user+system)
	assert.LessOrEqual(t, got, userAfter+systemAfter)
}
