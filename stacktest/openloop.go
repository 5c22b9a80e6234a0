package stacktest

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/cpu"
	"github.com/rpcbench/rpcbench/internal/latency"
	"github.com/rpcbench/rpcbench/internal/users"
)

const (
	openCallers = 256
	openQueue   = 4096 // starts; with the callers' own, a stall of 0.4 s at 10,000 starts per second drops none
)

// BenchmarkOpenLoop starts calls that create users at a fixed rate per second, from 1 to 1e6, whether or not earlier ones
// have their reply, over config.Conns connections. Up to 256 calls are under way at a time and up to 4096 more starts wait
// for one to end; what comes on top is dropped. One op is a planned start, so ns/op is 1e9/rate and tells nothing about
// the stack. Beside it, and B/op, allocs/op, sent-B/op and recv-B/op, which are per call made, it reports
//
//	p50-ns, p95-ns, p99-ns   from the planned start of a call until it ends, so that a stall makes slow calls of all that
//	                         were due meanwhile; absent with fewer than ten calls beyond
//	achieved-req/s           calls made per second: less than rate where the stack could not keep up
//	drops                    starts that were dropped; percentiles are of the others
//	late-p50-ns, late-p95-ns, late-p99-ns
//	                         how late a caller began its call, which p50-ns, p95-ns and p99-ns include: the generator's timer
//	                         and the hand-over to a goroutine; absent with fewer than ten starts beyond
//	generator-bound          1 where late-p99-ns is more than a tenth of p99-ns: the tail is not the stack's alone
//	cpu-ns/op                user and system time of the process, the generator's too, per call made; absent where the
//	                         system doesn't tell
//
// When no call has ended for ten seconds the fixture is closed. A call that fails ends the benchmark, and no row is printed.
func BenchmarkOpenLoop(b *testing.B, stack rpcbench.Stack, config rpcbench.Config, rate float64) {
	b.Helper()
	sleeper, err := latency.NewSleeper()
	if err != nil {
		b.Fatalf("rpcbench: %s: %v", stack.Name, err)
	}
	defer sleeper.Close()
	openLoop(b, stack, config, rate, sleeper.Sleep, hangLimit)
}

func openLoop(b *testing.B, stack rpcbench.Stack, config rpcbench.Config, rate float64, wait func(time.Duration), hang time.Duration) {
	b.Helper()
	defer noRow(b, stack)
	Procs(b)
	loop, err := latency.NewOpenLoop(rate, openQueue, wait)
	if err != nil {
		b.Fatalf("rpcbench: %s: %v", stack.Name, err)
	}
	config = placed().config(b, stack, config)
	f := Start(b, stack, config)
	startCallers(b, f, loop)
	accepted := f.Accepted()
	finish := sync.OnceValue(loop.Finish)
	defer finish()
	dog := watchCalls(f, hang, loop.Done)
	defer dog.Stop()
	server := watchServer(b, f)
	runtime.GC()
	b.ReportAllocs()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)

	cpuStart, cpuKnown := cpu.Time()
	for b.Loop() {
		if loop.Next() != nil {
			break
		}
	}
	err = finish() // the error of Next too
	cpuEnd, _ := cpu.Time()
	dog.Stop()

	if err != nil {
		b.Fatalf("rpcbench: %s: %v%s", stack.Name, err, dog.note())
	}
	runtime.ReadMemStats(&after)
	made := loop.Latency.Count()
	server.report(b, int(made))
	reportReconnects(b, stack, f.Accepted()-accepted, made)
	reportOpenLoop(b, loop)
	// Per call made, until the last has ended: package testing would divide by planned starts. Whole numbers, as it has them.
	b.ReportMetric(float64((after.TotalAlloc-before.TotalAlloc)/uint64(made)), "B/op")
	b.ReportMetric(float64((after.Mallocs-before.Mallocs)/uint64(made)), "allocs/op")
	if cpuKnown {
		b.ReportMetric(float64(cpuEnd-cpuStart)/float64(made), "cpu-ns/op")
	}
	countOpenBytes(b, stack, config, rate, wait)
}

// startCallers returns when every caller of loop has warmed its call.
func startCallers(b *testing.B, f *rpcbench.Fixture, loop *latency.OpenLoop) {
	b.Helper()
	calls := make([]func(context.Context) error, openCallers)
	for i := range calls {
		call, err := f.Client.Prepare(users.Sample(i%users.Round, 0))
		if err != nil {
			b.Fatalf("rpcbench: %s: prepare: %v", f.Stack.Name, err)
		}
		calls[i] = call
	}
	dog := watchCalls(f, hangLimit, loop.Done)
	defer dog.Stop()
	if err := loop.Start(warmRounds, calls...); err != nil {
		b.Fatalf("rpcbench: %s: %v%s", f.Stack.Name, err, dog.note())
	}
}

// BenchmarkOpenLoopEmpty is BenchmarkOpenLoop around calls that do nothing, without a stack: what the generator adds to the
// percentiles of every other row.
func BenchmarkOpenLoopEmpty(b *testing.B, rate float64) {
	b.Helper()
	Procs(b)
	sleeper, err := latency.NewSleeper()
	if err != nil {
		b.Fatalf("rpcbench: %v", err)
	}
	defer sleeper.Close()
	loop, err := latency.NewOpenLoop(rate, openQueue, sleeper.Sleep)
	if err != nil {
		b.Fatalf("rpcbench: %v", err)
	}
	nothing := func(context.Context) error { return nil }
	if err := loop.Start(warmRounds, slices.Repeat([]func(context.Context) error{nothing}, openCallers)...); err != nil {
		b.Fatalf("rpcbench: %v", err)
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = loop.Next()
	}
	if err := loop.Finish(); err != nil {
		b.Fatalf("rpcbench: %v", err)
	}
	reportOpenLoop(b, loop)
}

// countOpenBytes reports what a call that is made sends and receives at the rate: over HTTP/2 calls that meet share pings and
// window updates.
func countOpenBytes(b *testing.B, stack rpcbench.Stack, config rpcbench.Config, rate float64, wait func(time.Duration)) {
	b.Helper()
	loop, err := latency.NewOpenLoop(rate, openQueue, wait)
	if err != nil {
		b.Fatalf("rpcbench: %s: %v", stack.Name, err)
	}
	wire := new(wireCounter)
	f := Start(b, stack, wire.on(config))
	startCallers(b, f, loop)
	dog := watchCalls(f, hangLimit, loop.Done)
	defer dog.Stop()
	wire.begin()
	starts := int(min(warmRounds*users.Round, max(1, rate/4))) // those of a quarter of a second
	for range starts {
		if loop.Next() != nil {
			break
		}
	}
	if err := loop.Finish(); err != nil {
		b.Fatalf("rpcbench: %s: counting bytes: %v%s", stack.Name, err, dog.note())
	}
	wire.report(b, int(loop.Latency.Count()))
}

func reportOpenLoop(b *testing.B, loop *latency.OpenLoop) {
	b.Helper()
	reportPercentiles(b, &loop.Latency)
	percentiles(b, "late-", &loop.Lateness)
	p99, ok := loop.Latency.Quantile(0.99)
	if late, _ := loop.Lateness.Quantile(0.99); ok && late > p99/10 {
		b.ReportMetric(1, "generator-bound")
	}
	b.ReportMetric(loop.Achieved(), "achieved-req/s")
	b.ReportMetric(float64(loop.Drops), "drops")
}

// watchCalls closes the fixture when no call has ended for as long as hang, twice that at most: with many callers, all of
// them hang, or the last one does.
func watchCalls(f *rpcbench.Fixture, hang time.Duration, done func() int64) *watchdog {
	w := &watchdog{}
	seen := done()
	w.Timer = time.AfterFunc(time.Hour, func() {
		if now := done(); now != seen {
			seen = now
			w.Reset(hang)
			return
		}
		w.bit.Store(true)
		_ = f.Close()
	})
	w.Reset(hang) // not before it knows its own timer
	return w
}
