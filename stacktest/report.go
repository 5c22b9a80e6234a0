package stacktest

import (
	"net"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/latency"
	"github.com/rpcbench/rpcbench/internal/relay"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/users"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// noRow, deferred, makes a panic a failure: package testing might print a row of no iterations before it dies.
func noRow(b *testing.B, stack rpcbench.Stack) {
	b.Helper()
	if p := recover(); p != nil {
		b.Fatalf("rpcbench: %s: panic: %v\n%s", stack.Name, p, debug.Stack())
	}
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

// percentiles reports those that the sample, and the clock, carry.
func percentiles(b *testing.B, prefix string, ops *latency.Recorder) {
	b.Helper()
	began := time.Now()
	const ticks = 20 // of a coarse clock that a duration takes at least: a tick is then a twentieth of it
	tick, coarse := timing.Tick(func() time.Duration { return time.Since(began) })
	for _, p := range []struct {
		unit string
		q    float64
	}{{"p50-ns", 0.50}, {"p95-ns", 0.95}, {"p99-ns", 0.99}} {
		if d, ok := ops.Quantile(p.q); ok && (!coarse || d >= ticks*tick) {
			b.ReportMetric(float64(d), prefix+p.unit)
		}
	}
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

// pass makes calls over a fixture of its own, so that the timed one stays bare, and returns how many. begin is called when the
// fixture is warm. All callers call: over HTTP/2 the calls of a connection share pings and window updates.
func (r row) pass(b *testing.B, begin func()) int64 {
	b.Helper()
	f := Start(b, r.stack, r.config)
	loop, _ := r.ready(b, f)
	begin()
	n := int64(r.warm * r.callers)
	if r.wait != nil {
		n = int64(min(warmRounds*users.Round, max(1, r.rate/4))) // starts of a quarter of a second
	}
	if err := r.guard(f, loop, func() error { return loop.Run(n) }); err != nil {
		b.Fatalf("rpcbench: %s: in a pass that is not timed: %v", r.stack.Name, err)
	}
	return loop.Latency.Count()
}

// countBytes reports what one call sends and receives.
func (r row) countBytes(b *testing.B) {
	b.Helper()
	var wire relay.Counter
	var sent, received int64
	r.config.WrapClient = wrapped(r.config.WrapClient, wire.Wrap)
	n := r.pass(b, func() { sent, received = wire.Sent(), wire.Received() })
	b.ReportMetric(float64(wire.Sent()-sent)/float64(n), "sent-B/op")
	b.ReportMetric(float64(wire.Received()-received)/float64(n), "recv-B/op")
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
