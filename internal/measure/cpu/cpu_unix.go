//go:build unix

// Package cpu measures the CPU time of this process and of others, their switches, and what other programs use.
package cpu

import (
	"time"

	"golang.org/x/sys/unix"
)

// Time returns the user and system time of the whole process since its start. That includes the garbage collector, and
// the server if client and server share the process. Time returns false if the system does not tell.
//
// A call costs about 0.4 µs: read it before and after a loop, not within.
func Time() (time.Duration, bool) { return used(unix.RUSAGE_SELF) }

func used(who int) (time.Duration, bool) {
	var usage unix.Rusage
	err := unix.Getrusage(who, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), err == nil
}
