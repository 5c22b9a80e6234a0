//go:build !linux

package latency

import "time"

// Sleeper waits as time.Sleep does. One goroutine at a time may use it.
type Sleeper struct{ timer *time.Timer }

// NewSleeper makes a Sleeper. The caller closes it.
func NewSleeper() (*Sleeper, error) { return &Sleeper{time.NewTimer(0)}, nil }

// Sleep returns when d has passed, at once if d isn't positive.
func (s *Sleeper) Sleep(d time.Duration) {
	if d > 0 {
		s.timer.Reset(d) // nothing of an earlier time is left in C
		<-s.timer.C
	}
}

// Close stops the timer.
func (s *Sleeper) Close() error {
	s.timer.Stop()
	return nil
}
