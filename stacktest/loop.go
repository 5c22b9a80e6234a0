package stacktest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/arms"
	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/measure/loop"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
)

const (
	warmRounds = 16 // how often every call is made before anything is measured
	hangLimit  = 10 * time.Second
	roundTrip  = 100 * time.Millisecond // of the link that counts round trips: the rest of a call does not matter then
	slowLink   = "100ms/10Gbps"
)

// Benchmark times a stack at a workload. One op is one Call: encode, send, validate, answer, decode, compare. The
// figures are of client and server together:
//   - ns/op, p50-ns, p95-ns, p99-ns: wall time of an op
//   - cpu-ns/op: CPU time of the process per op
//   - B/op, allocs/op: memory that is allocated per op
//   - sent-B/op, recv-B/op: bytes that the client sends and receives, ciphertext with TLS
//   - MB/s: data that the client sends, without encoding and headers, on a stream or from 100 kB a message on. As much
//     comes back
//
// If Callers is set, also to 1, the callers share the ops, and ns/op is wall time divided by the ops of all. These
// figures are added; the last two need a hundred ops per caller:
//   - req/s: calls per second, of all callers
//   - cpu-share: how much of the CPU time that it may use this process had
//   - in-flight: how many calls were under way, on average: the sum of their latencies over the time that all took.
//     Fewer than callers means that callers stood idle between calls, or at the end
//
// A row is of one process, whose callers call as fast as they can. A workload with a Rate, or with its server Apart,
// needs the command.
//
// With NewConn an op dials a client, prepares a call, makes the call and closes the client. A reset closes the
// connection, because its port would otherwise be taken for minutes. Each TLS handshake is a full one with the defaults
// of crypto/tls: a hybrid key exchange (X25519MLKEM768) and an ECDSA certificate on P-256, without a chain.
//
// A Link delays and limits the rate, but loses nothing and has no slow start. round-trips/op is added: the time of an
// op over a link with a round trip of 100 ms and no limit, divided by 100 ms. B/op, allocs/op and the bytes sent are
// measured without the link, which has buffers of its own. There is no cpu-ns/op, because a process that mostly waits
// is billed for waking.
//
// Calls have context.Background unless the workload has a deadline. A call that fails, or hangs for ten seconds, ends
// the benchmark, and no row is printed. Benchmark skips a stack that can't do the workload. It also skips a workload
// whose Procs is not the GOMAXPROCS of the row, which -cpu sets.
func Benchmark(b *testing.B, stack rpcbench.Stack, w rpcbench.Workload) {
	b.Helper()
	row{stack: stack, Workload: workload.Workload(w), hang: hangLimit}.benchmark(b)
}

// row is a benchmark of a stack at a workload, with the figures that it has reported.
type row struct {
	workload.Workload
	stack rpcbench.Stack
	hang  time.Duration
	warm  int // calls that each caller makes before the timed ones; 0 is what the workload needs

	found map[string]float64 // figures that were reported, by unit
}

// wanted says whether rows have a figure.
func wanted(unit string) bool { return current.reader == nil || current.reader.Wants(unit) }

// report adds a figure to the row, if it is wanted.
func (r row) report(b *testing.B, value float64, unit string) {
	b.Helper()
	if wanted(unit) {
		r.found[unit] = value
		b.ReportMetric(value, unit)
	}
}

// cost reports the time and the memory of the ops, which package testing prints and tells nobody.
func (r row) cost(b *testing.B, bytes, allocs uint64) {
	b.Helper()
	r.report(b, float64(b.Elapsed())/float64(b.N), "ns/op")
	r.report(b, float64(bytes/uint64(b.N)), "B/op")
	r.report(b, float64(allocs/uint64(b.N)), "allocs/op")
	if data := r.Data(); data > 0 && wanted("MB/s") {
		b.SetBytes(int64(data))
		r.found["MB/s"] = float64(data) * float64(b.N) / 1e6 / b.Elapsed().Seconds()
	}
}

func (r row) benchmark(b *testing.B) {
	b.Helper()
	defer noRow(b, r.stack)
	r.found = map[string]float64{}
	Procs(b)
	orFail(b, r.stack.Name, r.check())
	r.procs(b)
	current.announce(packages(r.stack), r.units())
	r.otherJSON(b)
	o := r.begin(b)
	r.start(b, o)
	defer o.Loop.Finish()
	before, lateBefore := o.Fixture.Accepted(), arms.Late()
	runtime.GC() // what starting and warming left is not the loop's
	b.ReportAllocs()

	cpuStart, cpuKnown := cpu.Time()
	err := r.guard(o, func() error {
		if r.Callers == 0 {
			return r.serial(b, o)
		}
		return r.several(b, o)
	})
	cpuEnd, _ := cpu.Time()
	orFail(b, r.stack.Name, err)
	n := o.Figures.Latency.Count()
	opened := o.Fixture.Accepted() - before
	if r.NewConn {
		opened -= n
	}
	r.reconnects(b, opened, n, arms.Late()-lateBefore)
	r.percentiles(b, o.Figures.Latency)
	counted := r.Workload
	counted.Link, counted.Procs = "", runtime.GOMAXPROCS(0)
	facts, err := counted.CountCalls(b.Context(), r.stack, int64(warmRounds*max(corpus.Round, r.Callers)))
	orFail(b, r.stack.Name, err)
	r.report(b, facts.Sent, "sent-B/op")
	r.report(b, facts.Received, "recv-B/op")
	switch {
	case r.Link != "": // it would disturb these
		r.report(b, float64(int64(facts.AllocBytes)), "B/op")
		r.report(b, float64(int64(facts.Allocs)), "allocs/op")
		r.roundTrips(b)
	case cpuKnown:
		r.report(b, float64(cpuEnd-cpuStart)/float64(n), "cpu-ns/op")
	}
	if current.reader != nil {
		current.reader.Row(b.Name(), r.found)
	}
}

// check refuses calls at a rate and a separate server, because single rows can't decide anything about these.
func (r row) check() error {
	if r.Rate != 0 || r.Apart {
		return errors.New("rows have no Rate and no server Apart: rpcbench run has both, and so has your own program " +
			"that calls cli.Main")
	}
	return r.Check()
}

// roundTrips reports how many a call waits for.
func (r row) roundTrips(b *testing.B) {
	b.Helper()
	r.Link, r.warm = slowLink, 3
	n := int64(3 * max(1, r.Callers))
	o := r.begin(b)
	r.start(b, o)
	began := time.Now()
	orFail(b, r.stack.Name, r.guard(o, func() error { return o.Loop.Run(context.Background(), n) }))
	r.report(b, float64(time.Since(began))/float64(n)/float64(roundTrip), "round-trips/op")
}

// procs skips a row whose label would name another GOMAXPROCS than its workload. It prints the reason once: package
// testing prints those of benchmarks with -v alone.
func (r row) procs(b *testing.B) {
	b.Helper()
	if procs := runtime.GOMAXPROCS(0); r.Procs != 0 && r.Procs != procs {
		reason := fmt.Sprintf("a workload needs GOMAXPROCS=%d, and its row has %d: add -cpu %[1]d", r.Procs, procs)
		if current.once(reason) {
			remark("%s", reason)
		}
		b.Skip("" + reason)
	}
	if unseen := workload.Unseen(r.stack); unseen != "" && current.once(unseen) {
		remark("%s", unseen)
	}
}

// otherJSON remarks once that the row's stack sends other JSON than the first one whose rows are of the same method.
func (r row) otherJSON(b *testing.B) {
	b.Helper()
	if r.stack.Serves == "" || !strings.Contains(r.stack.Protocol, "json") {
		return
	}
	first, known := current.first[r.stack.Serves]
	if !known {
		current.first[r.stack.Serves] = r.stack
	}
	if !known || first.Name == r.stack.Name || !current.once("JSON of "+r.stack.Name+" "+r.stack.Serves) {
		return
	}
	if differs, err := workload.OtherJSON(b.Context(), first, r.stack); err == nil && differs != "" { // else the row fails
		remark("%s", differs)
	}
}

// units are those that the row may have, with what benchstat is to assume of them.
func (r row) units() (units []string) {
	lower := "p50-ns p95-ns p99-ns cpu-ns/op sent-B/op recv-B/op reconnects"
	if r.Link != "" {
		lower += " round-trips/op"
	}
	for unit := range strings.FieldsSeq(lower) {
		units = append(units, unit+" better=lower")
	}
	if r.Callers > 0 {
		units = append(units, "req/s better=higher", "cpu-share assume=nothing", "in-flight assume=nothing")
	}
	return slices.DeleteFunc(units, func(line string) bool {
		unit, _, _ := strings.Cut(line, " ")
		return !wanted(unit)
	})
}

// warmth is how many calls each caller makes before the timed ones.
func (r row) warmth() int {
	switch {
	case r.warm > 0:
		return r.warm
	case r.Link != "": // few calls warm the connection, which is what matters
		link, _ := tap.FindLink(string(r.Link))
		return max(1, int(roundTrip/link.RTT))
	case r.Callers > 0:
		return warmRounds
	case r.NewConn:
		return 4 * corpus.Round
	}
	return corpus.Round * min(warmRounds, max(1, 200_000/max(1, r.Bytes()))) // 16 rounds of 100 kB would take a second
}

// begin opens the workload until the benchmark ends.
func (r row) begin(tb testing.TB) *workload.Open {
	tb.Helper()
	o, err := r.Open(tb.Context(), r.stack, workload.Setup{})
	skipOrFail(tb, r.stack, err)
	closing(tb, r.stack, o.Close)
	if _, streams := o.Fixture.Client.(rpcbench.Streamer); r.Stream && !streams {
		skipOrFail(tb, r.stack, fmt.Errorf("streams: %w", errors.ErrUnsupported))
	}
	return o
}

// start starts the callers, and returns when connections, pools and caches are warm.
func (r row) start(tb testing.TB, o *workload.Open) {
	tb.Helper()
	orFail(tb, r.stack.Name, r.guard(o, func() error { return o.Start(r.warmth()) }))
}

// guard runs do, and closes the fixture if no call begins for r.hang.
func (r row) guard(o *workload.Open, do func() error) error {
	return workload.Watched(r.hang, o.Loop.Begun, o.Fixture.Close, do)
}

// serial makes the ops of one caller in this goroutine.
func (r row) serial(b *testing.B, o *workload.Open) error {
	b.Helper()
	one := o.Loop.(*loop.OneCaller)
	one.Timed(true)
	allocated := workload.Allocated()
	for b.Loop() {
		if err := one.Call(); err != nil {
			return fmt.Errorf("call %d: %w", o.Figures.Latency.Count()-1, err)
		}
	}
	bytes, allocs := allocated()
	r.cost(b, bytes, allocs)
	return nil
}

// several makes the ops of several callers, which share b.N: b.Loop serves one goroutine only.
func (r row) several(b *testing.B, o *workload.Open) error {
	b.Helper()
	allocated := workload.Allocated()
	start, known := cpu.Time()
	b.ResetTimer()
	err := o.Loop.Run(context.Background(), int64(b.N))
	b.StopTimer()
	end, _ := cpu.Time()
	bytes, allocs := allocated()
	r.cost(b, bytes, allocs)
	n := o.Figures.Latency.Count()
	r.report(b, float64(n)/b.Elapsed().Seconds(), "req/s")
	if n >= int64(100*r.Callers) { // else the ends of the run would be much of it
		r.report(b, o.Loop.InFlight(), "in-flight")
		if known {
			r.report(b, float64(end-start)/float64(b.Elapsed())/environ.Cores(), "cpu-share")
		}
	}
	return err
}

// noRow turns a panic into a failure, if deferred: package testing might print a row without ops before it dies.
func noRow(b *testing.B, stack rpcbench.Stack) {
	b.Helper()
	if p := recover(); p != nil {
		b.Fatalf("%s: panic: %v\n%s", stack.Name, p, debug.Stack())
	}
}

// reconnects fails the row if its n calls opened more connections than declared, or fewer. One more per
// thousand calls is allowed and printed: net/http drops a connection if a goroutine has not run for 50 ms. As many more
// are allowed as goroutines were late meanwhile, and a line says so: that is the machine's doing. b.Loop runs once, so
// the row can't be measured again. Of a stack that declares Reconnects the row has their number, whatever it is.
func (r row) reconnects(b *testing.B, more, n, waits int64) {
	b.Helper()
	if r.stack.Traits.Reconnects {
		r.report(b, float64(more), "reconnects")
		return
	}
	allowed := arms.Reconnects(n)
	if more < 0 || more > allowed+waits {
		b.Fatalf("%s: in %d timed calls the number of connections differs by %+d from what is declared; "+
			"up to %+d is allowed", r.stack.Name, n, more, allowed+waits)
	}
	if more > allowed {
		b.Logf("%s: %d reconnects in %d timed calls: goroutines waited 50 ms and longer for the machine, "+
			"so try again when it is quiet", r.stack.Name, more, n)
	}
	if more > 0 {
		r.report(b, float64(more), "reconnects")
	}
}

// percentiles reports the percentiles for which there are enough ops, and for which the clock is fine enough.
func (r row) percentiles(b *testing.B, ops *loop.Recorder) {
	b.Helper()
	began := time.Now()
	const ticks = 20 // a duration on a coarse clock needs at least so many, for an error of 5%
	tick, coarse := timing.Tick(func() time.Duration { return time.Since(began) })
	for unit, q := range map[string]float64{"p50-ns": 0.50, "p95-ns": 0.95, "p99-ns": 0.99} {
		if d, ok := ops.Quantile(q); ok && (!coarse || d >= ticks*tick) {
			r.report(b, float64(d), unit)
		}
	}
}
