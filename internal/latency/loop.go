package latency

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of the rate of an open loop, in starts per second. Below MinRate a benchmark would take minutes. No generator
// reaches MaxRate.
const (
	MinRate = 1
	MaxRate = 1e6
)

// Loop makes concurrent calls with one goroutine per caller, and records how long the calls take.
//
// In a closed loop a caller calls again as soon as it has its reply. An open loop plans starts at a fixed rate, and
// times each call from its planned start. After a stall of 200 ms an open loop has slow calls for every start that was
// planned meanwhile. A closed loop records a single slow call: coordinated omission (G. Tene,
// https://github.com/giltene/wrk2).
//
// One goroutine calls Start, then Run, and then reads the figures. Instead of Run it may call Next for each start and
// then Finish.
type Loop struct {
	Latency  Recorder // from the start of a call to its end; in an open loop from the planned start
	Lateness Recorder // open loop: from the planned start until a caller began its call; of dropped starts too
	Drops    int64    // open loop: planned starts that found every caller busy and the queue full

	rate    float64 // 0 in a closed loop
	wait    func(time.Duration)
	planned int64 // starts so far

	starts  chan start // a closed loop sends nothing: closing the channel starts its callers
	finish  sync.Once
	callers sync.WaitGroup
	began   time.Time // other times count from here; in an open loop it is the first planned start
	limit   int64     // closed loop: the value of Begun at which callers stop
	failed  atomic.Pointer[error]

	mu   sync.Mutex    // guards Latency, Lateness and last
	last time.Duration // end of the last call

	_ [64]byte // a cache line: callers read the fields above for every call, while others write Begun

	Begun atomic.Int64 // calls that have begun, warm-up included; any goroutine may read it
}

// start is a planned start on its way to a caller.
type start struct {
	due  time.Duration // the planned time; in a closed loop the present
	late time.Duration // delay that the generator caused
}

// NewClosed makes a closed loop.
func NewClosed() *Loop { return &Loop{Latency: *New(), starts: make(chan start)} }

// NewOpen makes an open loop of rate starts per second, between MinRate and MaxRate. Up to queue starts wait for a free
// caller, and this wait is part of their latency. The loop calls wait before every start: see [NewSleeper].
func NewOpen(rate float64, queue int, wait func(time.Duration)) (*Loop, error) {
	if !(rate >= MinRate && rate <= MaxRate) {
		return nil, fmt.Errorf("open loop: a rate of %v calls per second has to lie between %v and %v",
			rate, MinRate, int(MaxRate))
	}
	l := NewClosed()
	l.Lateness, l.rate, l.wait, l.starts = *New(), rate, wait, make(chan start, queue)
	return l, nil
}

// Start starts a caller for each of rounds, which makes the calls of its round in turn. Start returns when each caller
// has made warm calls, which are not recorded. If one of these calls fails, Start leaves nothing running.
func (l *Loop) Start(warm int, rounds ...[]func(context.Context) error) error {
	var cold sync.WaitGroup
	cold.Add(len(rounds))
	for _, round := range rounds {
		l.callers.Go(func() {
			warmed := sync.OnceFunc(cold.Done)
			defer warmed()
			defer func() {
				if p := recover(); p != nil { // a panic would end the process without naming the stack
					l.fail(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
				}
			}()
			for i := range warm {
				l.Begun.Add(1)
				if err := round[i%len(round)](context.Background()); err != nil {
					l.fail(fmt.Errorf("warm-up: %w", err))
					return
				}
			}
			warmed()
			l.serve(round)
		})
	}
	cold.Wait()
	if l.failure() != nil {
		return l.Finish()
	}
	return nil
}

// Run makes n calls, or plans n starts, and then calls Finish. The callers of a closed loop share the calls: a quick
// caller makes more.
func (l *Loop) Run(n int64) error {
	if l.rate == 0 {
		l.began, l.limit = time.Now(), l.Begun.Load()+n
		return l.Finish()
	}
	for i := int64(0); i < n && l.Next() == nil; i++ {
	}
	return l.Finish()
}

// Next waits for the next planned start, and hands it to a free caller or to the queue. If neither has room, it counts
// the start as dropped. The first start is planned 1/rate after the first Next, and start i follows after i/rate. An
// overdue start goes out at once. Next returns the error of the first call that failed or panicked, after which callers
// make no more calls.
func (l *Loop) Next() error {
	if l.planned == 0 {
		l.began = time.Now().Add(l.plan(1))
	}
	s := start{due: l.plan(l.planned)}
	l.planned++
	l.wait(s.due - time.Since(l.began))
	s.late = max(0, time.Since(l.began)-s.due)
	select {
	case l.starts <- s:
	default:
		l.Drops++
		l.mu.Lock()
		l.Lateness.Record(s.late)
		l.mu.Unlock()
	}
	return l.failure()
}

// plan returns when start i is due. Adding up intervals would add up their rounding errors.
func (l *Loop) plan(i int64) time.Duration {
	return time.Duration(float64(i) * float64(time.Second) / l.rate)
}

// take returns the next start for a caller, or false if there is no more.
func (l *Loop) take() (start, bool) {
	if l.rate == 0 {
		more := l.Begun.Add(1) <= l.limit
		return start{due: time.Since(l.began)}, more
	}
	var s start
	more := true
	select {
	case s, more = <-l.starts: // it waited for a busy caller, which is not the generator's fault
	default:
		s, more = <-l.starts
		s.late = time.Since(l.began) - s.due
	}
	if more {
		l.Begun.Add(1)
	}
	return s, more
}

// serve makes the calls of one caller.
func (l *Loop) serve(round []func(context.Context) error) {
	var batch [64]struct{ took, late, end time.Duration } // recorded together, to lock once for 64 ops
	filled := 0
	record := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, op := range batch[:filled] {
			l.Latency.Record(op.took)
			if l.rate > 0 {
				l.Lateness.Record(op.late)
			}
			l.last = max(l.last, op.end)
		}
		filled = 0
	}
	defer record()
	if l.rate == 0 {
		<-l.starts
	}
	for i := 0; ; i++ {
		s, more := l.take()
		if !more || l.failed.Load() != nil {
			return
		}
		err := round[i%len(round)](context.Background())
		end := time.Since(l.began)
		if err != nil {
			l.fail(fmt.Errorf("call at %v: %w", s.due, err))
			return
		}
		batch[filled].took, batch[filled].late, batch[filled].end = end-s.due, s.late, end
		if filled++; filled == len(batch) {
			record()
		}
	}
}

func (l *Loop) fail(err error) { l.failed.CompareAndSwap(nil, &err) }

func (l *Loop) failure() error {
	if err := l.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Finish waits for the calls under way and in the queue, ends the callers, and returns the error of the first call that
// failed. Finish may be called again.
func (l *Loop) Finish() error {
	l.finish.Do(func() { close(l.starts) })
	l.callers.Wait()
	return l.failure()
}

// Achieved returns the calls per second of an open loop, without dropped starts. The time runs until the last planned
// start, or until the end of the last call if that is later.
func (l *Loop) Achieved() float64 {
	return float64(l.Latency.Count()) / max(l.plan(l.planned), l.last).Seconds()
}

// InFlight returns how many calls of a closed loop were under way, on average: the sum of their latencies over the time
// until the last one ended.
func (l *Loop) InFlight() float64 {
	return l.Latency.hist.Mean() * float64(l.Latency.Count()) / float64(l.last)
}
