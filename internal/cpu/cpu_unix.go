//go:build unix

// Package cpu tells how much CPU time the process has used.
package cpu

import (
	"syscall"
	"time"
)

// Time returns the user and system time of the whole process since it started: of every thread, so also of the garbage
// collector, and of the server where client and server share the process. It is false where the system doesn't tell.
//
// A call costs about 0.4 µs: read it before and after a loop, not within.
func Time() (time.Duration, bool) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, false
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), true
}
