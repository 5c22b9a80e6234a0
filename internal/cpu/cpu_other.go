//go:build !unix

package cpu

import "time"

// Time is not known here.
func Time() (time.Duration, bool) { return 0, false }
