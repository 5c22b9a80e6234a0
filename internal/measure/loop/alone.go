package loop

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// OneCaller is the loop of a single caller without a plan, who calls in the goroutine of whoever uses the loop.
type OneCaller struct {
	begun   atomic.Int64
	round   []func(context.Context) error
	next    int           // call of the round
	warmed  time.Duration // the last warm call
	latency *Recorder
	timed   bool          // calls count
	last    time.Time     // when the call before ended
	failed  error         // of a call
	ran     time.Duration // from the beginning of Run until its last call ended
}

// Call makes the next call. It reads the clock once, in about 50 ns, if its latency counts.
func (a *OneCaller) Call() error {
	a.begun.Add(1)
	call := a.round[a.next]
	if a.next++; a.next == len(a.round) {
		a.next = 0
	}
	err := call(context.Background())
	if err != nil {
		a.failed = err
	}
	if a.timed {
		now := time.Now()
		a.latency.Record(now.Sub(a.last))
		a.last = now
	}
	return err
}

// Timed says from when on the calls count, and until when.
func (a *OneCaller) Timed(on bool) { a.timed, a.last = on, time.Now() }

// Start implements [Loop].
func (a *OneCaller) Start(warm int) error {
	for first := time.Now(); warm > 0 && time.Since(first) < warmLimit; warm-- {
		began := time.Now()
		if err := a.Call(); err != nil {
			return fmt.Errorf("warm-up: %w", err)
		}
		a.warmed = time.Since(began)
	}
	return nil
}

// Warmed implements [Loop].
func (a *OneCaller) Warmed() time.Duration { return a.warmed }

// Run implements [Loop].
func (a *OneCaller) Run(ctx context.Context, n int64) error {
	a.Timed(true)
	began := a.last
	for ; n > 0 && ctx.Err() == nil; n-- {
		if err := a.Call(); err != nil {
			return err
		}
	}
	a.ran = a.last.Sub(began)
	a.Timed(false)
	return nil
}

// During implements [Loop].
func (a *OneCaller) During(ctx context.Context, lead, length time.Duration, edge func(open bool)) (
	took time.Duration, err error) {
	if _, err := a.until(ctx, lead); err != nil {
		return 0, err
	}
	edge(true)
	a.Timed(true)
	took, err = a.until(ctx, length)
	a.Timed(false)
	edge(false)
	return took, err
}

// until makes calls until so much time has passed.
func (a *OneCaller) until(ctx context.Context, length time.Duration) (took time.Duration, err error) {
	for began := time.Now(); took < length && err == nil; took = time.Since(began) {
		if err = ctx.Err(); err == nil {
			err = a.Call()
		}
	}
	return took, err
}

// Finish implements [Loop]. Nothing of this caller is running between calls.
func (a *OneCaller) Finish() error { return a.failed }

// Begun implements [Loop].
func (a *OneCaller) Begun() int64 { return a.begun.Load() }

// InFlight implements [Loop].
func (a *OneCaller) InFlight() float64 { return float64(a.latency.Sum()) / float64(a.ran) }
