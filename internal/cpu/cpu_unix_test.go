//go:build unix

package cpu_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/cpu"
)

func processTime(t *testing.T) time.Duration {
	t.Helper()
	d, ok := cpu.Time()
	require.True(t, ok)
	return d
}

// burn works until done, 10 seconds at most.
func burn(t *testing.T, work func(), done func() bool) (wall time.Duration) {
	t.Helper()
	began := time.Now()
	for !done() {
		require.Less(t, time.Since(began), 10*time.Second, "CPU time stands still")
		for range 1000 {
			work()
		}
	}
	return time.Since(began)
}

// The kernel's own account of user and system time, read before and after, encloses the sum.
func TestTimeIsUserAndSystem(t *testing.T) {
	usage := func() (user, system time.Duration) {
		var u syscall.Rusage
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
	}
	burn(t, func() { syscall.Getppid() }, func() bool {
		user, system := usage()
		return min(user, system) > 10*time.Millisecond // each would be missed
	})
	user, system := usage()
	got := processTime(t)
	userAfter, systemAfter := usage()
	assert.GreaterOrEqual(t, got, user+system)
	assert.LessOrEqual(t, got, userAfter+systemAfter)
}

// What other threads use counts, since the server runs on them too; also after they have ended.
func TestTimeIsOfAllThreads(t *testing.T) {
	const burnt = 20 * time.Millisecond
	began := processTime(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and no unlock: the thread ends with its goroutine
		for until := time.Now().Add(10 * time.Second); time.Now().Before(until); {
			if now, _ := cpu.Time(); now-began >= burnt {
				return
			}
		}
	}()
	<-done
	assert.GreaterOrEqual(t, processTime(t)-began, burnt)
}
