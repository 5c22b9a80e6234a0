package latency

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Rates of an open loop, in starts per second. Below MinRate a benchmark takes minutes; no generator reaches MaxRate.
const (
	MinRate = 1
	MaxRate = 1e6
)

// Loop lets callers, a goroutine each, make calls at the same time, and records how long the calls take.
//
// In a closed loop a caller calls again as soon as it has its reply. An open loop plans starts at a fixed rate and
// times each call from its planned start. A stall of 200 ms then makes slow calls of all that were planned meanwhile,
// where a closed loop records one: coordinated omission (G. Tene, https://github.com/giltene/wrk2).
//
// One goroutine calls Start, then Run, or Next for each start and then Finish, and then reads the figures.
type Loop struct {
	Latency  Recorder // from the start of a call, in an open loop the planned one, to its end
	Lateness Recorder // of an open loop: from the planned start until a caller began its call; also of dropped starts
	Drops    int64    // of an open loop: planned starts that found every caller busy and the queue full

	rate    float64 // of an open loop; 0 in a closed one
	wait    func(time.Duration)
	planned int64 // starts

	starts  chan start // in a closed loop nothing is sent, and callers begin when it is closed
	finish  sync.Once
	callers sync.WaitGroup
	began   time.Time // the times below are since then; in an open loop the first planned start
	limit   int64     // of Begun, in a closed loop
	failed  atomic.Pointer[error]

	mu   sync.Mutex    // of Latency, Lateness and last
	last time.Duration // end of a call

	_ [64]byte // callers read what is above for every call, on cores that should not wait for Begun

	Begun atomic.Int64 // calls so far, of the warm-up too; any goroutine may ask at any time
}

// start is a start on its way to a caller.
type start struct {
	due  time.Duration // when planned; in a closed loop now
	late time.Duration // that the generator caused
}

// NewClosed makes a closed loop.
func NewClosed() *Loop { return &Loop{Latency: *New(), starts: make(chan start)} }

// NewOpen makes an open loop of rate starts per second, between MinRate and MaxRate. As many starts as queue wait for a
// free caller: their wait is part of their latency. wait is called before every start, as [NewSleeper] makes it.
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
// has made warm calls, which are not recorded. After an error of those calls nothing is left running.
func (l *Loop) Start(warm int, rounds ...[]func(context.Context) error) error {
	var cold sync.WaitGroup
	cold.Add(len(rounds))
	for _, round := range rounds {
		l.callers.Go(func() {
			warmed := sync.OnceFunc(cold.Done)
			defer warmed()
			defer func() {
				if p := recover(); p != nil { // it would end the process, and not name the stack
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

// Run makes n calls, or plans n starts, and then calls Finish. Callers of a closed loop share the calls, quick ones
// making more.
func (l *Loop) Run(n int64) error {
	if l.rate == 0 {
		l.began, l.limit = time.Now(), l.Begun.Load()+n
		return l.Finish()
	}
	for i := int64(0); i < n && l.Next() == nil; i++ {
	}
	return l.Finish()
}

// Next waits for the next planned start and hands it to a free caller or to the queue, or else counts it as dropped.
// The first is planned 1/rate after the first Next, start i is i/rate after that. An overdue start goes out at once.
// Next returns the error of the first call that failed or panicked; no more calls are made then.
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

// plan is when start i is due. Adding up intervals would add up their rounding.
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
	case s, more = <-l.starts: // it has waited for a caller, which is the stack's doing
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
	var batch [64]struct{ took, late, end time.Duration } // recorded together: a lock for each op would be the harness's
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

// Achieved returns how many calls per second an open loop made: those that were not dropped, over the time for which
// starts were planned, or until the last call ended if that is longer.
func (l *Loop) Achieved() float64 {
	return float64(l.Latency.Count()) / max(l.plan(l.planned), l.last).Seconds()
}
