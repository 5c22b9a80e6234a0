package stacktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/netwrap"
	"github.com/rpcbench/rpcbench/internal/users"
	"github.com/rpcbench/rpcbench/message"
)

// The benchmarks of this file report what BenchmarkCreateUser does, of another op. A stack that can't do a scenario is
// skipped with the reason. Ops that take long are fewer to warm and to count bytes.

// BenchmarkPayload is BenchmarkCreateUser with a payload of size bytes in the request, which comes back in the reply. The
// bytes are random, so no format and no compression makes them fewer.
func BenchmarkPayload(b *testing.B, stack rpcbench.Stack, config rpcbench.Config, size int) {
	b.Helper()
	rounds := min(warmRounds, max(1, 200_000/max(1, size))) // 16 of 100 kB would take a second
	serial{stack: stack, config: config, calls: usersOf(size), rounds: rounds}.benchmark(b)
}

// BenchmarkInvalid is the error path: every user breaks a rule, and an op is right if the call fails with exactly that
// violation. The users break three rules in turn.
func BenchmarkInvalid(b *testing.B, stack rpcbench.Stack, config rpcbench.Config) {
	b.Helper()
	serial{stack: stack, config: config, calls: func(f *rpcbench.Fixture) ([]rpcbench.Call, error) {
		return eachUser(f, func(i int, u *rpcbench.User) func(rpcbench.Call) rpcbench.Call {
			broken := breakRule(i, u)
			return func(call rpcbench.Call) rpcbench.Call {
				return func(ctx context.Context) error { return refused(call(ctx), broken) }
			}
		})
	}}.benchmark(b)
}

// breakRule makes u invalid and says how.
func breakRule(i int, u *rpcbench.User) rpcbench.Violation {
	switch i % 3 {
	case 0:
		u.Email = "nobody"
		return rpcbench.Violation{Field: "email", Rule: "email"}
	case 1:
		u.Name = "Ann"
		return rpcbench.Violation{Field: "name", Rule: "min=4"}
	}
	u.Password = "abc"
	return rpcbench.Violation{Field: "password", Rule: "min=4"}
}

// refused is nil if err is what it must be.
func refused(err error, broken rpcbench.Violation) error {
	if err == nil {
		return fmt.Errorf("an invalid user must be refused for %v, and was not", broken)
	}
	e, ok := errors.AsType[*rpcbench.Error](err)
	if !ok || e.Code != rpcbench.Invalid || len(e.Violations) != 1 || e.Violations[0] != broken {
		return fmt.Errorf("an invalid user must be refused for %v: %w", broken, err)
	}
	return nil
}

// BenchmarkDeadline is BenchmarkCreateUser as production code calls: each call has a context.WithTimeout of its own, which
// never ends.
func BenchmarkDeadline(b *testing.B, stack rpcbench.Stack, config rpcbench.Config) {
	b.Helper()
	serial{stack: stack, config: config, calls: func(f *rpcbench.Fixture) ([]rpcbench.Call, error) {
		return eachUser(f, func(int, *rpcbench.User) func(rpcbench.Call) rpcbench.Call {
			return func(call rpcbench.Call) rpcbench.Call {
				return func(ctx context.Context) error {
					ctx, cancel := context.WithTimeout(ctx, time.Minute)
					defer cancel()
					return call(ctx)
				}
			}
		})
	}}.benchmark(b)
}

// eachUser prepares the round of calls; change may change a user first, and says what goes around its call.
func eachUser(f *rpcbench.Fixture, change func(i int, u *rpcbench.User) func(rpcbench.Call) rpcbench.Call) ([]rpcbench.Call, error) {
	calls := make([]rpcbench.Call, users.Round)
	for i := range calls {
		u := users.Sample(i, 0)
		around := change(i, &u)
		call, err := prepareOne(f, u)
		if err != nil {
			return nil, err
		}
		calls[i] = around(call)
	}
	return calls, nil
}

// BenchmarkHeaders is BenchmarkCreateUser with what production clients add to a call: a bearer token, the same for all
// calls, a traceparent, another for each, and a user agent. A protocol without headers is skipped.
func BenchmarkHeaders(b *testing.B, stack rpcbench.Stack, config rpcbench.Config) {
	b.Helper()
	config.Headers = users.Headers()
	serial{stack: stack, config: config}.benchmark(b)
}

// BenchmarkTLS is BenchmarkCreateUser over a warm connection of TLS 1.3, whose certificate is made for the fixture and
// verified by its client. Bytes are those of the ciphertext.
func BenchmarkTLS(b *testing.B, stack rpcbench.Stack, config rpcbench.Config) {
	b.Helper()
	config.TLS = true
	serial{stack: stack, config: config}.benchmark(b)
}

// BenchmarkEcho sends the flex message m there and back: no validation, and no payload but the message. Callers and
// connections are as in BenchmarkParallel if there is more than one caller. A stack that does not echo, or that does not
// keep floats bit-equal, is skipped.
func BenchmarkEcho(b *testing.B, stack rpcbench.Stack, config rpcbench.Config, m *message.Flex, callers int) {
	b.Helper()
	if m.Double != 0 && slices.Contains(stack.Traits.Lossy, "complex") {
		b.Skipf("rpcbench: %s does not keep the complex message bit-equal", stack.Name)
	}
	prepare := func(f *rpcbench.Fixture, i int) (rpcbench.Call, error) {
		client, ok := f.Client.(rpcbench.Echoer)
		if !ok {
			return nil, fmt.Errorf("echo: %w", errors.ErrUnsupported)
		}
		m := *m
		if m.Fixed32 != 0 {
			m.Fixed32 += uint32(i) // as many bytes, and another reply
		}
		call, err := client.PrepareEcho(&m)
		if err != nil {
			return nil, fmt.Errorf("prepare: %w", err)
		}
		return call, nil
	}
	if callers > 1 {
		parallel{stack: stack, config: config, callers: callers, prepare: prepare}.benchmark(b)
		return
	}
	serial{stack: stack, config: config, calls: func(f *rpcbench.Fixture) ([]rpcbench.Call, error) {
		calls := make([]rpcbench.Call, users.Round)
		for i := range calls {
			var err error
			if calls[i], err = prepare(f, i); err != nil {
				return nil, err
			}
		}
		return calls, nil
	}}.benchmark(b)
}

// BenchmarkStream sends one message each way on a stream that stays open: an op is a user and its reply. BenchmarkCreateUser is the
// same by single calls. Stacks that don't stream are skipped.
func BenchmarkStream(b *testing.B, stack rpcbench.Stack, config rpcbench.Config) {
	b.Helper()
	serial{stack: stack, config: config, calls: func(f *rpcbench.Fixture) ([]rpcbench.Call, error) {
		client, ok := f.Client.(rpcbench.Streamer)
		if !ok {
			return nil, fmt.Errorf("streams: %w", errors.ErrUnsupported)
		}
		stream, err := client.OpenStream(context.Background()) // which ends with the fixture
		if err != nil {
			return nil, fmt.Errorf("open a stream: %w", err)
		}
		calls := make([]rpcbench.Call, users.Round)
		for i := range calls {
			if calls[i], err = stream.Prepare(users.Sample(i, 0)); err != nil {
				return nil, fmt.Errorf("prepare: %w", err)
			}
		}
		return calls, nil
	}}.benchmark(b)
}

// BenchmarkCold opens a new connection for each op, with TLS 1.3 if config asks for it: an op makes a client, which
// dials, prepares a call and makes it, and closes the client. To prepare is to build the native request, which for some
// stacks is one small allocation; everywhere else that is done before. Connections are reset rather than closed: none
// waits for minutes on its port, so any number of ops has ports enough.
//
// The handshake is crypto/tls's with its defaults, in full each time: a hybrid key exchange (X25519MLKEM768), a certificate
// with an ECDSA key on P-256, one signature made and one verified. The certificate is itself what clients trust, so no chain
// is, and nothing is resumed: no client keeps sessions.
func BenchmarkCold(b *testing.B, stack rpcbench.Stack, config rpcbench.Config) {
	b.Helper()
	coldSerial(stack, config).benchmark(b)
}

func coldSerial(stack rpcbench.Stack, config rpcbench.Config) serial {
	config.WrapClient = wrapped(resetOnClose, config.WrapClient)
	return serial{stack: stack, config: config, dials: 1, rounds: 4, calls: func(f *rpcbench.Fixture) ([]rpcbench.Call, error) {
		calls := make([]rpcbench.Call, users.Round)
		for i := range calls {
			u := users.Sample(i, 0)
			calls[i] = func(ctx context.Context) error { return callOnce(ctx, f, u) }
		}
		return calls, nil
	}}
}

func callOnce(ctx context.Context, f *rpcbench.Fixture, u rpcbench.User) error {
	client, err := f.Dial()
	if err != nil {
		return err
	}
	call, err := client.Prepare(u)
	if err == nil {
		err = call(ctx)
	}
	return errors.Join(err, client.Close())
}

// resetOnClose makes Close send a reset, which leaves no connection waiting for two minutes on its port.
func resetOnClose(c net.Conn) net.Conn {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	return c
}

// BenchmarkLink is BenchmarkCreateUser over an emulated link, on a warm connection, or with a new one for each op. link is
// the name of a preset: lan, 4g or 3g. Beside the figures of BenchmarkCreateUser it reports
//
//	round-trips/op   how often an op waits for the link: its time over a link of 100 ms and no other limit, in 100 ms
//
// Bytes, B/op and allocs/op are from passes without a link: as many calls as BenchmarkCreateUser and BenchmarkCold count would
// take half a minute over it, and its own buffers would be most of the heap. There is no cpu-ns/op: a process that waits is billed for waking. The
// emulated link delays and paces; it loses nothing, and has no slow start.
func BenchmarkLink(b *testing.B, stack rpcbench.Stack, config rpcbench.Config, link string, cold bool) {
	b.Helper()
	l, err := netwrap.FindLink(link)
	if err != nil {
		b.Fatal(err)
	}
	bare := serial{stack: stack, config: config}
	if cold {
		bare = coldSerial(stack, config)
	}
	bare.config = placed().config(b, stack, bare.config)
	over := func(l netwrap.Link) serial {
		s := bare
		s.config.WrapClient = wrapped(s.config.WrapClient, l.Wrap)
		s.link = true
		return s
	}
	over(l).benchmark(b)
	over(netwrap.Link{RTT: roundTrip}).countTrips(b)
	bare.countBytes(b)
	bare.countHeap(b)
}

const roundTrip = 100 * time.Millisecond // so long that nothing else of a call counts

// countTrips reports the median of three ops' time, in roundTrip.
func (s serial) countTrips(b *testing.B) {
	b.Helper()
	f := Start(b, s.stack, s.config)
	calls := s.warm(b, f)
	dog := watch(f, hangLimit)
	defer dog.Stop()
	times := make([]time.Duration, 3)
	for i := range times {
		began := time.Now()
		if err := calls[i%len(calls)](context.Background()); err != nil {
			b.Fatalf("rpcbench: %s: counting round trips: %v%s", s.stack.Name, err, dog.note())
		}
		times[i] = time.Since(began)
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[1])/float64(roundTrip), "round-trips/op")
}

// countHeap reports what an op allocates, of as many as count bytes elsewhere.
func (s serial) countHeap(b *testing.B) {
	b.Helper()
	f := Start(b, s.stack, s.config)
	calls := s.warm(b, f)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ops := uint64(s.goRound(b, f, calls, "counting allocations"))
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64((after.TotalAlloc-before.TotalAlloc)/ops), "B/op")
	b.ReportMetric(float64((after.Mallocs-before.Mallocs)/ops), "allocs/op")
}
