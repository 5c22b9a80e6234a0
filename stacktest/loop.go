package stacktest

import (
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
	"github.com/rpcbench/rpcbench/internal/users"
)

const (
	warmRounds = 16 // rounds of all users before anything is measured, through the measured calls
	wireRounds = 16 // rounds of all users in the pass that counts bytes
	hangLimit  = 10 * time.Second
)

// BenchmarkCreateUser times one caller that creates users over one connection (config.Conns changes nothing for a
// single caller). One op is one Call: encode, send, validate, answer, decode, compare. Beside ns/op, B/op and allocs/op
// of client and server together it reports
//
//	p50-ns, p95-ns, p99-ns   of the ops; absent with fewer than ten ops beyond
//	cpu-ns/op                user and system time of the process; absent where the system doesn't tell
//	sent-B/op, recv-B/op     on the client's connection, beneath TLS, from a pass of their own
//
// The calls' context is context.Background on every stack: a deadline costs one stack more than another. A call that
// hangs for ten seconds is ended by closing its fixture. A call that fails ends the benchmark, and no row is printed.
func BenchmarkCreateUser(b *testing.B, stack rpcbench.Stack, config rpcbench.Config) {
	b.Helper()
	createUser(b, stack, config, hangLimit)
}

func createUser(b *testing.B, stack rpcbench.Stack, config rpcbench.Config, hang time.Duration) {
	b.Helper()
	defer func() {
		if p := recover(); p != nil { // package testing might print a row of no iterations before it dies
			b.Fatalf("rpcbench: %s: panic: %v\n%s", stack.Name, p, debug.Stack())
		}
	}()
	f := Start(b, stack, config)
	calls := warm(b, f)
	accepted := f.Accepted()
	ops := latency.New()
	ctx := context.Background()
	dog := watch(f, hang)
	defer dog.Stop()
	runtime.GC() // what starting and warming left is not the loop's
	b.ReportAllocs()

	n := 0
	cpuStart, cpuKnown := cpu.Time()
	last := time.Now()
	armed := last
	for b.Loop() {
		if err := calls[n%users.Round](ctx); err != nil {
			b.Fatalf("rpcbench: %s: call %d: %v%s", stack.Name, n, err, dog.note())
		}
		n++
		now := time.Now()
		ops.Record(now.Sub(last))
		last = now
		if now.Sub(armed) > hang/4 {
			dog.Reset(hang)
			armed = now
		}
	}
	cpuEnd, _ := cpu.Time()
	dog.Stop()

	if f.Accepted() != accepted {
		b.Fatalf("rpcbench: %s: %d connections opened inside the timed loop", stack.Name, f.Accepted()-accepted)
	}
	sent, received := wireBytes(b, stack, config)
	for _, p := range []struct {
		unit string
		q    float64
	}{{"p50-ns", 0.50}, {"p95-ns", 0.95}, {"p99-ns", 0.99}} {
		if d, ok := ops.Quantile(p.q); ok {
			b.ReportMetric(float64(d), p.unit)
		}
	}
	if cpuKnown {
		b.ReportMetric(float64(cpuEnd-cpuStart)/float64(n), "cpu-ns/op")
	}
	b.ReportMetric(sent, "sent-B/op")
	b.ReportMetric(received, "recv-B/op")
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

// warm prepares the round of calls and makes each often enough that connections, pools and caches are what they stay.
func warm(tb testing.TB, f *rpcbench.Fixture) []rpcbench.Call {
	tb.Helper()
	dog := watch(f, hangLimit)
	defer dog.Stop()
	calls := make([]rpcbench.Call, users.Round)
	for i := range calls {
		var err error
		if calls[i], err = f.Client.Prepare(users.Sample(i, 0)); err != nil {
			tb.Fatalf("rpcbench: %s: prepare: %v", f.Stack.Name, err)
		}
	}
	for range warmRounds {
		for i, call := range calls {
			if err := call(context.Background()); err != nil {
				tb.Fatalf("rpcbench: %s: warm-up: call %d: %v%s", f.Stack.Name, i, err, dog.note())
			}
		}
	}
	return calls
}

// wireBytes counts what one call sends and receives, over a fixture of its own, so that the timed one stays bare.
func wireBytes(tb testing.TB, stack rpcbench.Stack, config rpcbench.Config) (sent, received float64) {
	tb.Helper()
	counter, outer := new(netwrap.Counter), config.WrapClient
	config.WrapClient = func(c net.Conn) net.Conn {
		if outer != nil {
			c = outer(c)
		}
		return counter.Wrap(c)
	}
	f := Start(tb, stack, config)
	calls := warm(tb, f)
	sentBefore, receivedBefore := counter.Sent(), counter.Received()
	dog := watch(f, hangLimit)
	defer dog.Stop()
	for range wireRounds {
		for i, call := range calls {
			if err := call(context.Background()); err != nil {
				tb.Fatalf("rpcbench: %s: counting bytes: call %d: %v%s", stack.Name, i, err, dog.note())
			}
		}
	}
	const ops = wireRounds * users.Round
	return float64(counter.Sent()-sentBefore) / ops, float64(counter.Received()-receivedBefore) / ops
}
