//go:build !linux

package cpu

import "time"

// Others returns a function that returns 0: this system does not tell.
func Others() (since func() float64) { return func() float64 { return 0 } }

// Count returns 0: this system does not tell.
func Count() int { return 0 }

// Machine returns 0: this system does not tell.
func Machine() (busy, idle time.Duration) { return 0, 0 }

// Of returns false: this system does not tell.
func Of(int) (time.Duration, bool) { return 0, false }

// Switches returns 0: this system does not tell.
func Switches(int) int64 { return 0 }
