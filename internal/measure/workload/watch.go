package workload

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// Watchdog ends calls that hang: it closes what they use, which makes them fail. Reset restarts the time limit, and
// Stop ends the watch.
type Watchdog struct {
	*time.Timer
	fired atomic.Bool
}

// Watch calls end if the watchdog is neither reset nor stopped within limit. If done is not nil, a change of its result
// counts as a reset, and the limit may take up to twice as long.
func Watch(limit time.Duration, done func() int64, end func() error) *Watchdog {
	w, seen := &Watchdog{}, int64(0)
	w.Timer = time.AfterFunc(time.Hour, func() {
		if done != nil && done() != seen {
			seen = done()
			w.Reset(limit)
			return
		}
		w.fired.Store(true)
		_ = end()
	})
	w.Reset(limit) // the timer's function uses w, so it starts last
	return w
}

// Watched runs do under a watchdog.
func Watched(limit time.Duration, done func() int64, end, do func() error) error {
	w := Watch(limit, done, end)
	defer w.Stop()
	return w.Note(do())
}

// Note adds to the error of a call that the watchdog has ended what it used.
func (w *Watchdog) Note(err error) error {
	if err != nil && w.fired.Load() {
		return fmt.Errorf("%w (the call hung, so its fixture was closed)", err)
	}
	return err
}

// Allocated returns a function that tells what this process has allocated since.
func Allocated() (since func() (bytes, allocs uint64)) {
	var before, after runtime.MemStats
	since = func() (bytes, allocs uint64) {
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, after.Mallocs - before.Mallocs
	}
	runtime.ReadMemStats(&before) // last, so that nothing here counts
	return since
}
