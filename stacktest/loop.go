package stacktest

import (
	"cmp"
	"context"
	"net"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/cpu"
	"github.com/rpcbench/rpcbench/internal/fixture"
	"github.com/rpcbench/rpcbench/internal/latency"
	"github.com/rpcbench/rpcbench/internal/netwrap"
	"github.com/rpcbench/rpcbench/internal/users"
	"github.com/rpcbench/rpcbench/internal/versus"
)

const (
	warmRounds = 16 // rounds of all calls before anything is measured, through the measured calls; as many count bytes
	hangLimit  = fixture.HangLimit
)

// BenchmarkCreateUser times one caller that creates users over one connection (config.Conns changes nothing for a
// single caller). One op is one Call: encode, send, validate, answer, decode, compare. Beside ns/op, B/op and allocs/op
// of client and server together it reports
//
//	p50-ns, p95-ns, p99-ns   of the ops; absent with fewer than ten ops beyond, and below 20 ticks of a coarse clock
//	cpu-ns/op                user and system time of the process; absent where the system doesn't tell
//	sent-B/op, recv-B/op     on the client's connection, beneath TLS, from a pass of their own
//
// With -server the server is in another process. Then ns/op is still the whole call, B/op, allocs/op and cpu-ns/op are of the
// client alone, and server-B/op, server-allocs/op and server-cpu-ns/op are those of the server's process.
//
// The calls' context is context.Background on every stack: a deadline costs one stack more than another. A call that
// hangs for ten seconds is ended by closing its fixture. A call that fails ends the benchmark, and no row is printed.
func BenchmarkCreateUser(b *testing.B, stack rpcbench.Stack, config rpcbench.Config) {
	b.Helper()
	serial{stack: stack, config: config, prepare: user(0)}.benchmark(b)
}

// preparer prepares call i of a fixture. An error that is errors.ErrUnsupported skips the row.
type preparer func(f *rpcbench.Fixture, i int) (rpcbench.Call, error)

// user prepares calls that create users, with a payload of avatar bytes. The requests of users below 100 are of one length.
func user(avatar int) preparer {
	return func(f *rpcbench.Fixture, i int) (rpcbench.Call, error) {
		return fixture.Call(f, users.Sample(i%100, avatar))
	}
}

// serial is one caller that goes round its calls.
type serial struct {
	stack   rpcbench.Stack
	config  rpcbench.Config
	prepare preparer      // each call of the round; what a call reports as an error ends the benchmark
	dials   int64         // connections that each op opens
	rounds  int           // to warm, and to count bytes; 0 is warmRounds
	link    bool          // an op does little but wait: see BenchmarkLink
	hang    time.Duration // 0 is hangLimit
}

func (s serial) benchmark(b *testing.B) {
	b.Helper()
	defer noRow(b, s.stack)
	Procs(b)
	if s.hang == 0 {
		s.hang = hangLimit
	}
	s.config = placed().config(s.config)
	f := Start(b, s.stack, s.config)
	calls := s.warm(b, f)
	accepted := f.Accepted()
	ops := latency.New()
	ctx := context.Background()
	dog := fixture.Watch(f, s.hang)
	defer dog.Stop()
	runtime.GC() // what starting and warming left is not the loop's
	b.ReportAllocs()

	n := 0
	server := watchServer(b, f)
	cpuStart, cpuKnown := cpu.Time()
	last := time.Now()
	armed := last
	for b.Loop() {
		if err := calls[n%len(calls)](ctx); err != nil {
			b.Fatalf("rpcbench: %s: call %d: %v%s", s.stack.Name, n, err, dog.Note())
		}
		n++
		now := time.Now()
		ops.Record(now.Sub(last))
		last = now
		if now.Sub(armed) > s.hang/4 {
			dog.Reset(s.hang)
			armed = now
		}
	}
	cpuEnd, _ := cpu.Time()
	dog.Stop()
	server.report(b, n)

	reportReconnects(b, s.stack, f.Accepted()-accepted-int64(n)*s.dials, int64(n))
	percentiles(b, "", ops)
	if s.link {
		return
	}
	if cpuKnown {
		b.ReportMetric(float64(cpuEnd-cpuStart)/float64(n), "cpu-ns/op")
	}
	s.countBytes(b)
}

// reportReconnects fails the row if its n calls opened more connections than declared, or fewer. One more is allowed, or one in
// ten thousand calls, and printed. net/http gives a connection up when the goroutine that writes to it has not run for 50 ms
// (maxWriteWaitBeforeConnReuse), which is the machine's doing and costs that call about 100 µs.
func reportReconnects(b *testing.B, stack rpcbench.Stack, more, n int64) {
	b.Helper()
	if more < 0 || more > versus.Reconnects(n) {
		b.Fatalf("rpcbench: %s: %+d connections inside the timed loop of %d calls, against what is declared; %d more are allowed",
			stack.Name, more, n, versus.Reconnects(n))
	}
	if more > 0 {
		b.ReportMetric(float64(more), "reconnects")
	}
}

// noRow, deferred, makes a panic a failure: package testing might print a row of no iterations before it dies.
func noRow(b *testing.B, stack rpcbench.Stack) {
	b.Helper()
	if p := recover(); p != nil {
		b.Fatalf("rpcbench: %s: panic: %v\n%s", stack.Name, p, debug.Stack())
	}
}

// percentiles reports those that the sample, and the clock, carry.
func percentiles(b *testing.B, prefix string, ops *latency.Recorder) {
	b.Helper()
	began := time.Now()
	tick := latency.Tick(func() time.Duration { return time.Since(began) })
	for _, p := range []struct {
		unit string
		q    float64
	}{{"p50-ns", 0.50}, {"p95-ns", 0.95}, {"p99-ns", 0.99}} {
		if d, ok := ops.Quantile(p.q); ok && d >= latency.Ticks*tick {
			b.ReportMetric(float64(d), prefix+p.unit)
		}
	}
}

// warm prepares the calls, and makes each so often that connections, pools and caches are what they stay.
func (s serial) warm(tb testing.TB, f *rpcbench.Fixture) []rpcbench.Call {
	tb.Helper()
	calls := make([]rpcbench.Call, users.Round)
	for i := range calls {
		var err error
		calls[i], err = s.prepare(f, i)
		skipOrFail(tb, s.stack, err)
	}
	s.goRound(tb, f, calls, "warm-up")
	return calls
}

// goRound makes each call as often as there are rounds, and returns how many calls that were. Over a link it makes calls for a
// tenth of a second, one at least: there it is the connection that has to be warm.
func (s serial) goRound(tb testing.TB, f *rpcbench.Fixture, calls []rpcbench.Call, what string) int64 {
	tb.Helper()
	const patience = 100 * time.Millisecond
	dog := fixture.Watch(f, hangLimit)
	defer dog.Stop()
	began := time.Now()
	all := cmp.Or(s.rounds, warmRounds) * len(calls)
	for n := range all {
		if s.link && n > 0 && time.Since(began) > patience {
			return int64(n)
		}
		dog.Reset(hangLimit)
		if err := calls[n%len(calls)](context.Background()); err != nil {
			tb.Fatalf("rpcbench: %s: %s: call %d: %v%s", s.stack.Name, what, n, err, dog.Note())
		}
	}
	return int64(all)
}

func (s serial) countBytes(b *testing.B) {
	b.Helper()
	countBytes(b, s.stack, s.config, func(f *rpcbench.Fixture) func() int64 {
		calls := s.warm(b, f)
		return func() int64 { return s.goRound(b, f, calls, "counting bytes") }
	})
}

// countBytes reports what one call sends and receives, over a fixture of its own: the timed one stays bare. ready warms the
// fixture; what it returns makes the calls and says how many it made.
func countBytes(b *testing.B, stack rpcbench.Stack, config rpcbench.Config, ready func(*rpcbench.Fixture) func() int64) {
	b.Helper()
	var wire netwrap.Counter
	config.WrapClient = wrapped(config.WrapClient, wire.Wrap)
	calls := ready(Start(b, stack, config))
	sent, received := wire.Sent(), wire.Received()
	n := float64(calls())
	b.ReportMetric(float64(wire.Sent()-sent)/n, "sent-B/op")
	b.ReportMetric(float64(wire.Received()-received)/n, "recv-B/op")
}

// wrapped is inner with outer around it. Either may be nil.
func wrapped(inner, outer func(net.Conn) net.Conn) func(net.Conn) net.Conn {
	switch {
	case inner == nil:
		return outer
	case outer == nil:
		return inner
	}
	return func(c net.Conn) net.Conn { return outer(inner(c)) }
}

// heap counts allocations.
type heap struct{ before, after runtime.MemStats }

func newHeap() *heap {
	h := new(heap)
	runtime.ReadMemStats(&h.before)
	return h
}

// report reports what each of n ops has allocated since newHeap, in whole numbers, as package testing does.
func (h *heap) report(b *testing.B, n int64) {
	b.Helper()
	runtime.ReadMemStats(&h.after)
	b.ReportMetric(float64((h.after.TotalAlloc-h.before.TotalAlloc)/uint64(n)), "B/op")
	b.ReportMetric(float64((h.after.Mallocs-h.before.Mallocs)/uint64(n)), "allocs/op")
}
