package stacktest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/odd"
	"github.com/rpcbench/rpcbench/internal/workload"
)

const plannedWarmUp = warmRounds * 100 // calls

// BenchmarkPlanned is planned starts of a call that does nothing: what the loop adds to each row.
func BenchmarkPlanned(b *testing.B) {
	Benchmark(b, rpcbench.Workload{Rate: 10_000, Conns: 1}, stub(idle))
}

// TestUnitsFollowTheRows: a terminal shows the rows first, and then the units that they have.
func TestUnitsFollowTheRows(t *testing.T) {
	out, err := child(t, "-test.bench=^BenchmarkPlanned$", "-test.benchtime=1000x")
	require.NoError(t, err, out)
	before, after, ok := strings.Cut(out, "\nBenchmarkPlanned")
	require.True(t, ok, out)
	require.NotContains(t, before, "Unit ")
	require.Contains(t, after, "\nUnit req/s better=higher\n")
	require.Contains(t, after, "\nUnit dropped better=lower\n")
	require.Contains(t, after, "\nUnit late-p99-ns better=lower\n")
	require.NotContains(t, after, "base-ratio", "no row has it")
}

// A row of planned starts takes as long as its plan, also if a caller has no time for some of them.
func TestPlannedRow(t *testing.T) {
	const n, rate = 400, 1000
	for reason, test := range map[string]struct {
		workload rpcbench.Workload
		stalls   bool
	}{
		"every start finds a caller":            {rpcbench.Workload{Rate: rate, Conns: 1}, false},
		"the only caller is busy in the middle": {rpcbench.Workload{Rate: rate, Callers: 1}, true},
	} {
		t.Run(reason, func(t *testing.T) {
			var made atomic.Int64
			stack := clientOf(func(c rpcbench.Users) rpcbench.Client {
				made.Store(0)
				return odd.Around(c, func(rpcbench.User, rpcbench.Call) rpcbench.Call {
					return func(context.Context) error {
						if made.Add(1) == warmRounds+200 && test.stalls {
							<-time.After(200 * time.Millisecond)
						}
						return nil
					}
				})
			})
			r := bench(t, fmt.Sprint(n, "x"), func(b *testing.B) { Benchmark(b, test.workload, stack) })
			require.Equal(t, n, r.N)
			require.GreaterOrEqual(t, r.T, n*time.Second/rate*2/3, "the plan's time")
			require.InEpsilon(t, (n-r.Extra["dropped"])/r.T.Seconds(), r.Extra["req/s"], 1e-3)
			if test.stalls {
				require.GreaterOrEqual(t, r.Extra["dropped"], 50.0)
				require.GreaterOrEqual(t, r.Extra["late-p95-ns"], 5e7, "starts that were dropped were late")
			}
			require.Positive(t, r.Extra["cpu-ns/op"])
		})
	}
}

// TestEachCallerHasItsCall: a Call that two goroutines make at a time fails.
func TestEachCallerHasItsCall(t *testing.T) {
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
	r := bench(t, "10x", func(b *testing.B) {
		made = nil // package testing comes again
		Benchmark(b, rpcbench.Workload{Rate: 1000, Conns: 1}, stack)
	})
	require.Equal(t, 10, r.N)
	require.Len(t, made, 2*4*100, "the figures' and the bytes', four of each caller")
	require.Len(t, sent, 100)
	for _, n := range made {
		require.GreaterOrEqual(t, n.Load(), int64(warmRounds/4), "each is warmed")
	}
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
