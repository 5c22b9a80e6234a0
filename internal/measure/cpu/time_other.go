//go:build !unix

package cpu

import "time"

// Time returns false: this system does not tell.
func Time() (time.Duration, bool) { return 0, false }
