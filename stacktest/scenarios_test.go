package stacktest

import (
	"context"
	"errors"
	"net"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/httpjsoniter"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/odd"
	"github.com/rpcbench/rpcbench/internal/workload"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// clientOf is the faultless fake with its client changed.
func clientOf(change func(rpcbench.Users) rpcbench.Client) rpcbench.Stack {
	return odd.WithClient(fake{}.stack(), change)
}

func calling(change func(rpcbench.Call) rpcbench.Call) rpcbench.Stack {
	return clientOf(func(c rpcbench.Users) rpcbench.Client {
		return odd.Around(c, func(_ rpcbench.User, call rpcbench.Call) rpcbench.Call { return change(call) })
	})
}

// wantsDeadline fails calls without a deadline, or with one that was used before.
func wantsDeadline() rpcbench.Stack {
	var mu sync.Mutex
	var last time.Time
	return calling(func(call rpcbench.Call) rpcbench.Call {
		return func(ctx context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			due, ok := ctx.Deadline()
			if !ok || due.Equal(last) {
				return errors.New("no deadline of its own")
			}
			last = due
			return call(ctx)
		}
	})
}

// wantsTLS fails without TLS on either side.
func wantsTLS() rpcbench.Stack {
	stack := fake{}.stack()
	server, dial := stack.Server, stack.Dial
	stack.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		if config.TLS == nil {
			return nil, errors.New("the server is in clear")
		}
		return server(config)
	}
	stack.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		if config.TLS == nil {
			return nil, errors.New("the client is in clear")
		}
		return dial(config)
	}
	return stack
}

// keepsItsConnection gives every caller of Dial the first client, so that nothing is cold.
func keepsItsConnection() rpcbench.Stack {
	var first atomic.Pointer[rpcbench.Users]
	return clientOf(func(c rpcbench.Users) rpcbench.Client {
		if !first.CompareAndSwap(nil, &c) {
			return undying{*first.Load()}
		}
		return c
	})
}

type undying struct{ rpcbench.Users }

func (undying) Close() error { return nil }

// gathering lets calls return only when as many have come as there are callers, for so many rounds of each client in
// turn.
func gathering(callers int, rounds ...int) rpcbench.Stack {
	dialled := 0
	return clientOf(func(c rpcbench.Users) rpcbench.Client {
		var mu sync.Mutex
		here, gate := 0, make(chan struct{})
		left := rounds[min(dialled, len(rounds)-1)] * callers // Start may dial once more
		dialled++
		return odd.Around(c, func(_ rpcbench.User, call rpcbench.Call) rpcbench.Call {
			return func(ctx context.Context) error {
				mu.Lock()
				if left == 0 {
					mu.Unlock()
					return call(ctx)
				}
				left--
				if here++; here == callers {
					here = 0
					close(gate)
					gate = make(chan struct{})
					mu.Unlock()
				} else {
					wait := gate
					mu.Unlock()
					select {
					case <-wait:
					case <-time.After(10 * time.Second):
						return errors.New("the callers don't call at a time")
					}
				}
				return call(ctx)
			}
		})
	})
}

// dropping closes its idle connections before the nth call and each later one, not counting those that connect the
// fixture. One call is made at a time: two could hand a connection to each other, and that would never be idle.
func dropping(n int64) rpcbench.Stack {
	var made atomic.Int64
	var turn sync.Mutex
	return clientOf(func(c rpcbench.Users) rpcbench.Client {
		return odd.Around(c, func(_ rpcbench.User, call rpcbench.Call) rpcbench.Call {
			return func(ctx context.Context) error {
				turn.Lock()
				defer turn.Unlock()
				if made.Add(1) >= n {
					c.(*fakeClient).http.CloseIdleConnections()
				}
				return call(ctx)
			}
		})
	})
}

// failingAt fails the nth of the calls that follow the warm-up, whoever makes it.
func failingAt(n int64, warmUp int64) rpcbench.Stack {
	var made atomic.Int64
	return calling(func(call rpcbench.Call) rpcbench.Call {
		return func(ctx context.Context) error {
			if made.Add(1) == warmUp+n {
				return errors.New("broken")
			}
			return call(ctx)
		}
	})
}

// BenchmarkScenarios is for TestScenarios, which runs it in a child process.
func BenchmarkScenarios(b *testing.B) {
	forChildren(b)
	row := func(name string, w rpcbench.Workload, stack rpcbench.Stack) {
		b.Run("case="+name, func(b *testing.B) { Benchmark(b, w, stack) })
	}
	small, mixed := rpcbench.Workload{}, rpcbench.Workload{Message: "flex.complex"}
	invalid, streamed := rpcbench.Workload{Invalid: true}, rpcbench.Workload{Stream: true}

	row("payload", rpcbench.Workload{Payload: 10_000}, httpjsoniter.New())
	row("invalid", invalid, httpjson.New())
	row("invalid.accepted", invalid, stub(func(int64) error { return nil }))
	row("invalid.otherwise", invalid, stub(func(int64) error {
		required := []rpcbench.Violation{{Field: "email", Rule: "required"}}
		return &rpcbench.Error{Code: rpcbench.Invalid, Violations: required}
	}))
	row("deadline", rpcbench.Workload{Deadline: true}, wantsDeadline())
	row("deadline.none", small, wantsDeadline())
	row("headers", rpcbench.Workload{Headers: true}, httpjson.New())
	row("headers.unable", rpcbench.Workload{Headers: true}, rawtcp.New())
	row("tls", rpcbench.Workload{TLS: true}, wantsTLS())
	row("tls.none", small, wantsTLS())
	row("echo", mixed, httpjson.New())
	row("echo.empty", rpcbench.Workload{Message: "flex.empty"}, httpjson.New())
	row("echo.callers", rpcbench.Workload{Message: "flex.complex", Callers: 3, Conns: 2}, httpjson.New())
	row("echo.unable", mixed, fake{}.stack())
	row("echo.lossy", mixed, httpjsoniter.Fastest())
	row("stream.bothways", streamed, grpcprotobuf.New())
	row("stream.unable", streamed, httpjson.New())
	row("cold", rpcbench.Workload{NewConn: true}, fake{}.stack())
	row("cold.tls", rpcbench.Workload{NewConn: true, TLS: true}, wantsTLS())
	row("cold.warm", rpcbench.Workload{NewConn: true}, keepsItsConnection())
	row("link", rpcbench.Workload{Link: "4ms/100Mbps"}, fake{}.stack())
	row("link.cold", rpcbench.Workload{Link: "4ms/100Mbps", NewConn: true, TLS: true}, fake{}.stack())
	row("link.heap", rpcbench.Workload{Link: "4ms/100Mbps", NewConn: true}, fake{}.stack())
	row("link.unknown", rpcbench.Workload{Link: "5g"}, fake{}.stack())
	parallel5 := gathering(5, warmRounds, 2*warmRounds, warmRounds, 2*warmRounds) // figures and bytes of each b.N
	row("parallel", rpcbench.Workload{Callers: 5}, parallel5)
	row("bytes.serial", small, fake{}.stack())
	row("bytes.parallel", rpcbench.Workload{Callers: 5, Conns: 3}, fake{}.stack())
	row("bytes.openLoop", rpcbench.Workload{Rate: 1000, Conns: 3}, fake{}.stack())
	row("parallel.none", rpcbench.Workload{Callers: -1}, fake{}.stack())
	four := rpcbench.Workload{Callers: 4, Conns: 1}
	row("parallel.error", four, failingAt(10, warmRounds*4))
	row("parallel.panic", four, stub(func(int64) error { panic("broken") }))
	b.Run("case=parallel.hung", func(b *testing.B) {
		w := workload.Workload{Callers: corpus.Round, Conns: 1}
		newRow(hangingAfter(fake{}.stack(), warmRounds*corpus.Round), w, 200*time.Millisecond).benchmark(b)
	})
	row("parallel.idle", rpcbench.Workload{Callers: 2, Conns: 1},
		stub(func(int64) error { <-time.After(time.Millisecond); return nil }))
	row("parallel.dials", rpcbench.Workload{Callers: 2}, dropping(warmRounds*2+1))
	row("procs", rpcbench.Workload{Procs: 1000}, fake{}.stack())
}

func newRow(stack rpcbench.Stack, w workload.Workload, hang time.Duration) row {
	return row{stack: stack, Workload: w, hang: hang}
}

func TestScenarios(t *testing.T) {
	type figs = map[string]float64
	for _, c := range []struct {
		name, reason string
		fails        string // with this text, and without a row; "" is success
		skipped      string // likewise
		least, most  figs   // of the row's figures
		absent       []string
	}{
		{name: "payload", reason: "the payload goes both ways, in base64",
			least: figs{"sent-B/op": 13_000, "recv-B/op": 13_000}},
		{name: "invalid", reason: "a refused user is the right answer", least: figs{"ns/op": 1, "recv-B/op": 50}},
		{name: "invalid.accepted", reason: "an invalid user must not be accepted",
			fails: "an invalid user must be refused for {email email}, got: <nil>"},
		{name: "invalid.otherwise", reason: "nor refused for another reason",
			fails: "an invalid user must be refused for {email email}"},
		{name: "deadline", reason: "every call has a deadline of its own", least: figs{"ns/op": 1}},
		{name: "deadline.none", reason: "other rows have none", fails: "no deadline of its own"},
		{name: "headers", reason: "a token, a traceparent and a user agent are sent", least: figs{"sent-B/op": 1000}},
		{name: "headers.unable", reason: "a protocol without headers",
			skipped: "rpcbench: rawtcp: dial: the protocol has no headers: unsupported operation"},
		{name: "tls", reason: "both sides have TLS", least: figs{"ns/op": 1}},
		{name: "tls.none", reason: "other rows are in clear", fails: "the server is in clear"},
		{name: "echo", reason: "the complex message goes both ways", least: figs{"sent-B/op": 400, "recv-B/op": 400}},
		{name: "echo.empty", reason: "the empty message", least: figs{"sent-B/op": 1}},
		{name: "echo.callers", reason: "several callers", least: figs{"req/s": 1, "sent-B/op": 400, "recv-B/op": 400}},
		{name: "echo.unable", reason: "a stack that does not echo",
			skipped: "rpcbench: fake: echo: unsupported operation"},
		{name: "echo.lossy", reason: "a stack that would lose digits",
			skipped: "rpcbench: httpjsoniter.fastest: the digits of the message's floats: unsupported operation"},
		{name: "stream.bothways", reason: "one message each way on an open stream",
			least: figs{"ns/op": 1}, absent: []string{"ns/message"}},
		{name: "stream.unable", reason: "HTTP/1.1 does not stream",
			skipped: "rpcbench: httpjson: streams: unsupported operation"},
		{name: "cold", reason: "a connection for each op", least: figs{"ns/op": 1, "sent-B/op": 100}},
		{name: "cold.tls", reason: "a handshake for each op", least: figs{"recv-B/op": 800}},
		{name: "cold.warm", reason: "a client that keeps its connection is not cold",
			fails: "in 20 timed calls the number of connections differs by -20 from what is declared"},
		{name: "link", reason: "an op waits for its reply: 4 ms",
			least: figs{"round-trips/op": 1, "ns/op": 4e6, "sent-B/op": 100, "recv-B/op": 100}},
		{name: "link.cold", reason: "a dial, a handshake, an op", least: figs{"round-trips/op": 3, "ns/op": 12e6}},
		{name: "link.heap", reason: "a client's buffers are billed, a link's of 64 kB are not",
			least: figs{"B/op": 1000}, most: figs{"B/op": 80_000}},
		{name: "link.unknown", reason: "a link that does not exist", fails: "5g"},
		{name: "parallel", reason: "all callers call at a time",
			least: figs{"req/s": 1, "ns/op": 1, "cpu-ns/op": 0}, absent: []string{"cpu-share", "in-flight"}},
		{name: "parallel.none",
			reason: "nobody calls", fails: "rpcbench: fake: a workload's Callers lies between 0 and 1000: -1 does not"},
		{name: "procs", reason: "a row's GOMAXPROCS is -cpu's",
			skipped: "rpcbench: a workload needs GOMAXPROCS=1000, and its row has"},
		{name: "parallel.error", reason: "one caller's error ends all", fails: ": broken"},
		{name: "parallel.panic", reason: "as does one caller's panic", fails: "rpcbench: stub: panic: broken"},
		{name: "parallel.hung", reason: "a server that falls silent",
			fails: "the call hung, so its fixture was closed"},
		{name: "parallel.dials", reason: "connections more than declared",
			fails: "in 20 timed calls the number of connections differs by"},
	} {
		t.Run(c.name+": "+c.reason, func(t *testing.T) {
			if strings.HasPrefix(c.name, "link") {
				t.Parallel() // these wait, and need no core
			}
			bench := "-test.bench=^BenchmarkScenarios$/^case=" + regexp.QuoteMeta(c.name) + "$"
			args := []string{bench, "-test.benchtime=20x"}
			if c.fails != "" || c.skipped != "" {
				out, err := child(t, append(args, "-test.v")...)
				require.Equal(t, c.fails != "", err != nil, out)
				require.Contains(t, out, c.fails+c.skipped)
				require.NotRegexp(t, ` ns/op`, out)
				return
			}
			row := figuresOf(t, args...)
			for unit, least := range c.least {
				if unit == "cpu-ns/op" && runtime.GOOS == "windows" {
					continue
				}
				require.GreaterOrEqual(t, row[unit], least, unit)
			}
			for unit, most := range c.most {
				require.Contains(t, row, unit)
				require.LessOrEqual(t, row[unit], most, unit)
			}
			for _, unit := range c.absent {
				require.NotContains(t, row, unit)
			}
		})
	}
}

// TestBytesAreOfOneCall: HTTP/1.1 sends the same whoever calls, so every loop must count the same.
func TestBytesAreOfOneCall(t *testing.T) {
	rows, _ := figures(t, "-test.bench=^BenchmarkScenarios$/^case=bytes", "-test.benchtime=20x")
	require.Len(t, rows, 3)
	for _, unit := range []string{"sent-B/op", "recv-B/op"} {
		require.Greater(t, rows[0][unit], 100.0)
		require.Equal(t, rows[0][unit], rows[1][unit])
		require.Equal(t, rows[0][unit], rows[2][unit])
	}
}

// TestCallsInFlight: a row of two callers who do nothing but wait for replies says so, from 100 calls per caller on.
func TestCallsInFlight(t *testing.T) {
	row := func(calls string) map[string]float64 {
		return figuresOf(t, "-test.bench=^BenchmarkScenarios$/^case=parallel.idle$", "-test.benchtime="+calls)
	}
	require.NotContains(t, row("199x"), "in-flight", "the ends of the run would be much of it")
	got := row("200x")["in-flight"]
	require.Greater(t, got, 1.0, "latencies of one caller, or of none")
	require.LessOrEqual(t, got, 2.002, "more calls than callers")
}

// TestColdConnectionsAreReset: the server reads a reset, so the client's port is free at once.
func TestColdConnectionsAreReset(t *testing.T) {
	ends := make(chan error, 1)
	r := newRow(fake{}.stack(), workload.Workload{NewConn: true}, hangLimit)
	r.config.WrapServer = func(c net.Conn) net.Conn { return ending{c, ends} }
	require.NoError(t, r.begin(t).Loop.Call())
	require.ErrorIs(t, <-ends, syscall.ECONNRESET)
}

// ending tells how reading a connection ended.
type ending struct {
	net.Conn
	ends chan error
}

func (c ending) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) { // with which net/http ends its background read
		select {
		case c.ends <- err:
		default:
		}
	}
	return n, err
}
