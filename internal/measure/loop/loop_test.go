package loop

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/verdict"
)

const ms = time.Millisecond

// tested is a loop with what it finds.
type tested struct {
	Loop
	*Figures
}

func loop(plan [][]time.Duration, rounds ...[]func(context.Context) error) tested {
	f := NewFigures(plan != nil)
	return tested{New(Spec{Rounds: rounds, Plan: plan, Figures: f}), f}
}

// several makes n callers of one call.
func several(n int, call func() error) tested { return planned(nil, n, call) }

// planned makes n callers of one call with a plan.
func planned(plan [][]time.Duration, n int, call func() error) tested {
	round := []func(context.Context) error{func(context.Context) error { return call() }}
	return loop(plan, slices.Repeat([][]func(context.Context) error{round}, n)...)
}

// taking is a call that takes exactly that long in the virtual time of synctest.
func taking(d time.Duration) func() error {
	return func() error {
		if d > 0 {
			<-time.After(d)
		}
		return nil
	}
}

// requireQuantile holds within the recorder's 0.1 %, rounded up.
func requireQuantile(t *testing.T, want time.Duration, r *Recorder, q float64) {
	t.Helper()
	got, ok := r.Quantile(q)
	require.True(t, ok, "of %d samples", r.Count())
	require.GreaterOrEqual(t, got, want, "q=%v", q)
	require.LessOrEqual(t, float64(got-want), 0.001*float64(want), "q=%v: %v, exactly %v", q, got, want)
}

// Callers of 2 ms and three times as many of 6 ms, who begin at different times, make as many calls in any window. A
// rule that leaves out calls which cross an edge would count a quarter fewer of the slow ones.
func TestWindowCountsWhatEndsInIt(t *testing.T) {
	for _, length := range []time.Duration{6 * ms, 24 * ms, 90 * ms} {
		count := func(n int, took time.Duration) (calls int64) {
			synctest.Test(t, func(t *testing.T) {
				began := make(chan time.Duration, n)
				for i := range n {
					began <- time.Duration(i) * 200 * time.Microsecond
				}
				l := several(n, func() error {
					select {
					case late := <-began:
						<-time.After(late)
					default:
					}
					return taking(took)()
				})
				var opened, shut time.Time
				require.NoError(t, l.Start(1))
				wall, err := l.During(t.Context(), 12*ms+ms/20, length, func(open bool) {
					if opened, shut = shut, time.Now(); open {
						opened = shut
					}
				})
				require.NoError(t, err)
				require.Equal(t, length, wall)
				require.Equal(t, length, shut.Sub(opened), "edge is told when the window opens and when it closes")
				calls = l.Latency.Count()
				requireQuantile(t, took, l.Latency, 0.5)
				require.InEpsilon(t, took*time.Duration(calls), l.Latency.Sum(), 0.001, "each latency is whole")
			})
			return calls
		}
		quick, slow := count(10, 2*ms), count(30, 6*ms)
		require.EqualValues(t, length/ms*5, quick, "ten callers of 2 ms make five calls in a millisecond")
		require.Equal(t, 1.0, float64(slow)/float64(quick), "calls in a window of %v", length)
	}
}

// Callers go on before the window, through it and until their last call has ended; nobody calls afterwards.
func TestCallersLast(t *testing.T) {
	const n = 7
	synctest.Test(t, func(t *testing.T) {
		var inside, made atomic.Int64
		l := several(n, func() error {
			made.Add(1)
			inside.Add(1)
			defer inside.Add(-1)
			return taking(10 * ms)()
		})
		for range 2 { // a loop may have several windows
			require.NoError(t, l.Start(0))
			began, before := time.Now(), made.Load()
			_, err := l.During(t.Context(), 25*ms, 20*ms, func(bool) {
				require.EqualValues(t, n, inside.Load(), "callers in a call when the window opens and closes")
			})
			require.NoError(t, err)
			require.Equal(t, 50*ms, time.Since(began), "the calls under way are made")
			require.EqualValues(t, 5*n, made.Load()-before)
		}
		require.EqualValues(t, 2*2*n, l.Latency.Count(), "of each caller those that ended after 30 and 40 ms")
		require.EqualValues(t, made.Load(), l.Begun())
	})
}

// A single caller calls in this goroutine. Its window begins when it opens, and not with the end of the call before.
func TestOneCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns []int
		round := make([]func(context.Context) error, 3)
		for i := range round {
			round[i] = func(context.Context) error {
				turns = append(turns, i) // which the race detector would see in another goroutine
				return taking(ms)()
			}
		}
		l := loop(nil, round)
		require.NoError(t, l.Start(2))
		var told []bool
		wall, err := l.During(t.Context(), 2*ms, 30*ms, func(open bool) {
			told = append(told, open)
			<-time.After(time.Second)
		})
		require.NoError(t, err)
		require.Equal(t, []bool{true, false}, told, "edge is told when the window opens and when it closes")
		require.Equal(t, 30*ms, wall)
		require.Equal(t, []int{0, 1, 2, 0, 1, 2}, turns[:6], "goes round")
		require.Len(t, turns, 34)
		require.EqualValues(t, 34, l.Begun())
		require.EqualValues(t, 30, l.Latency.Count())
		require.InEpsilon(t, 30*ms, l.Latency.Sum(), 0.001, "no latency has the time before the window")
		require.NoError(t, l.Loop.(*OneCaller).Call())
		require.EqualValues(t, 30, l.Latency.Count(), "what comes after the window does not count")
		require.NoError(t, l.Run(t.Context(), 10))
		require.EqualValues(t, 40, l.Latency.Count())
		require.InEpsilon(t, 4, l.InFlight(), 0.001, "40 ms of calls in 10 ms") // of several runs it means nothing
		require.NoError(t, l.Finish())
		round[0] = func(context.Context) error { return errors.New("broken") }
		require.EqualError(t, l.Run(t.Context(), 10), "broken")
		require.EqualError(t, l.Finish(), "broken", "of the call that failed")
	})
}

// Callers share the calls of Run: the quick one makes more, each goes round its own, and no latency is lost.
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
					return taking(time.Duration(1+2*i) * ms)()
				})
			}
			rounds = append(rounds, round)
		}
		l := loop(nil, rounds...)
		began := time.Now()
		require.NoError(t, l.Start(6))
		require.Equal(t, 18*ms, time.Since(began), "callers warm at a time")
		require.Equal(t, [2][3]int{{2, 2, 2}, {2, 2, 2}}, made, "of the warm-up")
		made = [2][3]int{}
		<-time.After(time.Second) // idle time does not count
		began = time.Now()
		require.NoError(t, l.Run(t.Context(), n))
		require.Equal(t, 300*ms, time.Since(began), "both call at a time")
		require.Equal(t, [2][3]int{{100, 100, 100}, {34, 33, 33}}, made, "300 of the quick caller, 100 of the slow, in turn")
		require.EqualValues(t, n, l.Latency.Count())
		require.EqualValues(t, n+12, l.Begun())
		requireQuantile(t, ms, l.Latency, 0.75)
		requireQuantile(t, 3*ms, l.Latency, 0.76)
		require.InEpsilon(t, 2, l.InFlight(), 0.001)
	})
}

// Planned starts come at their time, whatever became of earlier ones, and latencies count from the plan. The caller of
// the second start finds its first call stalled for 40 ms, that of the third for 60 ms more than it may be late.
func TestPlannedStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stalls := []time.Duration{50 * ms, ms, 120 * ms, ms, ms}
		began, i := time.Now(), -1
		var starts []time.Duration
		plan := []time.Duration{10 * ms, 20 * ms, 100 * ms, 110 * ms, 200 * ms, 300 * ms}
		l := planned([][]time.Duration{plan}, 1, func() error {
			i++
			starts = append(starts, time.Since(began))
			return taking(stalls[i])()
		})
		require.NoError(t, l.Start(0))
		require.NoError(t, l.Run(t.Context(), 6))
		require.Equal(t, []time.Duration{10 * ms, 60 * ms, 100 * ms, 220 * ms, 300 * ms}, starts)
		require.EqualValues(t, 1, l.Skipped, "the start at 110 ms found its caller busy until 220 ms")
		require.EqualValues(t, 5, l.Latency.Count())
		require.InEpsilon(t, (50+41+120+21+1)*ms, l.Latency.Sum(), 0.001, "from the planned starts")
		require.EqualValues(t, 6, l.Lateness.Count())
		require.InEpsilon(t, (0+40+0+110+20+0)*ms, l.Lateness.Sum(), 0.001, "of the skipped start too")
	})
}

// Where a stall of the network is what is measured, no start is skipped.
func TestPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		call := func(context.Context) error {
			if first {
				first = false
				return taking(200 * ms)()
			}
			return nil
		}
		figures := NewFigures(true)
		l := New(Spec{Rounds: [][]func(context.Context) error{{call}}, Figures: figures, Patient: true,
			Plan: [][]time.Duration{{10 * ms, 20 * ms, 30 * ms}}})
		require.NoError(t, l.Start(0))
		require.NoError(t, l.Run(t.Context(), 3))
		require.Zero(t, figures.Skipped)
		require.EqualValues(t, 3, figures.Latency.Count())
		require.InEpsilon(t, (200+190+180)*ms, figures.Latency.Sum(), 0.001, "from the planned starts")
	})
}

// A plan has so many starts at that rate, of all callers alike; a seed decides it.
func TestPlan(t *testing.T) {
	const n, rate = 100_000, 1000
	plan := func(seed uint64) [][]time.Duration { return Plan(4, rate, n, seed, false) }
	require.Equal(t, plan(1), plan(1))
	require.NotEqual(t, plan(1), plan(2))
	all, squares := []time.Duration{}, 0.0
	for _, starts := range plan(1) {
		require.InEpsilon(t, n/4, len(starts), 0.03)
		require.True(t, slices.IsSorted(starts))
		for i := 1; i < len(starts); i++ {
			squares += math.Pow((starts[i]-starts[i-1]).Seconds()*rate/4, 2)
		}
		all = append(all, starts...)
	}
	require.Len(t, all, n)
	require.InEpsilon(t, n/rate, slices.Max(all).Seconds(), 0.02)
	require.InEpsilon(t, 2, squares/n, 0.05, "gaps of an exponential distribution have a mean square of 2; equal ones, 1")
}

// Starts that go round the callers leave each one time for long calls: all planned calls are made, where a random
// caller's would be skipped. They come at the same times.
func TestPlanInTurn(t *testing.T) {
	const callers, rate, n = 100, 500, 4000
	completed := func(inTurn bool) (share float64) {
		synctest.Test(t, func(t *testing.T) {
			l := planned(Plan(callers, rate, n, 1, inTurn), callers, taking(100*ms))
			require.NoError(t, l.Start(1))
			_, err := l.During(t.Context(), 300*ms, 4*time.Second, func(bool) {})
			require.NoError(t, err)
			share = float64(l.Latency.Count()) / float64(l.Planned)
		})
		return share
	}
	require.InDelta(t, 1, completed(true), 0.02)
	require.Less(t, completed(false), 0.8)
	starts := func(inTurn bool) []time.Duration {
		return slices.Sorted(slices.Values(slices.Concat(Plan(callers, rate, n, 1, inTurn)...)))
	}
	require.Equal(t, starts(false), starts(true))
}

// A window of planned starts knows how many were due in it. Callers who can't keep up complete fewer, drop some, and
// begin late. A loop that is never told to begin has recorded nothing.
func TestWindowOfAPlan(t *testing.T) {
	for took, reaches := range map[time.Duration]float64{ms: 1, 20 * ms: 0.5} { // 10 callers of 20 ms make 500 a second
		synctest.Test(t, func(t *testing.T) {
			plan := Plan(10, 1000, 2000, 1, false)
			l := planned(plan, 10, taking(took))
			require.NoError(t, l.Start(1))
			_, err := l.During(t.Context(), 300*ms, 500*ms, func(bool) {})
			require.NoError(t, err)
			due := 0
			for _, at := range slices.Concat(plan...) {
				if at >= 300*ms && at <= 800*ms {
					due++
				}
			}
			require.EqualValues(t, due, l.Planned)
			require.InDelta(t, reaches, float64(l.Latency.Count())/float64(due), 0.03)
			late, _ := l.Lateness.Quantile(0.9)
			require.Equal(t, reaches < 1, late > 5*ms, "begins late by %v", late)
			require.Equal(t, reaches < 1, l.Skipped > 0, "skipped: %d", l.Skipped)

			l = planned(Plan(2, 1000, 10, 1, false), 2, taking(took))
			require.NoError(t, l.Start(1))
			require.NoError(t, l.Finish())
			require.Zero(t, l.Lateness.Count()+l.Skipped+l.Planned)
		})
	}
}

// A call that fails or panics ends all, and nothing stays: synctest fails if a goroutine does.
func TestFailedCalls(t *testing.T) {
	broken := errors.New("broken")
	for _, n := range []int{1, 3} {
		for _, plan := range [][][]time.Duration{nil, Plan(n, 1000, 100, 1, false)} {
			synctest.Test(t, func(t *testing.T) {
				var made, at atomic.Int64
				fault := func() error { return broken }
				l := planned(plan, n, func() error {
					if made.Add(1) == at.Load() {
						return fault()
					}
					return taking(ms)()
				})
				failAt := func(call int64) {
					if c, ok := l.Loop.(*callers); ok {
						c.failed.Store(nil)
					}
					made.Store(0)
					at.Store(call)
				}
				during := func(context.Context, int64) error {
					_, err := l.During(t.Context(), 0, 50*ms, func(bool) {})
					return err
				}
				for _, do := range []func(context.Context, int64) error{l.Run, during} {
					failAt(10)
					require.NoError(t, l.Start(0))
					require.ErrorIs(t, do(t.Context(), 100), broken)
					require.LessOrEqual(t, made.Load(), int64(10+n), "no more calls, but those under way")
					failAt(1)
					require.EqualError(t, l.Start(2), "warm-up: broken")
				}
				if n > 1 {
					failAt(5)
					fault = func() error { panic("broken") }
					require.NoError(t, l.Start(0))
					require.ErrorContains(t, l.Run(t.Context(), 100), "panic: broken")
				}
			})
		}
	}
}

// Whichever call fails, of those that warm up, that lead in and that count, its loop ends with it: that of one caller,
// of several, and of a plan.
func TestEachCallThatFails(t *testing.T) {
	const warm, each = 5, 12 // calls that a caller makes to warm up, to lead in, and in the window
	broken := errors.New("broken")
	for why, test := range map[string]struct {
		callers int
		plan    [][]time.Duration
	}{
		"one caller":  {callers: 1},
		"two callers": {callers: 2},
		"a plan":      {1, [][]time.Duration{every(2*each, ms)}},
	} {
		n := test.callers
		loops := map[string]func(*testing.T, tested) error{
			"Run": func(t *testing.T, l tested) error { return l.Run(t.Context(), int64(2*each*n)) },
			"During": func(t *testing.T, l tested) error {
				_, err := l.During(t.Context(), each*ms+ms/2, each*ms, func(bool) {})
				return err
			},
		}
		if n == 1 && test.plan == nil { // as package timing does
			loops["Call"] = func(_ *testing.T, l tested) (err error) {
				for i := 0; i < 2*each && err == nil; i++ {
					l.Loop.(*OneCaller).Timed(i >= each)
					err = l.Loop.(*OneCaller).Call()
				}
				return err
			}
		}
		for loop, do := range loops {
			for fails := 1; fails <= n*(warm+2*each-1); fails++ {
				synctest.Test(t, func(t *testing.T) {
					var made atomic.Int64
					l := planned(test.plan, n, func() error {
						if made.Add(1) == int64(fails) {
							return broken
						}
						return taking(ms)()
					})
					err := l.Start(warm)
					require.Equal(t, fails <= n*warm, err != nil, "%s, %s: call %d fails, and warming up says %v", why, loop, fails,
						err)
					if err == nil {
						err = do(t, l)
					}
					require.ErrorIs(t, err, broken, "%s, %s: call %d fails, of %d that were made", why, loop, fails, made.Load())
					require.LessOrEqual(t, made.Load(), int64(max(fails+n-1, n*warm)), "%s, %s: calls until one failed", why, loop)
				})
			}
		}
	}
}

// every has so many starts, so far apart.
func every(n int, gap time.Duration) (starts []time.Duration) {
	for i := range n {
		starts = append(starts, time.Duration(i)*gap)
	}
	return starts
}

// A lead-in makes the calls of its time before the window opens, and these don't count: of one caller, of several, and
// at a rate.
func TestLeadIns(t *testing.T) {
	const lead, length = 30, 50 // ms, and so calls
	for why, test := range map[string]struct {
		callers int
		plan    [][]time.Duration
	}{
		"one caller":       {callers: 1},
		"three callers":    {callers: 3},
		"a plan":           {1, [][]time.Duration{every(100, ms)}},
		"a plan for three": {3, slices.Repeat([][]time.Duration{every(100, ms)}, 3)},
	} {
		synctest.Test(t, func(t *testing.T) {
			var made atomic.Int64
			var opened, shut int64
			n := test.callers
			l := planned(test.plan, n, func() error {
				made.Add(1)
				return taking(ms / 2)()
			})
			per := 2 // calls in a millisecond, of each caller
			if test.plan != nil {
				per = 1
			}
			require.NoError(t, l.Start(0))
			_, err := l.During(t.Context(), lead*ms-ms/4, length*ms, func(open bool) {
				if open {
					opened = made.Load()
				} else {
					shut = made.Load()
				}
			})
			require.NoError(t, err)
			require.InDelta(t, n*per*lead, opened, float64(n), "%s: calls before the window", why)
			require.InDelta(t, n*per*length, shut-opened, float64(n), "%s: calls in the window", why)
			require.InDelta(t, n*per*length, l.Latency.Count(), float64(n), "%s: calls that count", why)
		})
	}
}

// Whoever has started callers may end them: when a benchmark does no more, or when its time is over.
func TestEndedEarly(t *testing.T) {
	for _, n := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			l := several(n, taking(ms))
			require.NoError(t, l.Start(0))
			require.NoError(t, l.Finish())
			require.NoError(t, l.Finish())
			require.Zero(t, l.Begun())

			ctx, cancel := context.WithTimeout(t.Context(), 10*ms+ms/2)
			defer cancel()
			require.NoError(t, l.Start(0))
			require.NoError(t, l.Run(ctx, 1e6), "what was made counts")
			require.EqualValues(t, 11*n, l.Latency.Count())

			require.NoError(t, l.Start(0))
			_, err := l.During(ctx, time.Hour, time.Hour, func(bool) {})
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	}
}

// Callers whose calls take equally long begin one after the other, each in its part of the time over which they are
// spread, as the seed says: then as many calls are counted in each window.
func TestCallersAreSpread(t *testing.T) {
	const n, took = 5, 150 * ms
	spread := func(seed uint64, length time.Duration) (calls int64, at []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			round := []func(context.Context) error{func(context.Context) error {
				mu.Lock()
				at = append(at, time.Duration(time.Now().UnixNano()))
				mu.Unlock()
				return taking(took)()
			}}
			f := NewFigures(false)
			l := New(Spec{Rounds: slices.Repeat([][]func(context.Context) error{round}, n), Figures: f, Spread: took,
				Seed: seed})
			require.NoError(t, l.Start(2))
			require.Equal(t, took, l.Warmed())
			began := time.Duration(time.Now().UnixNano())
			_, err := l.During(t.Context(), 2*took, length, func(bool) {})
			require.NoError(t, err)
			at = slices.Sorted(slices.Values(at))[2*n:]
			for i := range at[:n] {
				at[i] -= began
			}
			calls = f.Latency.Count()
			require.InEpsilon(t, time.Duration(calls)*took, f.Latency.Sum(), 0.002, "each latency is whole")
		})
		return calls, at[:n]
	}
	_, first := spread(1, 10*took)
	_, again := spread(1, 10*took)
	_, other := spread(2, 10*took)
	require.Equal(t, first, again)
	require.NotEqual(t, first, other)
	for i, at := range first {
		require.GreaterOrEqual(t, at, time.Duration(i)*took/n)
		require.LessOrEqual(t, at, time.Duration(i+1)*took/n)
	}
	for _, length := range []time.Duration{10 * took, 10*took + took/3, 12 * took} {
		calls, _ := spread(3, length)
		require.InDelta(t, n*float64(length)/float64(took), float64(calls), 1, "%v", length)
	}
}

// How long a warm call takes is the median of the callers' last: neither a cold call nor a single slow caller decides.
func TestWarmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rounds [][]func(context.Context) error
		for caller := range 5 {
			made := 0
			rounds = append(rounds, []func(context.Context) error{func(context.Context) error {
				made++
				switch {
				case made == 1:
					return taking(100 * ms)()
				case caller == 3:
					return taking(time.Minute)()
				}
				return taking(time.Duration(1+caller) * ms)()
			}})
		}
		for callers, want := range map[int]time.Duration{5: 3 * ms, 1: 3 * ms} {
			l := loop(nil, rounds[2:2+1]...)
			if callers > 1 {
				l = loop(nil, rounds...)
			}
			require.NoError(t, l.Start(2))
			require.Equal(t, want, l.Warmed())
			require.NoError(t, l.Finish())
		}
	})
}

// Callers of long calls warm for half a second, and make one call at least.
func TestWarmingEnds(t *testing.T) {
	for took, want := range map[time.Duration]int64{ms: 64, 200 * ms: 3, time.Minute: 1} {
		for _, callers := range []int64{1, 3} {
			synctest.Test(t, func(t *testing.T) {
				l := several(int(callers), taking(took))
				require.NoError(t, l.Start(64))
				require.Equal(t, callers*want, l.Begun())
				require.NoError(t, l.Finish())
			})
		}
	}
}

// A call that fails ends a window at once, however long it is.
func TestFailedCallEndsItsWindow(t *testing.T) {
	broken := errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		l := several(3, func() error { return cmp.Or(taking(10*ms)(), broken) })
		require.NoError(t, l.Start(0))
		began := time.Now()
		_, err := l.During(t.Context(), time.Minute, time.Hour, func(bool) {})
		require.ErrorIs(t, err, broken)
		require.Equal(t, 10*ms, time.Since(began))
	})
}

// Little's law sees what latencies alone don't: a lost window, calls that are counted twice, a caller that never calls
// and one too many. At a rate, the loop counts how many calls are under way at once.
func TestLittlesLawSeesFaults(t *testing.T) {
	const n, took, length = 8, 20 * ms, 300 * ms
	of := func(n int, call func() error) [][]func(context.Context) error {
		return slices.Repeat([][]func(context.Context) error{{func(context.Context) error { return call() }}}, n)
	}
	plain := taking(took)
	for why, test := range map[string]struct {
		callers [][]func(context.Context) error
		plan    [][]time.Duration
		wall    time.Duration // of all windows, as a record has it
		fault   func(*Figures)
		obeys   bool
	}{
		"as it is":                      {of(n, plain), nil, length, nil, true},
		"a lost window":                 {of(n, plain), nil, 2 * length, nil, false},
		"counted twice":                 {of(n, plain), nil, length, twice, false},
		"a caller never calls":          {append(of(n-1, plain), of(1, taking(time.Minute))...), nil, length, nil, false},
		"a caller too many":             {of(n+1, plain), nil, length, nil, false},
		"at a rate":                     {of(n, plain), full(n), length, nil, true},
		"a rate of one caller too many": {of(n+1, plain), full(n + 1), length, nil, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := loop(test.plan, test.callers...)
			require.NoError(t, l.Start(0))
			_, err := l.During(t.Context(), took+ms/2, length, func(bool) {})
			require.NoError(t, err)
			if test.fault != nil {
				test.fault(l.Figures)
			}
			p := verdict.Process{InFlight: [3]float64{float64(l.Latency.Sum()) / float64(test.wall), n, n}}
			p.Most[0] = l.Most.Load()
			if test.plan != nil {
				for arm := range p.Loads {
					p.Loads[arm].Completed = 1
				}
			}
			require.Equal(t, test.obeys, verdict.Plan{Callers: n}.Obeys(p), "%s: %v under way, %d at most", why, p.InFlight[0],
				p.Most[0])
		})
	}
}

// twice counts all calls once more.
func twice(f *Figures) { f.Latency.hist.Merge(hdrhistogram.Import(f.Latency.hist.Export())) }

// full plans calls of all callers every 20 ms, which all are under way at once.
func full(callers int) [][]time.Duration {
	var plan []time.Duration
	for at := ms; at < 400*ms; at += 20 * ms {
		plan = append(plan, at)
	}
	return slices.Repeat([][]time.Duration{plan}, callers)
}

// What waits for a start and times its call is in each figure at a rate, and allocates nothing.
func TestPlannedStartsAllocateNothing(t *testing.T) {
	const n = 10_000
	l := planned(Plan(4, 100_000, n, 1, false), 4, taking(0))
	require.NoError(t, l.Start(1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, l.Run(t.Context(), n))
	runtime.ReadMemStats(&after)
	require.NoError(t, l.Finish())
	require.Less(t, after.Mallocs-before.Mallocs, uint64(n/10))
}

// Who waits for a planned start that is far away is not waited for, when a call has failed or the time is over.
func TestPlannedStartsEnd(t *testing.T) {
	broken := errors.New("broken")
	for reason, fault := range map[string]error{"a call fails": broken, "the time is over": nil} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				l := planned([][]time.Duration{{time.Second}, {time.Hour}}, 2, func() error {
					cancel()
					return fault
				})
				if fault != nil {
					ctx = t.Context()
				}
				require.NoError(t, l.Start(0))
				began := time.Now()
				require.ErrorIs(t, l.Run(ctx, 2), fault)
				require.Equal(t, time.Second, time.Since(began))
				require.EqualValues(t, 1, l.Begun())
			})
		})
	}
}
