//go:build !linux

package cpu

import "time"

// Of returns false: this system does not tell.
func Of(int) (time.Duration, bool) { return 0, false }

// Switches returns 0: this system does not tell.
func Switches(int) int64 { return 0 }
