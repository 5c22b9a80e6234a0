package stacktest

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/measure/loop"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/testkit"
)

// ledger counts the calls of each user, for each client that a stack was asked for.
type ledger struct {
	mu      sync.Mutex
	clients []map[string]int
	cost    func() // of a call
}

func (l *ledger) stack() rpcbench.Stack {
	return uncrossed(func(c rpcbench.Users, handle func()) rpcbench.Client {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.clients = append(l.clients, map[string]int{})
		calls := l.clients[len(l.clients)-1]
		return testkit.Around(c, func(u rpcbench.User, _ rpcbench.Call) rpcbench.Call {
			return func(context.Context) error {
				handle()
				if l.cost != nil {
					l.cost()
				}
				l.mu.Lock()
				defer l.mu.Unlock()
				calls[u.Email]++
				return nil
			}
		})
	})
}

// bench runs a benchmark of so many iterations in this process.
func bench(t *testing.T, benchtime string, loop func(*testing.B)) testing.BenchmarkResult {
	t.Helper()
	f := flag.Lookup("test.benchtime")
	before := f.Value.String()
	require.NoError(t, flag.Set("test.benchtime", benchtime))
	defer func() { require.NoError(t, flag.Set("test.benchtime", before)) }()
	return testing.Benchmark(loop)
}

// TestAnOpIsOneCallOfTheNextUser: the loop makes one call in each op, of sixteen users in turn.
func TestAnOpIsOneCallOfTheNextUser(t *testing.T) {
	const round = 16
	require.Equal(t, round, corpus.Round)
	var l ledger
	r := bench(t, "64x", func(b *testing.B) { Benchmark(b, l.stack(), rpcbench.Workload{}) })
	require.Equal(t, 64, r.N)
	require.Len(t, l.clients, 2, "one for the figures and one for the bytes")
	require.Len(t, l.clients[0], round, "users")
	for email, calls := range l.clients[0] {
		require.Equal(t, warmRounds+64/round, calls, "calls of %s, those of the warm-up among them", email)
	}
}

// TestPercentilesAreThoseOfTheirNames, of a thousand known latencies.
func TestPercentilesAreThoseOfTheirNames(t *testing.T) {
	ops := loop.NewRecorder()
	for i := range 1000 {
		ops.Record(time.Duration(i+1) * time.Microsecond)
	}
	r := bench(t, "1x", func(b *testing.B) { row{found: map[string]float64{}}.percentiles(b, ops) })
	for unit, want := range map[string]float64{"p50-ns": 500_000, "p95-ns": 950_000, "p99-ns": 990_000} {
		require.InEpsilon(t, want, r.Extra[unit], 0.002, unit)
	}
}

// TestCPUPerCall: a call that uses a millisecond of CPU, however long it takes, has a row that says so, with one caller
// and with several.
func TestCPUPerCall(t *testing.T) {
	if _, known := cpu.Time(); !known {
		t.Skip("the system doesn't tell")
	}
	const takes = 500 * time.Microsecond
	var turn sync.Mutex // one call at a time: the process's CPU time is all that can be read
	l := ledger{cost: func() {
		turn.Lock()
		defer turn.Unlock()
		spend(takes)
	}}
	for name, c := range map[string]struct {
		ops      int
		workload rpcbench.Workload
	}{
		"one caller":   {100, rpcbench.Workload{}},
		"four callers": {400, rpcbench.Workload{Callers: 4, Conns: 1}}, // as many as cpu-share needs
	} {
		before, _ := cpu.Time()
		r := bench(t, fmt.Sprintf("%dx", c.ops), func(b *testing.B) { Benchmark(b, l.stack(), c.workload) })
		after, _ := cpu.Time()
		require.Equal(t, c.ops, r.N)
		require.GreaterOrEqual(t, r.Extra["cpu-ns/op"], 0.99*float64(takes), name)
		used := r.Extra["cpu-ns/op"] * float64(c.ops)
		require.LessOrEqual(t, used, float64(after-before), "%s: all that this process used", name)
		if share, ok := r.Extra["cpu-share"]; ok {
			all := float64(r.T) * float64(runtime.NumCPU())
			require.InEpsilon(t, r.Extra["cpu-ns/op"]*float64(r.N)/all, share, 0.05, "of the time of all cores")
		}
		require.Equal(t, name == "four callers", r.Extra["cpu-share"] > 0, name)
	}
}

// spend uses CPU time, if the system tells it.
func spend(time time.Duration) {
	for start, known := cpu.Time(); known; {
		if now, _ := cpu.Time(); now-start >= time {
			return
		}
	}
}

// TestAllocationsPerCall: a call that allocates three times has rows that say so, as package testing counts.
func TestAllocationsPerCall(t *testing.T) {
	const times, size = 3, 1024
	kept := make([][]byte, times)
	var mu sync.Mutex
	l := ledger{cost: func() {
		mu.Lock()
		defer mu.Unlock()
		for i := range kept {
			kept[i] = make([]byte, size)
		}
	}}
	for name, loop := range map[string]func(*testing.B){
		"one caller":       func(b *testing.B) { Benchmark(b, l.stack(), rpcbench.Workload{}) },
		"four callers":     func(b *testing.B) { Benchmark(b, l.stack(), rpcbench.Workload{Callers: 4, Conns: 1}) },
		"without its link": func(b *testing.B) { Benchmark(b, l.stack(), rpcbench.Workload{Link: "4ms/100Mbps"}) },
	} {
		r := bench(t, "1000x", loop)
		require.EqualValues(t, times, r.AllocsPerOp(), name)
		require.GreaterOrEqual(t, r.AllocedBytesPerOp(), int64(times*size), name)
		require.Less(t, r.AllocedBytesPerOp(), int64(times*size+200), name)
		if name != "without its link" {
			require.InEpsilon(t, float64(r.T)/float64(r.N), r.Extra["ns/op"], 1e-9, name)
			require.InDelta(t, float64(r.MemBytes)/float64(r.N), r.Extra["B/op"], 10, name)
			require.InDelta(t, float64(r.MemAllocs)/float64(r.N), r.Extra["allocs/op"], 1, name)
		}
		if name == "four callers" {
			require.InEpsilon(t, float64(r.N)/r.T.Seconds(), r.Extra["req/s"], 1e-6)
		}
	}
}

// A row of a stream, or of large messages, has the MB/s that package testing prints, and its reader is told.
func TestDataPerSecond(t *testing.T) {
	var l ledger
	for _, c := range []struct {
		why  string
		w    rpcbench.Workload
		want int64
	}{{"10 kB", rpcbench.Workload{Payload: "10kB"}, 0}, {"100 kB", rpcbench.Workload{Payload: "100kB"}, 100_000},
		{"of four callers", rpcbench.Workload{Payload: "100kB", Callers: 4, Conns: 1}, 100_000}} {
		r := bench(t, "20x", func(b *testing.B) { Benchmark(b, l.stack(), c.w) })
		require.Equal(t, c.want, r.Bytes, c.why)
	}
}

// TestWarmUpIsNotTimed: callers that warm for long have no less time for it, whatever their ops take.
func TestWarmUpIsNotTimed(t *testing.T) {
	const callers, each = 4, 10 * time.Millisecond
	var began time.Time
	stack := clientOf(func(c rpcbench.Users) rpcbench.Client {
		var made atomic.Int64
		began = time.Now()
		return testkit.Around(c, func(_ rpcbench.User, call rpcbench.Call) rpcbench.Call {
			return func(context.Context) error {
				if made.Add(1) <= callers*warmRounds {
					<-time.After(each)
				}
				return nil
			}
		})
	})
	r := bench(t, "100x", func(b *testing.B) { Benchmark(b, stack, rpcbench.Workload{Callers: callers, Conns: 1}) })
	require.LessOrEqual(t, r.T+warmRounds*each, time.Since(began))
}
