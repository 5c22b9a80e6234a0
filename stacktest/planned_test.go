package stacktest

import (
	"context"
	"errors"
	"fmt"
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
	require.NotContains(t, after, "round-trips/op", "no row has it")
}

// A row of planned starts takes as long as its plan, also if its only caller has no time for some of them.
func TestPlannedRow(t *testing.T) {
	const n, rate = 400, 1000
	var made atomic.Int64
	stack := clientOf(func(c rpcbench.Users) rpcbench.Client {
		made.Store(0)
		return odd.Around(c, func(rpcbench.User, rpcbench.Call) rpcbench.Call {
			return func(context.Context) error {
				if made.Add(1) == warmRounds+200 {
					<-time.After(200 * time.Millisecond)
				}
				return nil
			}
		})
	})
	r := bench(t, fmt.Sprint(n, "x"), func(b *testing.B) {
		Benchmark(b, rpcbench.Workload{Rate: rate, Callers: 1}, stack)
	})
	require.Equal(t, n, r.N)
	require.GreaterOrEqual(t, r.T, n*time.Second/rate*2/3, "the plan's time")
	require.InEpsilon(t, (n-r.Extra["dropped"])/r.T.Seconds(), r.Extra["req/s"], 1e-3)
	require.GreaterOrEqual(t, r.Extra["dropped"], 50.0)
	require.GreaterOrEqual(t, r.Extra["late-p95-ns"], 5e7, "starts that were dropped were late")
	require.Positive(t, r.Extra["cpu-ns/op"])
}

// A long queue may take longer than any call is allowed to: calls that end keep the fixture open.
func TestWatchdogBitesWithoutProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done, closed atomic.Int64
		hung := errors.New("hung")
		dog := workload.Watch(time.Second, done.Load, func() error { closed.Add(1); return nil })
		for range 10 {
			<-time.After(900 * time.Millisecond)
			require.False(t, dog.Note(hung) != hung)
			done.Add(1)
		}
		require.Zero(t, closed.Load())
		<-time.After(2100 * time.Millisecond)
		require.True(t, dog.Note(hung) != hung)
		require.EqualValues(t, 1, closed.Load())
	})
}
