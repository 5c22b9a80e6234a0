package cpu

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Of returns the user and system time of another process since its start, and false if nobody may know. The clock of a
// thread that runs is up to a tick of the scheduler late, which is 1 to 10 ms.
func Of(pid int) (time.Duration, bool) {
	var t unix.Timespec
	clock := int32(^pid<<3 | 2) // CPUCLOCK_SCHED of a process, as clock_getcpuclockid(3) makes it
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}

// Switches returns how often threads of a process have stopped running to wait: voluntary context switches so far, of
// threads that live. It returns 0 if nobody may know. It reads a file for each thread, which takes some 0.1 ms.
func Switches(pid int) (n int64) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, name := range files {
		text, _ := os.ReadFile(name)
		_, rest, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:")
		var own int64
		_, _ = fmt.Sscan(rest, &own)
		n += own
	}
	return n
}
