package stacktest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/latency"
	"github.com/rpcbench/rpcbench/internal/odd"
	"github.com/rpcbench/rpcbench/internal/workload"
)

const (
	openCallers = 256
	openWarmUp  = warmRounds * openCallers
)

// BenchmarkOpenHarness is the open loop around a call that does nothing: what generator and callers add to each row.
func BenchmarkOpenHarness(b *testing.B) {
	Benchmark(b, rpcbench.Workload{Rate: 10_000, Conns: 1}, stub(func(int64) error { return nil }))
}

// TestUnitsFollowTheRows: a terminal shows the rows first, and then the units that they have.
func TestUnitsFollowTheRows(t *testing.T) {
	out, err := child(t, "-test.bench=^BenchmarkOpenHarness$", "-test.benchtime=1000x")
	require.NoError(t, err, out)
	before, after, ok := strings.Cut(out, "\nBenchmarkOpenHarness")
	require.True(t, ok, out)
	require.NotContains(t, before, "Unit ")
	require.Contains(t, after, "\nUnit req/s better=higher\n")
	require.Contains(t, after, "\nUnit drops better=lower\n")
	require.Contains(t, after, "\nUnit late-p99-ns better=lower\n")
	require.NotContains(t, after, "base-ratio", "no row has it")
}

// In virtual time the generator oversleeps and calls take so long to the nanosecond.
func TestOpenLoopReport(t *testing.T) {
	for _, c := range []struct {
		reason         string
		starts         int
		over, took     time.Duration
		late, p50, p99 time.Duration // 0 is absent
		bound          bool
	}{
		{"the generator is late by less than a tenth of p99", 1000, 100 * time.Microsecond, 1000 * time.Microsecond,
			100 * time.Microsecond, 1100 * time.Microsecond, 1100 * time.Microsecond, false},
		{"the generator is late by more than a tenth of p99", 1000, 200 * time.Microsecond, 1000 * time.Microsecond,
			200 * time.Microsecond, 1200 * time.Microsecond, 1200 * time.Microsecond, true},
		{"too few starts for a p99", 999, 200 * time.Microsecond, 1000 * time.Microsecond,
			0, 1200 * time.Microsecond, 0, false},
		{"too few starts for anything", 19, 200 * time.Microsecond, 1000 * time.Microsecond,
			0, 0, 0, false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var loop *latency.Loop
			synctest.Test(t, func(t *testing.T) {
				var err error
				loop, err = latency.NewOpen(100, 1, func(d time.Duration) { <-time.After(d + c.over) })
				require.NoError(t, err)
				require.NoError(t, loop.Start(0, []func(context.Context) error{func(context.Context) error {
					<-time.After(c.took)
					return nil
				}}))
				for range c.starts {
					require.NoError(t, loop.Next())
				}
				require.NoError(t, loop.Finish())
			})
			got := testing.Benchmark(func(b *testing.B) {
				percentiles(b, "", &loop.Latency)
				reportPlanned(b, loop)
			}).Extra
			for unit, want := range map[string]time.Duration{"late-p99-ns": c.late, "p50-ns": c.p50, "p99-ns": c.p99} {
				if want == 0 {
					require.NotContains(t, got, unit)
				} else {
					require.InEpsilon(t, float64(want), got[unit], 0.001, unit)
				}
			}
			require.InEpsilon(t, 100, got["req/s"], 1e-9)
			require.Contains(t, got, "drops")
			require.Zero(t, got["drops"])
			require.NotContains(t, got, "overloaded")
			if c.bound {
				require.Equal(t, 1.0, got["generator-bound"])
			} else {
				require.NotContains(t, got, "generator-bound")
			}
		})
	}
}

// BenchmarkOpenCallers is a stack whose Calls fail when two goroutines make one; TestEachCallerHasItsCall runs it.
func BenchmarkOpenCallers(b *testing.B) {
	forChildren(b)
	var made []*atomic.Int64
	sent := map[string]bool{}
	stack := clientOf(func(c rpcbench.Users) rpcbench.Client {
		return odd.Around(c, func(u rpcbench.User, _ rpcbench.Call) rpcbench.Call {
			sent[u.Name] = true
			n, busy := new(atomic.Int64), new(atomic.Bool)
			made = append(made, n)
			return func(context.Context) error {
				if !busy.CompareAndSwap(false, true) {
					return errors.New("made by two goroutines at a time")
				}
				n.Add(1)
				busy.Store(false)
				return nil
			}
		})
	})
	Benchmark(b, rpcbench.Workload{Rate: 1000, Conns: 1}, stack)
	require.Len(b, made, 2*openCallers, "the figures' and the bytes'")
	require.Len(b, sent, 100)
	for _, n := range made {
		require.GreaterOrEqual(b, n.Load(), int64(warmRounds), "each is warmed")
	}
}

func TestEachCallerHasItsCall(t *testing.T) {
	out, err := child(t, "-test.bench=^BenchmarkOpenCallers$", "-test.benchtime=10x")
	require.NoError(t, err, out)
}

// A long queue may take longer than any call is allowed to: calls that end keep the fixture open.
func TestWatchdogBitesWithoutProgress(t *testing.T) {
	f := Start(t, fake{}.stack(), rpcbench.Config{})
	synctest.Test(t, func(t *testing.T) {
		var done atomic.Int64
		hung := errors.New("hung")
		dog := workload.Watch(time.Second, done.Load, f.Close)
		for range 10 {
			<-time.After(900 * time.Millisecond)
			require.False(t, dog.Note(hung) != hung)
			done.Add(1)
		}
		<-time.After(2100 * time.Millisecond)
		require.True(t, dog.Note(hung) != hung)
	})
	_, err := f.Users.CreateUser(t.Context(), rpcbench.Sample(0, 0))
	require.Error(t, err, "the fixture is closed")
}

const surplus = 700 // starts beyond those that callers and queue hold

// BenchmarkOpenTooSlow is a stack that answers nothing until the last start is planned; TestSlowStackDropsStarts runs
// it.
func BenchmarkOpenTooSlow(b *testing.B) {
	forChildren(b)
	answer := make(chan struct{})
	stack := stub(func(n int64) error {
		if n > openWarmUp {
			<-answer
		}
		return nil
	})
	starts := 0
	wait := func(d time.Duration) {
		if starts++; starts == openCallers+openQueue+surplus {
			close(answer)
		}
		if d > 0 {
			<-time.After(d)
		}
	}
	row{stack: stack, Workload: workload.Workload{Rate: latency.MaxRate, Conns: 1}, hang: hangLimit,
		wait: wait}.benchmark(b)
}

func TestSlowStackDropsStarts(t *testing.T) {
	require.Equal(t, 5052, openCallers+openQueue+surplus)
	row := figuresOf(t, "-test.bench=^BenchmarkOpenTooSlow$", "-test.benchtime=5052x")
	require.GreaterOrEqual(t, row["drops"], float64(surplus-1), "the last start may find callers free")
	require.LessOrEqual(t, row["drops"], float64(surplus+openCallers), "the queue is filled whoever takes from it")
	require.Equal(t, 1.0, row["overloaded"], "the percentiles lack the dropped")
	require.Contains(t, row, "req/s")
	require.Less(t, row["req/s"], 0.9*latency.MaxRate, "what was dropped was not achieved")
}

// unpreparing is a client that prepares no calls but those that connect.
func unpreparing(c rpcbench.Users) rpcbench.Client {
	return odd.Client{Users: c, OnPrepare: func(u rpcbench.User) (rpcbench.Call, error) {
		if odd.Connects(u) {
			return c.PrepareUser(u)
		}
		return nil, errors.New("broken")
	}}
}

// dialsAgain is a stack that makes each call after the first n over another connection.
func dialsAgain(n int64) rpcbench.Stack {
	var made atomic.Int64
	return clientOf(func(c rpcbench.Users) rpcbench.Client {
		other := *c.(*fakeClient)
		other.http = &http.Client{Transport: other.http.Transport.(*http.Transport).Clone()}
		return odd.Around(c, func(_ rpcbench.User, call rpcbench.Call) rpcbench.Call {
			return func(ctx context.Context) error {
				if made.Add(1) > n {
					defer other.http.CloseIdleConnections()
					_, err := other.CreateUser(ctx, rpcbench.Sample(0, 0))
					return err
				}
				return call(ctx)
			}
		})
	})
}
