//go:build !linux

package latency

import "time"

// NewSleeper returns a function that sleeps as time.Sleep does, and a function that does nothing.
func NewSleeper() (sleep func(time.Duration), stop func() error, err error) {
	timer := time.NewTimer(0)
	return func(d time.Duration) {
		if d > 0 {
			timer.Reset(d) // C is empty: every earlier sleep has read it
			<-timer.C
		}
	}, func() error { return nil }, nil
}
