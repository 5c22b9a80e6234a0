package stacktest

import (
	"cmp"
	"context"
	"net"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/cpu"
	"github.com/rpcbench/rpcbench/internal/latency"
	"github.com/rpcbench/rpcbench/internal/netwrap"
	"github.com/rpcbench/rpcbench/internal/versus"
)

const (
	warmRounds = 16 // rounds of all calls before anything is measured, through the measured calls; as many count bytes
	hangLimit  = 10 * time.Second
)

// BenchmarkCreateUser times one caller that creates users over one connection (config.Conns changes nothing for a
// single caller). One op is one Call: encode, send, validate, answer, decode, compare. Beside ns/op, B/op and allocs/op
// of client and server together it reports
//
//	p50-ns, p95-ns, p99-ns   of the ops; absent with fewer than ten ops beyond, and below 20 ticks of a coarse clock
//	cpu-ns/op                user and system time of the process; absent where the system doesn't tell
//	sent-B/op, recv-B/op     on the client's connection, beneath TLS, from a pass of their own
//
// With -server, which puts the server into another process, ns/op is still the whole call, B/op, allocs/op and cpu-ns/op
// are of the client alone, and server-B/op, server-allocs/op and server-cpu-ns/op are those of the server's process.
//
// The calls' context is context.Background on every stack: a deadline costs one stack more than another. A call that
// hangs for ten seconds is ended by closing its fixture. A call that fails ends the benchmark, and no row is printed.
func BenchmarkCreateUser(b *testing.B, stack rpcbench.Stack, config rpcbench.Config) {
	b.Helper()
	serial{stack: stack, config: config}.benchmark(b)
}

// serial is one caller that goes round its calls.
type serial struct {
	stack  rpcbench.Stack
	config rpcbench.Config

	// calls prepares the round; nil is a call for each of the users. What they report as an error ends the benchmark.
	calls  func(*rpcbench.Fixture) ([]rpcbench.Call, error)
	dials  int64         // connections that each op opens
	rounds int           // to warm, and to count bytes; 0 is warmRounds
	link   bool          // an op does little but wait: see BenchmarkLink
	hang   time.Duration // 0 is hangLimit
}

func (s serial) benchmark(b *testing.B) {
	b.Helper()
	defer noRow(b, s.stack)
	Procs(b)
	if s.hang == 0 {
		s.hang = hangLimit
	}
	s.config = placed().config(b, s.stack, s.config)
	f := Start(b, s.stack, s.config)
	calls := s.warm(b, f)
	accepted := f.Accepted()
	ops := latency.New()
	ctx := context.Background()
	dog := watch(f, s.hang)
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
			b.Fatalf("rpcbench: %s: call %d: %v%s", s.stack.Name, n, err, dog.note())
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
	reportPercentiles(b, ops)
	if s.link {
		return
	}
	if cpuKnown {
		b.ReportMetric(float64(cpuEnd-cpuStart)/float64(n), "cpu-ns/op")
	}
	s.countBytes(b)
}

// reportReconnects fails the row if its n calls opened more connections than declared, or fewer. One more is allowed, or one in
// ten thousand calls, and is printed: net/http gives a connection up when the goroutine that writes to it has not run
// for 50 ms (maxWriteWaitBeforeConnReuse), which is the machine's doing. It costs such a call about 100 µs.
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

// noRow is to be deferred: after a panic package testing might print a row of no iterations before it dies.
func noRow(b *testing.B, stack rpcbench.Stack) {
	b.Helper()
	if p := recover(); p != nil {
		b.Fatalf("rpcbench: %s: panic: %v\n%s", stack.Name, p, debug.Stack())
	}
}

// reportPercentiles leaves out what the sample, or the clock, does not carry.
func reportPercentiles(b *testing.B, ops *latency.Recorder) {
	b.Helper()
	percentiles(b, "", ops)
}

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

// usersOf prepares a call for each of the users that loops go round, with a payload of avatar bytes.
func usersOf(avatar int) func(*rpcbench.Fixture) ([]rpcbench.Call, error) {
	return func(f *rpcbench.Fixture) ([]rpcbench.Call, error) { return prepare(f, avatar) }
}

// watchdog closes a fixture under a call that hangs: the call then fails.
type watchdog struct {
	*time.Timer
	bit atomic.Bool
}

func watch(f *rpcbench.Fixture, hang time.Duration) *watchdog {
	w := &watchdog{}
	w.Timer = time.AfterFunc(hang, func() {
		w.bit.Store(true)
		_ = f.Close()
	})
	return w
}

// note tells the error of a call that the watchdog ended from any other.
func (w *watchdog) note() string {
	if w.bit.Load() {
		return " (the call hung, so its fixture was closed)"
	}
	return ""
}

// warm prepares the calls and makes each often enough that connections, pools and caches are what they stay.
func (s serial) warm(tb testing.TB, f *rpcbench.Fixture) []rpcbench.Call {
	tb.Helper()
	prepare := s.calls
	if prepare == nil {
		prepare = usersOf(0)
	}
	calls, err := prepare(f)
	skipOrFail(tb, s.stack, err)
	s.goRound(tb, f, calls, "warm-up")
	return calls
}

// goRound makes each call as often as there are rounds, and returns how many it has made. Over a link it makes one, or more
// if there is time: it is the connection that has to be warm.
func (s serial) goRound(tb testing.TB, f *rpcbench.Fixture, calls []rpcbench.Call, what string) int {
	tb.Helper()
	const patience = 100 * time.Millisecond
	dog := watch(f, hangLimit)
	defer dog.Stop()
	began := time.Now()
	all := cmp.Or(s.rounds, warmRounds) * len(calls)
	for n := range all {
		if s.link && n > 0 && time.Since(began) > patience {
			return n
		}
		dog.Reset(hangLimit)
		if err := calls[n%len(calls)](context.Background()); err != nil {
			tb.Fatalf("rpcbench: %s: %s: call %d: %v%s", s.stack.Name, what, n, err, dog.note())
		}
	}
	return all
}

// countBytes reports what one call sends and receives.
func (s serial) countBytes(b *testing.B) {
	b.Helper()
	wire := new(wireCounter)
	s.config = wire.on(s.config)
	f := Start(b, s.stack, s.config)
	calls := s.warm(b, f)
	wire.begin()
	wire.report(b, s.goRound(b, f, calls, "counting bytes"))
}

// wireCounter counts bytes over a fixture of its own, so that the timed one stays bare.
type wireCounter struct {
	netwrap.Counter
	sent, received int64 // before the ops
}

func (w *wireCounter) on(config rpcbench.Config) rpcbench.Config {
	config.WrapClient = wrapped(config.WrapClient, w.Wrap)
	return config
}

func (w *wireCounter) begin() { w.sent, w.received = w.Sent(), w.Received() }

func (w *wireCounter) report(b *testing.B, ops int) {
	b.Helper()
	b.ReportMetric(float64(w.Sent()-w.sent)/float64(ops), "sent-B/op")
	b.ReportMetric(float64(w.Received()-w.received)/float64(ops), "recv-B/op")
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
