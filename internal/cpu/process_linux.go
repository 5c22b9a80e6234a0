package cpu

import (
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
