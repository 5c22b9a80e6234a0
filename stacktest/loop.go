package stacktest

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/cpu"
	"github.com/rpcbench/rpcbench/internal/fixture"
	"github.com/rpcbench/rpcbench/internal/latency"
	"github.com/rpcbench/rpcbench/internal/relay"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
)

const (
	warmRounds = 16 // how often every call is made before anything is measured
	hangLimit  = 10 * time.Second

	openCallers = 256
	openQueue   = 4096 // waiting starts; a stall of 0.4 s at 10,000 per second then drops none
)

// BenchmarkCreateUser times one caller that creates users over one connection. One op is one Call: encode, send,
// validate, answer, decode, compare. The figures are of client and server together:
//   - ns/op, p50-ns, p95-ns, p99-ns: wall time of an op
//   - cpu-ns/op: CPU time of the process per op
//   - B/op, allocs/op: memory that is allocated per op
//   - sent-B/op, recv-B/op: bytes that the client sends and receives, ciphertext if config asks for TLS
//
// With -server process B/op, allocs/op and cpu-ns/op are of the client alone. The server's own begin with "server-".
//
// Calls have context.Background on every stack, since a deadline costs one stack more than another. A call that fails,
// or hangs for ten seconds, ends the benchmark, and no row is printed.
func BenchmarkCreateUser(b *testing.B, stack rpcbench.Stack, config rpcbench.Config) {
	b.Helper()
	oneCaller(stack, config, workload.User(0)).benchmark(b)
}

// BenchmarkParallel times callers that create users at the same time over config.Conns connections. Each caller calls
// again as soon as it has its reply, so ns/op is wall time divided by the ops of all callers. These figures are added to
// those of BenchmarkCreateUser; the last two need a hundred ops per caller:
//   - req/s: calls per second, of all callers
//   - cpu-share: how much of the machine's CPU time this process had
//   - in-flight: how many calls were under way, on average: the sum of their latencies over the time that all took.
//     Fewer than callers means that callers stood idle between calls, or at the end
func BenchmarkParallel(b *testing.B, stack rpcbench.Stack, config rpcbench.Config, callers int) {
	b.Helper()
	closedLoop(stack, config, callers, workload.User(0)).benchmark(b)
}

// BenchmarkOpenLoop starts calls at a fixed rate per second, from 1 to 1e6, whether or not earlier calls have ended.
// The calls create users over config.Conns connections. At most 256 calls are under way; 4096 more starts wait for one
// of them to end, and further starts are dropped. One op is a planned start. Ignore ns/op, which is 1e9/rate.
//
// Read the percentiles: p50-ns, p95-ns and p99-ns count from the planned start of a call to its end. A stall therefore
// shows in every call that was due meanwhile. These figures are added to those of BenchmarkCreateUser:
//   - achieved-req/s: calls that were made per second
//   - drops: starts that were dropped
//   - overloaded: 1 if a start was dropped. The percentiles then leave out the worst: what was dropped has no end
//   - late-p50-ns, late-p95-ns, late-p99-ns: time from the planned start until a free caller began the call
//   - generator-bound: 1 if late-p99-ns is more than a tenth of p99-ns. The row then tells about the timer
//
// If no call begins for ten seconds, the fixture is closed.
func BenchmarkOpenLoop(b *testing.B, stack rpcbench.Stack, config rpcbench.Config, rate float64) {
	b.Helper()
	openLoop(stack, config, rate, sleeper(b)).benchmark(b)
}

// BenchmarkOpenLoopEmpty is BenchmarkOpenLoop around calls that do nothing, without a stack. The row shows what the
// generator adds to every other row.
func BenchmarkOpenLoopEmpty(b *testing.B, rate float64) {
	b.Helper()
	Procs(b)
	r := openLoop(rpcbench.Stack{Name: "none"}, rpcbench.Config{}, rate, sleeper(b))
	r.prepare = func(*rpcbench.Fixture, int) (rpcbench.Call, error) {
		return func(context.Context) error { return nil }, nil
	}
	loop, _ := r.ready(b, nil)
	b.ReportAllocs()
	orFail(b, r.stack.Name, r.open(b, nil, loop, nil))
	percentiles(b, "", &loop.Latency)
}

// row describes what a row times: one caller, several callers in a closed loop, or planned starts.
type row struct {
	stack   rpcbench.Stack
	config  rpcbench.Config
	callers int
	each    int              // different calls of a caller: a reply that is sent again is then a wrong one
	prepare workload.Prepare // call i is of caller i/each
	warm    int              // calls that each caller makes before the timed ones, and for counting bytes
	hang    time.Duration
	timed   func(row, *testing.B, *rpcbench.Fixture, *latency.Loop, rounds) error // makes the timed ops

	dials int64 // connections that an op opens
	link  bool  // over an emulated link: see BenchmarkLink

	rate float64             // of planned starts
	wait func(time.Duration) // waits for a planned start; nil without planned starts
}

// rounds are the calls of each caller.
type rounds = [][]func(context.Context) error

func oneCaller(stack rpcbench.Stack, config rpcbench.Config, prepare workload.Prepare) row {
	return row{stack: stack, config: config, prepare: prepare, hang: hangLimit,
		callers: 1, each: corpus.Round, warm: warmRounds * corpus.Round, timed: row.serial}
}

func closedLoop(stack rpcbench.Stack, config rpcbench.Config, callers int, prepare workload.Prepare) row {
	return row{stack: stack, config: config, prepare: prepare, hang: hangLimit,
		callers: callers, each: 4, warm: warmRounds, timed: row.closed}
}

func openLoop(stack rpcbench.Stack, config rpcbench.Config, rate float64, wait func(time.Duration)) row {
	return row{stack: stack, config: config, prepare: workload.User(0), hang: hangLimit,
		callers: openCallers, each: 1, warm: warmRounds, timed: row.open, rate: rate, wait: wait}
}

// sleeper returns a function that waits, until the benchmark ends.
func sleeper(b *testing.B) func(time.Duration) {
	b.Helper()
	sleep, stop, err := latency.NewSleeper()
	orFail(b, "open loop", err)
	b.Cleanup(func() { _ = stop() })
	return sleep
}

func (r row) benchmark(b *testing.B) {
	b.Helper()
	defer noRow(b, r.stack)
	Procs(b)
	if r.callers < 1 {
		b.Fatalf("rpcbench: %s: %d callers: at least one is needed", r.stack.Name, r.callers)
	}
	r.config = placed().config(b, r.stack, r.config)
	f := Start(b, r.stack, r.config)
	loop, calls := r.ready(b, f)
	defer loop.Finish()
	before, lateBefore := f.Accepted(), late()
	runtime.GC() // what starting and warming left is not the loop's
	b.ReportAllocs()

	reportServer := watchServer(b, f)
	cpuStart, cpuKnown := cpu.Time()
	err := r.timed(r, b, f, loop, calls)
	cpuEnd, _ := cpu.Time()
	orFail(b, r.stack.Name, err)
	n := loop.Latency.Count()
	reportServer(uint64(n))
	reportReconnects(b, r.stack, f.Accepted()-before-n*r.dials, n, late()-lateBefore)
	percentiles(b, "", &loop.Latency)
	if r.link {
		return
	}
	if cpuKnown {
		metric(b, float64(cpuEnd-cpuStart)/float64(n), "cpu-ns/op")
	}
	r.countBytes(b)
	profile(b, func(begin func()) int64 { return r.pass(b, n, begin) })
}

// ready prepares the calls of each caller, and returns when connections, pools and caches are warm. A multiplexed stack
// binds each call to the next connection in turn. ready therefore prepares calls for a multiple of the connections, so
// that the calls of one caller share a connection. The surplus is never made.
func (r row) ready(tb testing.TB, f *rpcbench.Fixture) (*latency.Loop, rounds) {
	tb.Helper()
	loop, err := latency.NewClosed(), error(nil)
	if r.wait != nil {
		loop, err = latency.NewOpen(r.rate, openQueue, r.wait)
	}
	skipOrFail(tb, r.stack, err)
	conns := max(1, r.config.Conns)
	all := make(rounds, (r.callers+conns-1)/conns*conns)
	for j := range r.each {
		for i := range all {
			call, err := r.prepare(f, i*r.each+j)
			skipOrFail(tb, r.stack, err)
			all[i] = append(all[i], call)
		}
	}
	all = all[:r.callers]
	orFail(tb, r.stack.Name, r.guard(f, loop, func() error { return loop.Start(r.warm, all...) }))
	return loop, all
}

// guard runs do, and closes the fixture if no call of the loop begins for r.hang.
func (r row) guard(f *rpcbench.Fixture, loop *latency.Loop, do func() error) error {
	dog := fixture.Watch(f, r.hang, loop.Begun.Load)
	defer dog.Stop()
	if err := do(); err != nil {
		return fmt.Errorf("%w%s", err, dog.Note())
	}
	return nil
}

// serial makes the ops of one caller in this goroutine.
func (r row) serial(b *testing.B, f *rpcbench.Fixture, loop *latency.Loop, all rounds) error {
	_ = loop.Finish() // which has warmed the calls
	calls, ops := all[0], &loop.Latency
	ctx := context.Background()
	dog := fixture.Watch(f, r.hang, nil)
	defer dog.Stop()
	n := 0
	last := time.Now()
	armed := last
	for b.Loop() {
		if err := calls[n%len(calls)](ctx); err != nil {
			return fmt.Errorf("call %d: %w%s", n, err, dog.Note())
		}
		n++
		now := time.Now()
		ops.Record(now.Sub(last))
		last = now
		if now.Sub(armed) > r.hang/4 {
			dog.Reset(r.hang)
			armed = now
		}
	}
	return nil
}

// closed makes the ops of several callers, which share b.N: b.Loop serves one goroutine only.
func (r row) closed(b *testing.B, f *rpcbench.Fixture, callers *latency.Loop, _ rounds) error {
	loop := func(n int) error { return r.guard(f, callers, func() error { return callers.Run(int64(n)) }) }
	start, known := cpu.Time()
	b.ResetTimer()
	err := loop(b.N)
	b.StopTimer()
	end, _ := cpu.Time()
	n := callers.Latency.Count()
	metric(b, float64(n)/b.Elapsed().Seconds(), "req/s")
	if n >= int64(100*r.callers) { // else the ends of the run would be much of it
		metric(b, callers.InFlight(), "in-flight")
		if known {
			metric(b, float64(end-start)/float64(b.Elapsed())/float64(runtime.NumCPU()), "cpu-share")
		}
	}
	return err
}

// open plans the starts of the ops.
func (r row) open(b *testing.B, f *rpcbench.Fixture, loop *latency.Loop, _ rounds) error {
	reportHeap := watchHeap(b)
	err := r.guard(f, loop, func() error {
		for b.Loop() {
			if loop.Next() != nil {
				break
			}
		}
		return loop.Finish() // with the error of Next
	})
	if err != nil {
		return err
	}
	reportHeap(loop.Latency.Count()) // package testing would stop before the last call ends, and divide by starts
	reportPlanned(b, loop)
	return nil
}

// noRow turns a panic into a failure, if deferred: package testing might print a row without ops before it dies.
func noRow(b *testing.B, stack rpcbench.Stack) {
	b.Helper()
	if p := recover(); p != nil {
		b.Fatalf("rpcbench: %s: panic: %v\n%s", stack.Name, p, debug.Stack())
	}
}

// reportReconnects fails the row if its n calls opened more connections than declared, or fewer. One more per ten
// thousand calls is allowed and printed: net/http drops a connection if a goroutine has not run for 50 ms. As many more
// are allowed as goroutines were late meanwhile, and a line says so: that is the machine's doing. b.Loop runs once, so
// the row can't be measured again.
func reportReconnects(b *testing.B, stack rpcbench.Stack, more, n, waits int64) {
	b.Helper()
	allowed := versus.Reconnects(n)
	if more < 0 || more > allowed+waits {
		b.Fatalf("rpcbench: %s: in %d timed calls the number of connections differs by %+d from what is declared; "+
			"up to %+d is allowed", stack.Name, n, more, allowed+waits)
	}
	if more > allowed {
		b.Logf("rpcbench: %s: %d reconnects in %d timed calls: goroutines waited 50 ms and longer for the machine, "+
			"so try again when it is quiet", stack.Name, more, n)
	}
	if more > 0 {
		metric(b, float64(more), "reconnects")
	}
}

// late is how often goroutines of this process have waited 50 ms or longer until they ran. The runtime keeps this
// figure anyway, of one wait in eight. A ticker would wake up amid the timed calls.
func late() (waits int64) {
	const sampled = 8
	scheduler := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(scheduler)
	if h := scheduler[0].Value; h.Kind() == metrics.KindFloat64Histogram {
		for i, n := range h.Float64Histogram().Counts {
			if h.Float64Histogram().Buckets[i] >= 0.05 {
				waits += sampled * int64(n)
			}
		}
	}
	return waits
}

// percentiles reports the percentiles for which there are enough ops, and for which the clock is fine enough.
func percentiles(b *testing.B, prefix string, ops *latency.Recorder) {
	began := time.Now()
	const ticks = 20 // a duration on a coarse clock needs at least so many, for an error of 5 %
	tick, coarse := timing.Tick(func() time.Duration { return time.Since(began) })
	for unit, q := range map[string]float64{"p50-ns": 0.50, "p95-ns": 0.95, "p99-ns": 0.99} {
		if d, ok := ops.Quantile(q); ok && (!coarse || d >= ticks*tick) {
			metric(b, float64(d), prefix+unit)
		}
	}
}

// reportPlanned reports the figures that only planned starts have.
func reportPlanned(b *testing.B, loop *latency.Loop) {
	percentiles(b, "late-", &loop.Lateness)
	p99, ok := loop.Latency.Quantile(0.99)
	if late, _ := loop.Lateness.Quantile(0.99); ok && late > p99/10 {
		metric(b, 1, "generator-bound")
	}
	metric(b, loop.Achieved(), "achieved-req/s")
	metric(b, float64(loop.Drops), "drops")
	if loop.Drops > 0 {
		metric(b, 1, "overloaded")
	}
}

// pass makes n untimed calls over a fixture of its own, and returns how many were made. It calls begin after the
// warm-up. All callers take part: over HTTP/2 the calls of a connection share pings and window updates.
func (r row) pass(b *testing.B, n int64, begin func()) int64 {
	b.Helper()
	f := Start(b, r.stack, r.config)
	var loop *latency.Loop
	asClient(b, func() { loop, _ = r.ready(b, f) })
	begin()
	orFail(b, r.stack.Name, r.guard(f, loop, func() error { return loop.Run(n) }))
	return loop.Latency.Count()
}

// few is how many calls a short pass makes.
func (r row) few() int64 {
	if r.wait != nil {
		return int64(min(warmRounds*corpus.Round, max(1, r.rate/4))) // starts of a quarter of a second
	}
	return int64(r.warm * r.callers)
}

// countBytes reports what one call sends and receives.
func (r row) countBytes(b *testing.B) {
	b.Helper()
	var wire relay.Counter
	var sent, received int64
	r.config.WrapClient = wrapped(r.config.WrapClient, wire.Wrap)
	n := r.pass(b, r.few(), func() { sent, received = wire.Sent.Load(), wire.Received.Load() })
	metric(b, float64(wire.Sent.Load()-sent)/float64(n), "sent-B/op")
	metric(b, float64(wire.Received.Load()-received)/float64(n), "recv-B/op")
}

// wrapped returns a function that applies inner, then outer. Either may be nil.
func wrapped(inner, outer func(net.Conn) net.Conn) func(net.Conn) net.Conn {
	switch {
	case inner == nil:
		return outer
	case outer == nil:
		return inner
	}
	return func(c net.Conn) net.Conn { return outer(inner(c)) }
}

// watchHeap returns a function that reports what has been allocated since, per op of n, in whole numbers as package
// testing does.
func watchHeap(b *testing.B) (report func(n int64)) {
	var before, after runtime.MemStats
	report = func(n int64) {
		runtime.ReadMemStats(&after)
		metric(b, float64((after.TotalAlloc-before.TotalAlloc)/uint64(n)), "B/op")
		metric(b, float64((after.Mallocs-before.Mallocs)/uint64(n)), "allocs/op")
	}
	runtime.ReadMemStats(&before)
	return report
}
