package stacktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/relay"
	"github.com/rpcbench/rpcbench/internal/workload"
	"github.com/rpcbench/rpcbench/message"
)

// The benchmarks of this file report the figures of BenchmarkCreateUser. They skip a stack that can't do the scenario.

// BenchmarkPayload is BenchmarkCreateUser with size random bytes in the request and again in the reply.
func BenchmarkPayload(b *testing.B, stack rpcbench.Stack, config rpcbench.Config, size int) {
	b.Helper()
	r := oneCaller(stack, config, workload.User(size))
	r.warm = corpus.Round * min(warmRounds, max(1, 200_000/max(1, size))) // 16 rounds of 100 kB would take a second
	r.benchmark(b)
}

// BenchmarkInvalid times the error path: users break one of three rules in turn. Each call must fail with exactly that
// violation.
func BenchmarkInvalid(b *testing.B, stack rpcbench.Stack, config rpcbench.Config) {
	b.Helper()
	oneCaller(stack, config, func(f *rpcbench.Fixture, i int) (rpcbench.Call, error) {
		u := corpus.Sample(i, 0)
		rule := []struct {
			of     *string
			value  string
			broken rpcbench.Violation
		}{
			{&u.Email, "nobody", rpcbench.Violation{Field: "email", Rule: "email"}},
			{&u.Name, "Ann", rpcbench.Violation{Field: "name", Rule: "min=4"}},
			{&u.Password, "abc", rpcbench.Violation{Field: "password", Rule: "min=4"}},
		}[i%3]
		*rule.of = rule.value
		call, err := f.Client.Prepare(u)
		return func(ctx context.Context) error { return refused(call(ctx), rule.broken) }, err
	}).benchmark(b)
}

// refused returns nil if err says that the call was refused for broken alone.
func refused(err error, broken rpcbench.Violation) error {
	e, ok := errors.AsType[*rpcbench.Error](err)
	if !ok || e.Code != rpcbench.Invalid || len(e.Violations) != 1 || e.Violations[0] != broken {
		return fmt.Errorf("an invalid user must be refused for %v, got: %v", broken, err)
	}
	return nil
}

// BenchmarkDeadline is BenchmarkCreateUser with a context.WithTimeout of one minute for each call.
func BenchmarkDeadline(b *testing.B, stack rpcbench.Stack, config rpcbench.Config) {
	b.Helper()
	oneCaller(stack, config, func(f *rpcbench.Fixture, i int) (rpcbench.Call, error) {
		call, err := workload.User(0)(f, i)
		return func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			return call(ctx)
		}, err
	}).benchmark(b)
}

// BenchmarkEcho sends the message m and receives the same back, without validation. With more than one caller it is a
// closed loop like BenchmarkParallel. It skips a stack that does not echo, or that does not keep the floats of m.
func BenchmarkEcho(b *testing.B, stack rpcbench.Stack, config rpcbench.Config, m *message.Flex, callers int) {
	b.Helper()
	if m.Double != 0 && slices.Contains(stack.Traits.Lossy, codec.FloatDigits) {
		b.Skipf("rpcbench: %s does not keep the complex message bit-equal", stack.Name)
	}
	r := oneCaller(stack, config, workload.Echo(m))
	if callers > 1 {
		r = closedLoop(stack, config, callers, workload.Echo(m))
	}
	r.benchmark(b)
}

// BenchmarkStream is BenchmarkCreateUser on one stream that stays open. An op is one message in each direction.
func BenchmarkStream(b *testing.B, stack rpcbench.Stack, config rpcbench.Config) {
	b.Helper()
	oneCaller(stack, config, workload.Stream()).benchmark(b)
}

// BenchmarkCold opens a new connection for each op, with TLS 1.3 if config asks for it. An op dials a client, prepares
// a call, makes the call and closes the client. A reset closes the connection, so that none keeps its port for minutes.
//
// Each TLS handshake is a full one with the defaults of crypto/tls: a hybrid key exchange (X25519MLKEM768) and an ECDSA
// certificate on P-256, without a chain.
func BenchmarkCold(b *testing.B, stack rpcbench.Stack, config rpcbench.Config) {
	b.Helper()
	cold(stack, config).benchmark(b)
}

func cold(stack rpcbench.Stack, config rpcbench.Config) row {
	config.WrapClient = wrapped(workload.ResetOnClose, config.WrapClient)
	r := oneCaller(stack, config, workload.Cold())
	r.dials, r.warm = 1, 4*corpus.Round
	return r
}

// BenchmarkLink is BenchmarkCreateUser over an emulated link: 4g, or a round trip and a rate such as 40ms/10Mbps. If
// isCold is set, it is BenchmarkCold. The link delays and limits the rate; it loses nothing and has no slow start.
//
// round-trips/op is added: the time of an op over a link with a round trip of 100 ms and no limit, divided by 100 ms.
// B/op, allocs/op and the bytes sent are measured without the link, which has buffers of its own. There is no
// cpu-ns/op: a process that mostly waits is billed for waking.
func BenchmarkLink(b *testing.B, stack rpcbench.Stack, config rpcbench.Config, link string, isCold bool) {
	b.Helper()
	l, err := relay.FindLink(link)
	orFail(b, stack.Name, err)
	bare := oneCaller(stack, config, workload.User(0))
	if isCold {
		bare = cold(stack, config)
	}
	bare.config = placed().config(b, stack, bare.config)
	over := func(l relay.Link) row {
		r := bare
		r.config.WrapClient = wrapped(r.config.WrapClient, l.Wrap)
		r.link, r.warm = true, max(1, int(roundTrip/l.RTT)) // few calls warm the connection, which is what matters
		return r
	}
	over(l).benchmark(b)
	slow := over(relay.Link{RTT: roundTrip})
	slow.warm = 3 // and as many ops
	var began time.Time
	n := slow.pass(b, slow.few(), func() { began = time.Now() })
	metric(b, float64(time.Since(began))/float64(n)/float64(roundTrip), "round-trips/op")
	bare.countBytes(b)
	var report func(int64)
	n = bare.pass(b, bare.few(), func() { report = watchHeap(b) })
	report(n)
}

const roundTrip = 100 * time.Millisecond // so long that the rest of a call does not matter
