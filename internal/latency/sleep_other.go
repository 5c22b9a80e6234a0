//go:build !linux

package latency

import "time"

// NewSleeper returns a function that waits as time.Sleep does, and nothing to stop.
func NewSleeper() (sleep func(time.Duration), stop func() error, err error) {
	timer := time.NewTimer(0)
	return func(d time.Duration) {
		if d > 0 {
			timer.Reset(d) // nothing of an earlier time is left in C
			<-timer.C
		}
	}, func() error { return nil }, nil
}
