package latency

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Rates of an OpenLoop, in starts per second. Below the first a benchmark would take minutes to say nothing; the generator
// cannot reach the second on any machine.
const (
	MinRate = 1
	MaxRate = 1e6
)

// OpenLoop plans starts of calls at a fixed rate, whatever becomes of the calls, and times each from its planned start.
// So a call that is late because others were slow is recorded as slow: a stall of 200 ms makes slow calls of all that were
// planned meanwhile. A loop that calls again when it has its reply would record one slow call and leave out those that it
// should have made: coordinated omission (G. Tene, https://github.com/giltene/wrk2).
//
// In turn: NewOpenLoop, Start, Next as often as there are starts, Finish, and then the figures. One goroutine does that.
type OpenLoop struct {
	Latency  Recorder // from the planned start to the end of the call; of calls that were made
	Lateness Recorder // the generator's own delay, from the planned start until a caller began its call; of all planned starts
	Drops    int64    // planned starts that found every caller busy and the queue full, and became no call

	rate    float64
	wait    func(time.Duration)
	began   time.Time // first planned start; the times below are since then
	planned int64     // starts
	starts  chan start
	idle    atomic.Int64 // callers without a start
	callers sync.WaitGroup

	done   atomic.Int64
	failed atomic.Pointer[error]

	mu   sync.Mutex    // of Latency, Lateness and last
	last time.Duration // end of a call
}

// start is a planned start on its way to a caller.
type start struct {
	due time.Duration // when planned

	// behind is how late the generator handed over a start that found every caller busy: how long that one waits for a
	// caller is the stack's doing. It is negative if a caller was idle.
	behind time.Duration
}

// NewOpenLoop makes a loop of rate starts per second, between MinRate and MaxRate. As many as queue wait for a free
// caller: their wait is part of their latency. wait returns when the duration has passed, at once if it isn't positive, as
// [Sleeper.Sleep] does; it is called before every start.
func NewOpenLoop(rate float64, queue int, wait func(time.Duration)) (*OpenLoop, error) {
	if !(rate >= MinRate && rate <= MaxRate) {
		return nil, fmt.Errorf("open loop: a rate of %v calls per second has to lie between %v and %v", rate, MinRate, int(MaxRate))
	}
	return &OpenLoop{Latency: *New(), Lateness: *New(), rate: rate, wait: wait, starts: make(chan start, queue)}, nil
}

// Start starts a caller, a goroutine, for each of calls, which is the only one to make it. First every caller makes its
// call as often as warm says, all of them at a time and unrecorded; Start returns when they have. Its error is the first
// of those calls, and leaves nothing running.
func (l *OpenLoop) Start(warm int, calls ...func(context.Context) error) error {
	var cold sync.WaitGroup
	cold.Add(len(calls))
	for _, call := range calls {
		l.callers.Go(func() {
			warmed := sync.OnceFunc(cold.Done)
			defer warmed()
			defer l.recovered()
			for range warm {
				if err := call(context.Background()); err != nil {
					l.fail(fmt.Errorf("warm-up: %w", err))
					return
				}
				l.done.Add(1)
			}
			l.idle.Add(1)
			warmed()
			l.serve(call)
		})
	}
	cold.Wait()
	if err := l.failure(); err != nil {
		return l.Finish()
	}
	return nil
}

// Next waits for the next planned start and hands it to a free caller or to the queue, or else counts it as dropped. The
// first is planned 1/rate after the first Next, start i is i/rate after that. When the generator has fallen behind, what
// is overdue goes out at once, and nothing is skipped. It returns the error of the first call that failed or panicked;
// no more calls are made then.
func (l *OpenLoop) Next() error {
	if l.planned == 0 {
		l.began = time.Now().Add(l.plan(1))
	}
	s := start{due: l.plan(l.planned), behind: -1}
	l.planned++
	l.wait(s.due - time.Since(l.began))
	late := max(0, time.Since(l.began)-s.due)
	if l.idle.Add(-1) < 0 {
		s.behind = late
	}
	select {
	case l.starts <- s:
	default:
		l.Drops++
		l.idle.Add(1)
		l.mu.Lock()
		l.Lateness.Record(late)
		l.mu.Unlock()
	}
	return l.failure()
}

// plan is when start i is due. Adding up intervals would add up their rounding.
func (l *OpenLoop) plan(i int64) time.Duration {
	return time.Duration(float64(i) * float64(time.Second) / l.rate)
}

// serve makes the calls that are handed to one caller.
func (l *OpenLoop) serve(call func(context.Context) error) {
	for s := range l.starts {
		if l.failed.Load() != nil {
			return
		}
		late := s.behind
		if late < 0 {
			late = time.Since(l.began) - s.due
		}
		err := call(context.Background())
		end := time.Since(l.began)
		l.idle.Add(1)
		if err != nil {
			l.fail(fmt.Errorf("call planned at %v: %w", s.due, err))
			return
		}
		l.done.Add(1)
		l.mu.Lock()
		l.Lateness.Record(late)
		l.Latency.Record(end - s.due)
		l.last = max(l.last, end)
		l.mu.Unlock()
	}
}

// recovered is deferred: a panic that ends the process would not name the stack.
func (l *OpenLoop) recovered() {
	if p := recover(); p != nil {
		l.fail(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}
}

func (l *OpenLoop) fail(err error) { l.failed.CompareAndSwap(nil, &err) }

func (l *OpenLoop) failure() error {
	if err := l.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Done returns how many calls have succeeded so far, the warm-up's too. Any goroutine may ask at any time.
func (l *OpenLoop) Done() int64 { return l.done.Load() }

// Finish waits for the calls under way and in the queue. Its error is Next's. No caller is left when it returns.
func (l *OpenLoop) Finish() error {
	close(l.starts)
	l.callers.Wait()
	return l.failure()
}

// Achieved returns how many calls per second were made: those that were not dropped, over the time for which starts were
// planned, or until the last call ended if that is longer. It is rate unless calls were dropped or are slow at the end.
func (l *OpenLoop) Achieved() float64 {
	return float64(l.Latency.Count()) / max(l.plan(l.planned), l.last).Seconds()
}
