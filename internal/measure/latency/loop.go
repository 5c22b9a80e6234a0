package latency

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of the rate of planned starts, per second. Below MinRate a row would take minutes. Nobody reaches MaxRate.
const (
	MinRate = 1
	MaxRate = 1e6

	tooLate = 50 * time.Millisecond // after which a planned start is dropped
)

// Loop goes round: each of its callers makes the calls of its round in turn, and calls again as soon as it has its
// reply, or at planned starts.
//
// Callers last from Start until they have made the calls of Run, or until the window of During is over. A call counts
// if it ends in the window, whenever it began, and its latency is whole. Leaving out calls that cross an edge would
// drop one latency's worth: of slow calls more than of quick ones.
//
// A latency counts from the planned start, if there is one: after a stall of 200 ms every call that was due meanwhile
// is slow. Without a plan a stall is a single slow call: coordinated omission (G. Tene,
// https://github.com/giltene/wrk2).
//
// A single caller without a plan calls in the goroutine of whoever uses the loop. One goroutine uses it at a time.
type Loop struct {
	Latency  *Recorder // of the calls that count
	Lateness *Recorder // of planned starts: how much later the call began; of dropped ones too
	Dropped  int64     // planned starts that were more than 50 ms late, so that no call was made
	Planned  int64     // starts that were due in the window of During

	Begun atomic.Int64 // calls so far, warm-up included; any goroutine may read it

	rounds  [][]func(context.Context) error
	began   time.Time // other times count from here
	next    int       // of a single caller: its next call
	timed   bool      // of a single caller: its calls count
	last    time.Time // of a single caller: when the call before ended
	plan    [][]time.Duration
	limit   atomic.Int64  // the value of Begun at which callers end
	starts  chan struct{} // closing it ends the callers' wait after the warm-up
	over    chan struct{} // closing it ends their waits for planned starts
	begin   func()        // closes starts
	end     func()        // closes over
	callers sync.WaitGroup
	failed  atomic.Pointer[error]

	mu       sync.Mutex    // guards what follows, and the figures
	from, to time.Duration // the window
	ended    time.Duration // end of the last call that counts
}

// New makes a loop with a caller for each of rounds.
func New(rounds ...[]func(context.Context) error) *Loop {
	return &Loop{Latency: NewRecorder(), rounds: rounds}
}

// Plan plans the starts of the next Run or During, n at a mean rate per second. It comes before Start. The gaps between
// the starts are exponential, and each start is a random caller's: so each caller has such a plan of its own, of its
// share of the rate. The seed decides.
func (l *Loop) Plan(rate float64, n int, seed uint64) {
	random, at := rand.New(rand.NewPCG(seed, 0)), 0.0
	l.Lateness, l.plan = NewRecorder(), make([][]time.Duration, len(l.rounds))
	for range n {
		at += random.ExpFloat64() / rate
		i := random.IntN(len(l.plan))
		l.plan[i] = append(l.plan[i], time.Duration(at*float64(time.Second)))
	}
}

// alone says whether the caller is the goroutine that uses the loop.
func (l *Loop) alone() bool { return len(l.rounds) == 1 && l.plan == nil }

// Call makes the next call of a single caller. It reads the clock once, in about 50 ns, if its latency counts.
func (l *Loop) Call() error {
	l.Begun.Add(1)
	round := l.rounds[0]
	call := round[l.next]
	if l.next++; l.next == len(round) {
		l.next = 0
	}
	err := call(context.Background())
	if l.timed {
		now := time.Now()
		l.Latency.Record(now.Sub(l.last))
		l.last = now
	}
	return err
}

// Timed says from when on the calls of a single caller count, and until when.
func (l *Loop) Timed(on bool) { l.timed, l.last = on, time.Now() }

// Start starts the callers, and returns when each has made warm calls, which don't count. Run or During comes next. If
// one of the calls fails, Start leaves nothing running.
func (l *Loop) Start(warm int) error {
	l.starts, l.over = make(chan struct{}), make(chan struct{})
	l.begin, l.end = sync.OnceFunc(func() { close(l.starts) }), sync.OnceFunc(func() { close(l.over) })
	l.from, l.to = math.MaxInt64, math.MaxInt64
	l.limit.Store(math.MaxInt64)
	if l.alone() {
		for range warm {
			if err := l.Call(); err != nil {
				return fmt.Errorf("warm-up: %w", err)
			}
		}
		return nil
	}
	var cold sync.WaitGroup
	cold.Add(len(l.rounds))
	for i := range l.rounds {
		l.callers.Go(func() {
			warmed := sync.OnceFunc(cold.Done)
			defer warmed()
			defer func() {
				if p := recover(); p != nil { // a panic would end the process without naming the stack
					l.fail(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
				}
			}()
			l.caller(i, warm, warmed)
		})
	}
	cold.Wait()
	if l.failure() != nil {
		return l.Finish()
	}
	return nil
}

// Run makes n calls, or the planned ones, which all count, and then ends the callers. If ctx ends, it makes fewer. The
// callers share the calls: a quick caller makes more.
func (l *Loop) Run(ctx context.Context, n int64) error {
	l.began, l.from = time.Now(), 0
	if l.alone() {
		l.Timed(true)
		for ; n > 0 && ctx.Err() == nil; n-- {
			if err := l.Call(); err != nil {
				return err
			}
		}
		l.ended = l.last.Sub(l.began)
		l.Timed(false)
		return nil
	}
	if l.plan == nil {
		l.limit.Store(l.Begun.Load() + n)
	}
	defer context.AfterFunc(ctx, l.stop)()
	l.begin()
	l.callers.Wait()
	return l.Finish()
}

// During makes calls for a while that leads in, and then for a window, whose length it returns. It tells edge when the
// window opens and when it closes. Calls that are under way then are made, and don't count.
func (l *Loop) During(ctx context.Context, lead, length time.Duration, edge func(open bool)) (time.Duration, error) {
	if l.alone() {
		if _, err := l.until(ctx, lead); err != nil {
			return 0, err
		}
		edge(true)
		l.Timed(true)
		took, err := l.until(ctx, length)
		l.Timed(false)
		edge(false)
		return took, err
	}
	l.began = time.Now()
	l.begin()
	err := wait(ctx, lead)
	if err == nil {
		edge(true)
		l.set(&l.from)
		err = wait(ctx, length)
		l.set(&l.to)
		edge(false)
	}
	if broken := l.Finish(); broken != nil {
		return 0, broken
	}
	for _, plan := range l.plan {
		for _, due := range plan {
			if l.from <= due && due <= l.to {
				l.Planned++
			}
		}
	}
	return l.to - l.from, err
}

// until makes calls of a single caller until so much time has passed.
func (l *Loop) until(ctx context.Context, length time.Duration) (took time.Duration, err error) {
	for began := time.Now(); took < length && err == nil; took = time.Since(began) {
		if err = ctx.Err(); err == nil {
			err = l.Call()
		}
	}
	return took, err
}

// set sets an edge of the window to the present. What ended before is recorded by then, or will be left out.
func (l *Loop) set(edge *time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*edge = time.Since(l.began)
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Finish ends the callers when their calls under way have ended, and returns the error of the first call that failed.
// Finish may be called again.
func (l *Loop) Finish() error {
	if l.starts != nil {
		l.stop()
		l.begin()
	}
	l.callers.Wait()
	return l.failure()
}

// caller makes the calls of one caller.
func (l *Loop) caller(i, warm int, warmed func()) {
	round, plan := l.rounds[i], []time.Duration(nil)
	for j := range warm {
		l.Begun.Add(1)
		if err := round[j%len(round)](context.Background()); err != nil {
			l.fail(fmt.Errorf("warm-up: %w", err))
			return
		}
	}
	warmed()
	<-l.starts
	if l.plan != nil {
		plan = l.plan[i]
	}
	var batch [64]ended // recorded together, to lock once for 64 calls
	filled := 0
	defer func() { l.record(batch[:filled]) }()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for j, now := 0, time.Since(l.began); l.limit.Load() > 0; j++ {
		due := now
		if l.plan != nil {
			if j == len(plan) {
				return
			}
			due = plan[j]
			if timer.Reset(due - now); due > now {
				select {
				case <-timer.C:
				case <-l.over:
				}
				now = time.Since(l.began)
			}
		}
		one := &batch[filled]
		one.late, one.dropped = now-due, now-due > tooLate
		if !one.dropped {
			if l.Begun.Add(1) > l.limit.Load() {
				l.Begun.Add(-1)
				return
			}
			if err := round[(warm+j)%len(round)](context.Background()); err != nil {
				l.fail(fmt.Errorf("call at %v: %w", now, err))
				return
			}
		}
		now = time.Since(l.began)
		one.took, one.at = now-due, now
		if filled++; filled == len(batch) {
			l.record(batch[:])
			filled, now = 0, time.Since(l.began)
		}
	}
}

// ended is a call that has ended, or a start that was dropped.
type ended struct {
	took, late, at time.Duration
	dropped        bool
}

// record records what ended in the window.
func (l *Loop) record(calls []ended) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range calls {
		if c.at < l.from || c.at > l.to {
			continue
		}
		if l.plan != nil {
			l.Lateness.Record(c.late)
		}
		if c.dropped {
			l.Dropped++
			continue
		}
		l.Latency.Record(c.took)
		l.ended = max(l.ended, c.at)
	}
}

// stop lets no further call begin, and waits for planned starts end.
func (l *Loop) stop() {
	l.limit.Store(0)
	l.end()
}

func (l *Loop) fail(err error) {
	l.failed.CompareAndSwap(nil, &err)
	l.stop()
}

func (l *Loop) failure() error {
	if err := l.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// InFlight returns how many calls of a Run were under way, on average: the sum of their latencies over the time until
// the last one ended.
func (l *Loop) InFlight() float64 {
	return float64(l.Latency.Sum()) / float64(l.ended)
}
