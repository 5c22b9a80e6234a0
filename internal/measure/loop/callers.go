package loop

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// callers is the loop of several callers, or of planned starts. Each caller has a goroutine.
type callers struct {
	spec    Spec
	begun   atomic.Int64
	running sync.WaitGroup
	failed  atomic.Pointer[error]

	begins []time.Duration // of callers without a plan; nil: all begin at once
	warmed []time.Duration // the last warm call of each caller
	under  atomic.Int64    // planned calls under way
	began  time.Time       // other times count from here
	limit  atomic.Int64    // the value of begun at which callers end
	starts gate            // opening it ends the callers' wait after the warm-up
	over   gate            // opening it ends their waits for planned starts

	mu       sync.Mutex    // guards what follows, and the figures
	from, to time.Duration // the window
	ended    time.Duration // end of the last call that counts
}

// gate is what goroutines wait at until it is opened, which may be done more than once.
type gate struct {
	passed chan struct{}
	open   func()
}

func newGate() gate {
	passed := make(chan struct{})
	return gate{passed, sync.OnceFunc(func() { close(passed) })}
}

// Start implements [Loop].
func (c *callers) Start(warm int) error {
	c.starts, c.over = newGate(), newGate()
	c.from, c.to = math.MaxInt64, math.MaxInt64
	c.limit.Store(math.MaxInt64)
	var cold sync.WaitGroup
	cold.Add(len(c.spec.Rounds))
	for i := range c.spec.Rounds {
		c.running.Go(func() {
			warmed := sync.OnceFunc(cold.Done)
			defer warmed()
			defer func() {
				if p := recover(); p != nil { // a panic would end the process without naming the stack
					c.fail(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
				}
			}()
			c.caller(i, warm, warmed)
		})
	}
	cold.Wait()
	if c.failure() != nil {
		return c.Finish()
	}
	return nil
}

// Run implements [Loop].
func (c *callers) Run(ctx context.Context, n int64) error {
	c.began, c.from = time.Now(), 0
	if c.spec.Plan == nil {
		c.limit.Store(c.begun.Load() + n)
	}
	defer context.AfterFunc(ctx, c.stop)()
	c.starts.open()
	c.running.Wait()
	return c.Finish()
}

// During implements [Loop].
func (c *callers) During(ctx context.Context, lead, length time.Duration, edge func(open bool)) (time.Duration, error) {
	c.began = time.Now()
	c.starts.open()
	err := c.last(ctx, lead)
	if err == nil {
		edge(true)
		c.set(&c.from)
		err = c.last(ctx, length)
		c.set(&c.to)
		edge(false)
	}
	if broken := c.Finish(); broken != nil {
		return 0, broken
	}
	for _, plan := range c.spec.Plan {
		for _, due := range plan {
			if c.from <= due && due <= c.to {
				c.spec.Figures.Planned++
			}
		}
	}
	return c.to - c.from, err
}

// set sets an edge of the window to the present. What ended before is recorded by then, or will be left out.
func (c *callers) set(edge *time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*edge = time.Since(c.began)
}

// last returns after a while, or when a call has failed, which Finish tells.
func (c *callers) last(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.over.passed:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Finish implements [Loop].
func (c *callers) Finish() error {
	if c.starts.open != nil {
		c.stop()
		c.starts.open()
	}
	c.running.Wait()
	return c.failure()
}

// warm makes the calls of one caller that don't count, and tells whether none failed.
func (c *callers) warm(i, calls int) bool {
	first := time.Now()
	for j := 0; j < calls && time.Since(first) < warmLimit; j++ {
		c.begun.Add(1)
		began := time.Now()
		if err := c.spec.Rounds[i][j%len(c.spec.Rounds[i])](context.Background()); err != nil {
			c.fail(fmt.Errorf("warm-up: %w", err))
			return false
		}
		c.warmed[i] = time.Since(began)
	}
	return true
}

// caller makes the calls of one caller.
func (c *callers) caller(i, warm int, warmed func()) {
	round, plan := c.spec.Rounds[i], []time.Duration(nil)
	if !c.warm(i, warm) {
		return
	}
	warmed()
	<-c.starts.passed
	if c.spec.Plan != nil {
		plan = c.spec.Plan[i]
	}
	var batch [64]ended // recorded together, to lock once for 64 calls
	filled := 0
	defer func() { c.record(batch[:filled]) }()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	if c.begins != nil {
		c.wait(timer, c.begins[i])
	}
	for j, now := 0, time.Since(c.began); c.limit.Load() > 0; j++ {
		due := now
		if c.spec.Plan != nil {
			if j == len(plan) {
				return
			}
			due = plan[j]
			if due > now {
				c.wait(timer, due-now)
				now = time.Since(c.began)
			}
		}
		one := &batch[filled]
		one.late, one.skipped = now-due, now-due > tooLate && !c.spec.Patient
		if !one.skipped {
			if c.begun.Add(1) > c.limit.Load() {
				c.begun.Add(-1)
				return
			}
			if c.spec.Plan != nil {
				c.enter()
			}
			if err := round[(warm+j)%len(round)](context.Background()); err != nil {
				c.fail(fmt.Errorf("call at %v: %w", now, err))
				return
			}
			if c.spec.Plan != nil {
				c.under.Add(-1)
			}
		}
		now = time.Since(c.began)
		one.took, one.at = now-due, now
		if filled++; filled == len(batch) {
			c.record(batch[:])
			filled, now = 0, time.Since(c.began)
		}
	}
}

// wait waits, unless the callers end meanwhile.
func (c *callers) wait(timer *time.Timer, d time.Duration) {
	timer.Reset(d)
	select {
	case <-timer.C:
	case <-c.over.passed:
	}
}

// enter counts a planned call that begins.
func (c *callers) enter() {
	n, most := c.under.Add(1), &c.spec.Figures.Most
	for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
	}
}

// Warmed implements [Loop].
func (c *callers) Warmed() time.Duration {
	took := slices.Sorted(slices.Values(c.warmed))
	return took[len(took)/2]
}

// ended is a call that has ended, or a start that was skipped.
type ended struct {
	took, late, at time.Duration
	skipped        bool
}

// record records what ended in the window.
func (c *callers) record(calls []ended) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range calls {
		if one.at < c.from || one.at > c.to {
			continue
		}
		if c.spec.Plan != nil {
			c.spec.Figures.Lateness.Record(one.late)
		}
		if one.skipped {
			c.spec.Figures.Skipped++
			continue
		}
		c.spec.Figures.Latency.Record(one.took)
		c.ended = max(c.ended, one.at)
	}
}

// stop lets no further call begin, and wakes callers that wait for a planned start.
func (c *callers) stop() {
	c.limit.Store(0)
	c.over.open()
}

func (c *callers) fail(err error) {
	c.failed.CompareAndSwap(nil, &err)
	c.stop()
}

func (c *callers) failure() error {
	if err := c.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Begun implements [Loop].
func (c *callers) Begun() int64 { return c.begun.Load() }

// InFlight implements [Loop].
func (c *callers) InFlight() float64 {
	return float64(c.spec.Figures.Latency.Sum()) / float64(c.ended)
}
