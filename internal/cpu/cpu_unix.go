//go:build unix

// Package cpu measures the CPU time of the process.
package cpu

import (
	"syscall"
	"time"
)

// Time returns the user and system time of the whole process since its start. That includes the garbage collector, and
// the server if client and server share the process. Time returns false if the system does not tell.
//
// A call costs about 0.4 µs: read it before and after a loop, not within.
func Time() (time.Duration, bool) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, false
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), true
}
