package stacktest

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/cpu"
	"github.com/rpcbench/rpcbench/internal/fixture"
	"github.com/rpcbench/rpcbench/internal/latency"
	"github.com/rpcbench/rpcbench/internal/users"
)

// BenchmarkParallel times callers that create users at the same time over config.Conns connections: a closed loop, in which a
// caller calls again as soon as it has its reply. Each caller goes round four users. ns/op is wall time over all ops. Beside it
// and the other figures of BenchmarkCreateUser, whose bytes are counted with all callers calling, it reports
//
//	req/s       ops per second
//	cpu-share   the part of the machine's CPU time that this process used. Near 1, more callers would not make more calls:
//	            the row says how much CPU a call takes. Absent with fewer than a hundred ops per caller, and where the
//	            system doesn't tell
func BenchmarkParallel(b *testing.B, stack rpcbench.Stack, config rpcbench.Config, callers int) {
	b.Helper()
	closedLoop(stack, config, callers, user(0)).benchmark(b)
}

// BenchmarkOpenLoop starts calls that create users at a fixed rate per second, from 1 to 1e6, whether or not earlier ones
// have their reply, over config.Conns connections. Up to 256 calls are under way at a time, and up to 4096 more starts wait
// for one to end; further starts are dropped. One op is a planned start, so ns/op is 1e9/rate and tells nothing about the
// stack. Beside it, and the bytes and allocations of a call made, it reports
//
//	p50-ns, p95-ns, p99-ns   from the planned start of a call until it ends: a stall makes slow calls of all that were due
//	                         meanwhile; absent with fewer than ten calls beyond
//	achieved-req/s           calls made per second: less than rate where the stack could not keep up
//	drops                    starts that were dropped; percentiles are of the others
//	late-p50-ns, late-p95-ns, late-p99-ns
//	                         how late a caller began its call: the generator's timer and the hand-over to a goroutine,
//	                         which p50-ns, p95-ns and p99-ns include; absent with fewer than ten starts beyond
//	generator-bound          1 where late-p99-ns is more than a tenth of p99-ns: the tail is not the stack's alone
//	cpu-ns/op                user and system time of the process per call made, the generator's too
//
// When no call has begun for ten seconds the fixture is closed. A call that fails ends the benchmark, and no row is printed.
func BenchmarkOpenLoop(b *testing.B, stack rpcbench.Stack, config rpcbench.Config, rate float64) {
	b.Helper()
	openLoop(stack, config, rate, sleeper(b)).benchmark(b)
}

const (
	openCallers = 256
	openQueue   = 4096 // starts; with the callers' own, a stall of 0.4 s at 10,000 starts per second drops none
)

// callers call at the same time: in a closed loop, or at planned starts.
type callers struct {
	stack   rpcbench.Stack
	config  rpcbench.Config
	n, each int      // callers, and calls that each of them goes round
	prepare preparer // call i is of caller i/each
	hang    time.Duration

	rate float64             // of planned starts
	wait func(time.Duration) // for a planned start; nil in a closed loop
}

func closedLoop(stack rpcbench.Stack, config rpcbench.Config, n int, prepare preparer) callers {
	// Of four calls, a reply that sticks to a connection is the wrong one.
	return callers{stack: stack, config: config, n: n, each: 4, prepare: prepare, hang: hangLimit}
}

func openLoop(stack rpcbench.Stack, config rpcbench.Config, rate float64, wait func(time.Duration)) callers {
	return callers{stack: stack, config: config, n: openCallers, each: 1, prepare: user(0), hang: hangLimit, rate: rate, wait: wait}
}

// sleeper returns a function that waits, until the benchmark ends.
func sleeper(b *testing.B) func(time.Duration) {
	b.Helper()
	s, err := latency.NewSleeper()
	if err != nil {
		b.Fatalf("rpcbench: %v", err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s.Sleep
}

func (c callers) loop() (*latency.Loop, error) {
	if c.wait == nil {
		return latency.NewClosed(), nil
	}
	return latency.NewOpen(c.rate, openQueue, c.wait)
}

// rounds prepares the calls of each caller. A multiplexed stack binds each call to the next connection in turn. So that all calls
// of a caller are of one connection, calls are prepared for a multiple of the connections, and some never made.
func (c callers) rounds(f *rpcbench.Fixture) ([][]func(context.Context) error, error) {
	conns := max(1, c.config.Conns)
	rounds := make([][]func(context.Context) error, (c.n+conns-1)/conns*conns)
	for j := range c.each {
		for i := range rounds {
			call, err := c.prepare(f, i*c.each+j)
			if err != nil {
				return nil, err
			}
			rounds[i] = append(rounds[i], call)
		}
	}
	return rounds[:c.n], nil
}

// ready returns a loop whose callers are warm.
func (c callers) ready(tb testing.TB, f *rpcbench.Fixture) *latency.Loop {
	tb.Helper()
	loop, err := c.loop()
	skipOrFail(tb, c.stack, err)
	rounds, err := c.rounds(f)
	skipOrFail(tb, c.stack, err)
	c.guard(tb, f, loop, func() error { return loop.Start(warmRounds, rounds...) })
	return loop
}

// guard fails if do fails, and closes the fixture under calls that hang.
func (c callers) guard(tb testing.TB, f *rpcbench.Fixture, loop *latency.Loop, do func() error) {
	tb.Helper()
	dog := fixture.WatchAll(f, c.hang, loop.Begun)
	defer dog.Stop()
	if err := do(); err != nil {
		tb.Fatalf("rpcbench: %s: %v%s", c.stack.Name, err, dog.Note())
	}
}

func (c callers) benchmark(b *testing.B) {
	b.Helper()
	defer noRow(b, c.stack)
	Procs(b)
	if c.n < 1 {
		b.Fatalf("rpcbench: %s: %d callers: at least one is needed", c.stack.Name, c.n)
	}
	c.config = placed().config(c.config)
	f := Start(b, c.stack, c.config)
	loop := c.ready(b, f)
	accepted := f.Accepted()
	var cpuStart, cpuEnd time.Duration
	var cpuKnown bool
	c.guard(b, f, loop, func() error {
		defer loop.Finish() // also when the server's process can't be asked
		server := watchServer(b, f)
		runtime.GC()
		b.ReportAllocs()
		heap := newHeap()
		b.ResetTimer()
		cpuStart, cpuKnown = cpu.Time()
		err := c.run(b, loop)
		b.StopTimer()
		cpuEnd, _ = cpu.Time()
		if err == nil {
			// Per call made, until the last has ended: package testing would divide by planned starts.
			heap.report(b, loop.Latency.Count())
			server.report(b, int(loop.Latency.Count()))
		}
		return err
	})
	made := loop.Latency.Count()
	reportReconnects(b, c.stack, f.Accepted()-accepted, made)
	percentiles(b, "", &loop.Latency)
	if cpuKnown {
		b.ReportMetric(float64(cpuEnd-cpuStart)/float64(made), "cpu-ns/op")
	}
	bytesOf := int64(warmRounds * c.n)
	if c.wait != nil {
		reportPlanned(b, loop)
		bytesOf = int64(min(warmRounds*users.Round, max(1, c.rate/4))) // starts of a quarter of a second
	} else {
		b.ReportMetric(float64(made)/b.Elapsed().Seconds(), "req/s")
		if cpuKnown && b.N >= 100*c.n { // else the ends of the run would be much of it
			b.ReportMetric(cpuShare(cpuEnd-cpuStart, b.Elapsed(), runtime.NumCPU()), "cpu-share")
		}
	}
	// With all callers calling: over HTTP/2 the calls of a connection share pings and window updates.
	countBytes(b, c.stack, c.config, func(f *rpcbench.Fixture) func() int64 {
		loop := c.ready(b, f)
		return func() int64 {
			c.guard(b, f, loop, func() error { return loop.Run(bytesOf) })
			return loop.Latency.Count()
		}
	})
}

// run makes the ops.
func (c callers) run(b *testing.B, loop *latency.Loop) error {
	b.Helper()
	if c.wait == nil {
		return loop.Run(int64(b.N))
	}
	for b.Loop() {
		if loop.Next() != nil {
			break
		}
	}
	return loop.Finish() // with the error of Next
}

// cpuShare is the part of the machine's CPU time that the process used.
func cpuShare(used, wall time.Duration, cores int) float64 {
	return float64(used) / float64(wall) / float64(cores)
}

// reportPlanned reports what only loops of planned starts have.
func reportPlanned(b *testing.B, loop *latency.Loop) {
	b.Helper()
	percentiles(b, "late-", &loop.Lateness)
	p99, ok := loop.Latency.Quantile(0.99)
	if late, _ := loop.Lateness.Quantile(0.99); ok && late > p99/10 {
		b.ReportMetric(1, "generator-bound")
	}
	b.ReportMetric(loop.Achieved(), "achieved-req/s")
	b.ReportMetric(float64(loop.Drops), "drops")
}

// BenchmarkOpenLoopEmpty is BenchmarkOpenLoop around calls that do nothing, without a stack: what the generator adds to the
// percentiles of every other row.
func BenchmarkOpenLoopEmpty(b *testing.B, rate float64) {
	b.Helper()
	Procs(b)
	c := openLoop(rpcbench.Stack{Name: "none"}, rpcbench.Config{}, rate, sleeper(b))
	c.prepare = func(*rpcbench.Fixture, int) (rpcbench.Call, error) {
		return func(context.Context) error { return nil }, nil
	}
	loop := c.ready(b, nil)
	b.ReportAllocs()
	if err := c.run(b, loop); err != nil {
		b.Fatalf("rpcbench: %v", err)
	}
	percentiles(b, "", &loop.Latency)
	reportPlanned(b, loop)
}
