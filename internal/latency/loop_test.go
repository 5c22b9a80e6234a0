package latency_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/latency"
)

// pass waits exactly that long in the virtual time of synctest.
func pass(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

// each makes n callers of one call.
func each(n int, call func() error) [][]func(context.Context) error {
	return slices.Repeat([][]func(context.Context) error{{func(context.Context) error { return call() }}}, n)
}

func taking(d time.Duration) func() error {
	return func() error {
		pass(d)
		return nil
	}
}

// run plans n starts. The loop has succeeded when it returns.
func run(
	t *testing.T, rate float64, queue, n int, wait func(time.Duration), rounds ...[]func(context.Context) error,
) *latency.Loop {
	t.Helper()
	l, err := latency.NewOpen(rate, queue, wait)
	require.NoError(t, err)
	require.NoError(t, l.Start(0, rounds...))
	require.NoError(t, l.Run(int64(n)))
	return l
}

func quantile(t *testing.T, r *latency.Recorder, q float64) time.Duration {
	t.Helper()
	d, ok := r.Quantile(q)
	require.True(t, ok, "of %d samples", r.Count())
	return d
}

// within the recorder's 0.1 %, rounded up.
func requireQuantile(t *testing.T, want time.Duration, r *latency.Recorder, q float64) {
	t.Helper()
	got := quantile(t, r, q)
	require.GreaterOrEqual(t, got, want, "q=%v", q)
	require.LessOrEqual(t, float64(got-want), 0.001*float64(want), "q=%v: %v, exactly %v", q, got, want)
}

// A server answers in 1 ms, but for 200 ms in the middle it answers nobody. Starts are planned at every millisecond,
// so 200 of 10,000 fall into the stall, and the calls end with it: their latencies are 200 ms, 199 ms ... 2 ms, 1
// ms. In order, 9800 + 1 calls of 1 ms come first; the 9900th, which is p99, is the 99th of 2 ms ... 200 ms, which
// is 100 ms.
//
// With 64 callers the first 64 of the stalled calls take 200 ms ... 137 ms. The other starts wait in the queue: when
// the stall is over, 64 are called and end a millisecond later, after 137 ms ... 74 ms. The 9900th is the 101st from
// the end, the 37th of these: 101 ms. From its actual start each of these took 1 ms, and so would p99.
func TestStallIsInTheTail(t *testing.T) {
	const (
		n      = 10_000
		answer = time.Millisecond
		from   = 4 * time.Second
		stall  = 200 * time.Millisecond
	)
	server := func() func() error {
		began := time.Now()
		return func() error {
			if at := time.Since(began); at >= from && at < from+stall {
				pass(from + stall - at)
			} else {
				pass(answer)
			}
			return nil
		}
	}
	for _, c := range []struct {
		reason         string
		callers, queue int
		p99, p999      time.Duration
	}{
		{"open loop with a caller for every start", 256, 0, 100 * time.Millisecond, 190 * time.Millisecond},
		{"open loop in which starts wait for a caller", 64, 256, 101 * time.Millisecond, 190 * time.Millisecond},
	} {
		t.Run(c.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := run(t, 1000, c.queue, n, pass, each(c.callers, server())...)
				require.Zero(t, l.Drops)
				require.EqualValues(t, n, l.Latency.Count())
				requireQuantile(t, answer, &l.Latency, 0.5)
				requireQuantile(t, answer, &l.Latency, 0.979)
				requireQuantile(t, c.p99, &l.Latency, 0.99)
				requireQuantile(t, c.p999, &l.Latency, 0.999) // the 11th from the end
				requireQuantile(t, 0, &l.Lateness, 0.999)
				require.Equal(t, 1000.0, l.Achieved())
			})
		})
	}
}

// TestInFlight: calls of a millisecond that callers share are under way for a known part of the time.
func TestInFlight(t *testing.T) {
	for _, c := range []struct {
		reason     string
		callers, n int
		want       float64
	}{
		{"every caller is always in a call", 4, 400, 4},
		{"one caller", 1, 10, 1},
		{"of two callers one has no second call", 2, 3, 1.5},
		{"two of four callers never call", 4, 2, 2},
	} {
		t.Run(c.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := latency.NewClosed()
				require.NoError(t, l.Start(0, each(c.callers, taking(time.Millisecond))...))
				<-time.After(time.Second) // idle time before the calls and after them does not count
				require.NoError(t, l.Run(int64(c.n)))
				<-time.After(time.Second)
				require.InEpsilon(t, c.want, l.InFlight(), 0.001)
			})
		})
	}
}

func TestDropsAreCounted(t *testing.T) {
	for _, c := range []struct {
		reason         string
		callers, queue int
		drops          int64
	}{
		{"callers and queue take all", 10, 0, 0},
		{"just enough of both", 4, 6, 0},
		{"one too few", 4, 5, 1},
		{"nobody waits without a queue", 2, 0, 8},
		{"a full queue", 2, 3, 5},
	} {
		t.Run(c.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				l, err := latency.NewOpen(1000, c.queue, pass)
				require.NoError(t, err)
				require.NoError(t, l.Start(0, each(c.callers, func() error { <-release; return nil })...))
				began := time.Now()
				for range 10 {
					require.NoError(t, l.Next())
				}
				require.Equal(t, 10*time.Millisecond, time.Since(began), "the starts are not held up")
				require.Zero(t, l.Latency.Count())
				close(release)
				require.NoError(t, l.Finish())
				require.Equal(t, c.drops, l.Drops)
				require.EqualValues(t, 10-c.drops, l.Latency.Count())
				require.EqualValues(t, 10, l.Lateness.Count())
				require.EqualValues(t, 10-c.drops, l.Begun.Load())
				require.InEpsilon(t, float64(10-c.drops)/0.010, l.Achieved(), 1e-9)
			})
		})
	}
}

// The generator sleeps 100 ms too long once. The 100 starts it has missed go out together, none is skipped, and the
// schedule stands.
func TestOverdueStartsGoOutAtOnce(t *testing.T) {
	const n, over = 1000, 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		waits := 0
		wait := func(d time.Duration) {
			if waits++; waits == 500 {
				d += over
			}
			pass(d)
		}
		var starts []time.Duration // of one goroutine at a time, since no time passes in a call
		l := run(t, 1000, n, n, wait, each(1, func() error { starts = append(starts, time.Since(began)); return nil })...)
		require.Zero(t, l.Drops)
		require.Len(t, starts, n)
		for i, at := range starts {
			planned := time.Duration(i+1) * time.Millisecond
			if i >= 499 && i < 600 {
				require.Equal(t, 600*time.Millisecond, at, "start %d", i)
			} else {
				require.Equal(t, planned, at, "start %d", i)
			}
		}
		requireQuantile(t, 0, &l.Lateness, 0.9) // 900 are on time, the others late by 1 ms, 2 ms ... 100 ms
		requireQuantile(t, 90*time.Millisecond, &l.Lateness, 0.99)
		requireQuantile(t, 90*time.Millisecond, &l.Latency, 0.99)
	})
}

// Rounded intervals would add up: a third of a second to a nanosecond, 2999 times, is a microsecond off.
func TestScheduleDoesNotDrift(t *testing.T) {
	const n = 3000
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var last time.Duration
		run(t, 3, 1, n, pass, each(1, func() error { last = time.Since(began); return nil })...)
		require.InDelta(t, 1000*time.Second, last, 2)
	})
}

func TestFailedCallEndsTheLoop(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		reason string
		fault  func() error
		want   string
	}{
		{"an error", func() error { return broken }, "call at 4ms: broken"},
		{"a panic", func() error { panic("broken") }, "panic: broken"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, err := latency.NewOpen(1000, 10, pass)
				require.NoError(t, err)
				var n atomic.Int64
				require.NoError(t, l.Start(0, each(2, func() error {
					switch n.Add(1) {
					case 4: // goes on when the fifth has failed
						pass(10 * time.Millisecond)
					case 5:
						pass(time.Microsecond) // so that it fails after Next
						return c.fault()
					}
					return nil
				})...))
				nexts := 0
				for err == nil {
					require.Less(t, nexts, 10, "the loop goes on")
					err = l.Next()
					nexts++
				}
				require.ErrorContains(t, err, c.want)
				require.Equal(t, 6, nexts, "the fifth call fails while the sixth is waited for")
				began := time.Now()
				require.Equal(t, err, l.Run(100))
				require.Less(t, time.Since(began), 10*time.Millisecond, "no start is planned after a failed call")
				require.EqualValues(t, 5, n.Load(), "what was queued is not called")
			})
		})
	}
}

// Every caller warms its own call, all of them at a time.
func TestWarmUp(t *testing.T) {
	const callers, rounds = 5, 3
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var calls [callers]int
		var all [][]func(context.Context) error
		for i := range callers {
			all = append(all, []func(context.Context) error{func(context.Context) error {
				calls[i]++
				pass(time.Millisecond)
				return nil
			}})
		}
		l, err := latency.NewOpen(1000, 1, pass)
		require.NoError(t, err)
		require.NoError(t, l.Start(rounds, all...))
		require.Equal(t, rounds*time.Millisecond, time.Since(began), "callers warm at a time")
		require.Equal(t, [callers]int{rounds, rounds, rounds, rounds, rounds}, calls)
		require.EqualValues(t, callers*rounds, l.Begun.Load())
		require.NoError(t, l.Next())
		require.NoError(t, l.Finish())
		require.EqualValues(t, 1, l.Latency.Count(), "the warm-up is not recorded")
		require.EqualValues(t, callers*rounds+1, l.Begun.Load())
	})
}

func TestFailedWarmUpLeavesNothing(t *testing.T) {
	for name, closed := range map[string]bool{"closed": true, "open": false} {
		t.Run(name, func(t *testing.T) {
			start := func(rounds [][]func(context.Context) error) (err error) {
				synctest.Test(t, func(t *testing.T) { // which fails if a goroutine stays
					l := latency.NewClosed()
					if !closed {
						l, err = latency.NewOpen(1000, 1, pass)
						require.NoError(t, err)
					}
					err = l.Start(2, rounds...)
				})
				return err
			}
			calls := each(3, func() error { return nil })
			calls[1] = []func(context.Context) error{func(context.Context) error { return errors.New("broken") }}
			require.EqualError(t, start(calls), "warm-up: broken")
			require.ErrorContains(t, start(each(3, func() error { panic("broken") })), "panic: broken")
		})
	}
}

// Of a closed loop, the quick caller makes more calls; each goes round its own, and no latency is lost.
func TestCallersShareTheCalls(t *testing.T) {
	const n = 400 // the slow caller's 100 are more than it records at a time, and not a multiple
	synctest.Test(t, func(t *testing.T) {
		var made [2][3]int
		var rounds [][]func(context.Context) error
		for i := range made {
			var round []func(context.Context) error
			for j := range made[i] {
				round = append(round, func(context.Context) error {
					made[i][j]++
					pass(time.Duration(1+2*i) * time.Millisecond)
					return nil
				})
			}
			rounds = append(rounds, round)
		}
		l := latency.NewClosed()
		require.NoError(t, l.Start(6, rounds...))
		require.Equal(t, [2][3]int{{2, 2, 2}, {2, 2, 2}}, made, "of the warm-up")
		made = [2][3]int{}
		began := time.Now()
		require.NoError(t, l.Run(n))
		require.Equal(t, 300*time.Millisecond, time.Since(began), "both call at a time")
		require.Equal(t, [2][3]int{{100, 100, 100}, {34, 33, 33}}, made, "300 of the quick caller, 100 of the slow, in turn")
		require.EqualValues(t, n, l.Latency.Count())
		requireQuantile(t, time.Millisecond, &l.Latency, 0.75)
		requireQuantile(t, 3*time.Millisecond, &l.Latency, 0.76)
	})
}

func TestFailedCallEndsAClosedLoop(t *testing.T) {
	for want, fault := range map[string]func() error{
		"call at 4ms: broken": func() error { return errors.New("broken") },
		"panic: broken":       func() error { panic("broken") },
	} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				made := 0
				call := func() error {
					if made++; made == 10 {
						return fault()
					}
					pass(time.Millisecond)
					return nil
				}
				l := latency.NewClosed()
				require.NoError(t, l.Start(0, each(1, call)...))
				began := time.Now()
				made = 5
				require.ErrorContains(t, l.Run(100), want)
				require.Equal(t, 4*time.Millisecond, time.Since(began))
				require.EqualValues(t, 4, l.Latency.Count(), "those that succeeded")
				require.Equal(t, 10, made, "no more calls")
			})
		})
	}
}

// TestCallersWithoutARun end: Start was the last that a benchmark did.
func TestCallersWithoutARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := latency.NewClosed()
		require.NoError(t, l.Start(0, each(3, func() error { return errors.New("called") })...))
		require.NoError(t, l.Finish())
		require.NoError(t, l.Finish())
	})
}

func TestRates(t *testing.T) {
	for _, rate := range []float64{0, -1, 0.999, 1_000_001, 1e300, math.Inf(1), math.Inf(-1), math.NaN()} {
		l, err := latency.NewOpen(rate, 1, pass)
		assert.Nil(t, l)
		assert.ErrorContains(t, err, "calls per second has to lie between 1 and 1000000", "%v", rate)
	}
	for _, rate := range []float64{1, 1.5, 1e6} {
		_, err := latency.NewOpen(rate, 1, pass)
		assert.NoError(t, err)
	}
}

func TestSleeperWaitsLongEnough(t *testing.T) {
	sleep, stop, err := latency.NewSleeper()
	require.NoError(t, err)
	for _, d := range []time.Duration{-time.Hour, -1, 0, 1, time.Microsecond, 50 * time.Microsecond, time.Millisecond, 1} {
		began := time.Now()
		sleep(d)
		assert.GreaterOrEqual(t, time.Since(began), d)
	}
	require.NoError(t, stop())
}

// Here starts are handed over in time, but the generator keeps the only P, so callers begin when it is preempted. That
// delay is part of each call's latency, and the generator's doing.
func TestLatenessEndsWhenTheCallBegins(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	spin := func(d time.Duration) {
		for start := time.Now(); time.Since(start) < d; {
		}
	}
	nothing := func() error { return nil }
	l := run(t, 1000, 100, 60, spin, each(60, nothing)...)
	late := quantile(t, &l.Lateness, 0.5)
	require.Greater(t, late, 500*time.Microsecond, "half of the calls began later")
	require.LessOrEqual(t, late, quantile(t, &l.Latency, 0.5))
}
