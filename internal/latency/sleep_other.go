//go:build !linux

package latency

import "time"

// Sleeper waits as time.Sleep does. One goroutine at a time may use it.
type Sleeper struct{ timer *time.Timer }

// NewSleeper makes a Sleeper, which is to be closed.
func NewSleeper() (*Sleeper, error) {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &Sleeper{t}, nil
}

// Sleep returns when d has passed, at once if d isn't positive.
func (s *Sleeper) Sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	s.timer.Reset(d)
	<-s.timer.C
}

// Close stops the timer.
func (s *Sleeper) Close() error {
	s.timer.Stop()
	return nil
}
