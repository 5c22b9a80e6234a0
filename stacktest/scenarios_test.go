package stacktest

import (
	"cmp"
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
	stack := odd.Dialling(fake{}.stack(), func(c *rpcbench.ClientConfig) {
		if c.TLS == nil {
			c.Addr = "a client in clear"
		}
	})
	server := stack.Server
	stack.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		if config.TLS == nil {
			return nil, errors.New("the server is in clear")
		}
		return server(config)
	}
	return stack
}

// keepsItsConnection gives every caller of Dial the first client, so that nothing is cold.
func keepsItsConnection() rpcbench.Stack {
	var first atomic.Pointer[rpcbench.Users]
	return clientOf(func(c rpcbench.Users) rpcbench.Client {
		if !first.CompareAndSwap(nil, &c) {
			return odd.Client{Users: *first.Load(), OnClose: nothing}
		}
		return c
	})
}

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
				wait := gate
				if here++; here == callers {
					close(gate)
					here, gate = 0, make(chan struct{})
				}
				mu.Unlock()
				select {
				case <-wait:
				case <-time.After(10 * time.Second):
					return errors.New("the callers don't call at a time")
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

type figs = map[string]float64

// scenario is a row of BenchmarkScenarios, and what TestScenarios demands of it. Another test reads a row that has no
// reason.
type scenario struct {
	name, reason   string
	stack          rpcbench.Stack
	workload       rpcbench.Workload
	hang           time.Duration // 0 is that of Benchmark
	fails, skipped string        // with this text, and without a row; "" is success
	least, most    figs          // of the row's figures
	absent         []string
}

func scenarios() []scenario {
	plain, refused := fake{}.stack(), rpcbench.Workload{Invalid: true}
	complex, cold := rpcbench.Workload{Message: "flex.complex"}, rpcbench.Workload{NewConn: true}
	const slow = "4ms/100Mbps"
	return []scenario{
		{name: "payload", reason: "the payload goes both ways, in base64", stack: httpjsoniter.New(),
			workload: rpcbench.Workload{Payload: 10_000}, least: figs{"sent-B/op": 13_000, "recv-B/op": 13_000}},
		{name: "invalid", reason: "a refused user is the right answer", stack: httpjson.New(),
			workload: refused, least: figs{"ns/op": 1, "recv-B/op": 50}},
		{name: "invalid.accepted", reason: "an invalid user must not be accepted", stack: stub(idle),
			workload: refused, fails: "an invalid user must be refused for {email email}, got: <nil>"},
		{name: "invalid.otherwise", reason: "nor refused for another reason", stack: stub(func(int64) error {
			required := []rpcbench.Violation{{Field: "email", Rule: "required"}}
			return &rpcbench.Error{Code: rpcbench.Invalid, Violations: required}
		}), workload: refused, fails: "an invalid user must be refused for {email email}"},
		{name: "deadline", reason: "every call has a deadline of its own", stack: wantsDeadline(),
			workload: rpcbench.Workload{Deadline: true}, least: figs{"ns/op": 1}},
		{name: "deadline.none", reason: "other rows have none", stack: wantsDeadline(), fails: "no deadline of its own"},
		{name: "headers", reason: "a token, a traceparent and a user agent are sent", stack: httpjson.New(),
			workload: rpcbench.Workload{Headers: true}, least: figs{"sent-B/op": 1000}},
		{name: "headers.unable", reason: "a protocol without headers", stack: rawtcp.New(),
			workload: rpcbench.Workload{Headers: true},
			skipped:  "rpcbench: rawtcp: dial: the protocol has no headers: unsupported operation"},
		{name: "tls", reason: "both sides have TLS", stack: wantsTLS(), workload: rpcbench.Workload{TLS: true},
			least: figs{"ns/op": 1}},
		{name: "tls.none", reason: "other rows are in clear", stack: wantsTLS(), fails: "the server is in clear"},
		{name: "echo", reason: "the complex message goes both ways", stack: httpjson.New(), workload: complex,
			least: figs{"sent-B/op": 400, "recv-B/op": 400}},
		{name: "echo.empty", reason: "the empty message", stack: httpjson.New(),
			workload: rpcbench.Workload{Message: "flex.empty"}, least: figs{"sent-B/op": 1}},
		{name: "echo.callers", reason: "several callers", stack: httpjson.New(),
			workload: rpcbench.Workload{Message: "flex.complex", Callers: 3, Conns: 2},
			least:    figs{"req/s": 1, "sent-B/op": 400, "recv-B/op": 400}},
		{name: "echo.unable", reason: "a stack that does not echo", stack: plain, workload: complex,
			skipped: "rpcbench: fake: echo: unsupported operation"},
		{name: "echo.lossy", reason: "a stack that would lose digits", stack: httpjsoniter.Fastest(), workload: complex,
			skipped: "rpcbench: httpjsoniter.fastest: the digits of the message's floats: unsupported operation"},
		{name: "stream.bothways", reason: "one message each way on an open stream", stack: grpcprotobuf.New(),
			workload: rpcbench.Workload{Stream: true}, least: figs{"ns/op": 1}, absent: []string{"ns/message"}},
		{name: "stream.unable", reason: "HTTP/1.1 does not stream", stack: httpjson.New(),
			workload: rpcbench.Workload{Stream: true}, skipped: "rpcbench: httpjson: streams: unsupported operation"},
		{name: "cold", reason: "a connection for each op", stack: plain, workload: cold,
			least: figs{"ns/op": 1, "sent-B/op": 100}},
		{name: "cold.tls", reason: "a handshake for each op", stack: wantsTLS(),
			workload: rpcbench.Workload{NewConn: true, TLS: true}, least: figs{"recv-B/op": 800}},
		{name: "cold.warm", reason: "a client that keeps its connection is not cold", stack: keepsItsConnection(),
			workload: cold, fails: "in 20 timed calls the number of connections differs by -20 from what is declared"},
		{name: "link", reason: "an op waits for its reply: 4 ms", stack: plain, workload: rpcbench.Workload{Link: slow},
			least: figs{"round-trips/op": 1, "ns/op": 4e6, "sent-B/op": 100, "recv-B/op": 100}},
		{name: "link.cold", reason: "a dial, a handshake, an op", stack: plain,
			workload: rpcbench.Workload{Link: slow, NewConn: true, TLS: true},
			least:    figs{"round-trips/op": 3, "ns/op": 12e6}},
		{name: "link.heap", reason: "a client's buffers are billed, a link's of 64 kB are not", stack: plain,
			workload: rpcbench.Workload{Link: slow, NewConn: true}, least: figs{"B/op": 1000}, most: figs{"B/op": 80_000}},
		{name: "link.unknown", reason: "a link that does not exist", stack: plain,
			workload: rpcbench.Workload{Link: "5g"}, fails: "5g"},
		{name: "parallel", reason: "all callers call at a time", workload: rpcbench.Workload{Callers: 5},
			stack: gathering(5, warmRounds, 2*warmRounds, warmRounds, 2*warmRounds), // figures and bytes of each b.N
			least: figs{"req/s": 1, "ns/op": 1, "cpu-ns/op": 0}, absent: []string{"cpu-share", "in-flight"}},
		{name: "bytes.serial", stack: plain},
		{name: "bytes.parallel", stack: plain, workload: rpcbench.Workload{Callers: 5, Conns: 3}},
		{name: "bytes.openLoop", stack: plain, workload: rpcbench.Workload{Rate: 1000, Conns: 3}},
		{name: "parallel.none", reason: "nobody calls", stack: plain, workload: rpcbench.Workload{Callers: -1},
			fails: "rpcbench: fake: a workload's Callers lies between 0 and 1000: -1 does not"},
		{name: "parallel.error", reason: "one caller's error ends all", stack: failingAt(10, warmRounds*4),
			workload: rpcbench.Workload{Callers: 4, Conns: 1}, fails: ": broken"},
		{name: "parallel.panic", reason: "as does one caller's panic", stack: stub(func(int64) error { panic("broken") }),
			workload: rpcbench.Workload{Callers: 4, Conns: 1}, fails: "rpcbench: stub: panic: broken"},
		{name: "parallel.hung", reason: "a server that falls silent", stack: hangingAfter(warmRounds * corpus.Round),
			workload: rpcbench.Workload{Callers: corpus.Round, Conns: 1}, hang: 200 * time.Millisecond,
			fails: "the call hung, so its fixture was closed"},
		{name: "parallel.idle", stack: stub(func(int64) error { <-time.After(time.Millisecond); return nil }),
			workload: rpcbench.Workload{Callers: 2, Conns: 1}},
		{name: "parallel.dials", reason: "connections more than declared", stack: dropping(warmRounds*2 + 1),
			workload: rpcbench.Workload{Callers: 2}, fails: "in 20 timed calls the number of connections differs by"},
		{name: "procs", reason: "a row's GOMAXPROCS is -cpu's", stack: plain, workload: rpcbench.Workload{Procs: 1000},
			skipped: "rpcbench: a workload needs GOMAXPROCS=1000, and its row has"},
	}
}

func BenchmarkScenarios(b *testing.B) {
	forChildren(b)
	for _, c := range scenarios() {
		r := row{stack: c.stack, Workload: workload.Workload(c.workload), hang: cmp.Or(c.hang, hangLimit)}
		b.Run("case="+c.name, r.benchmark)
	}
}

func TestScenarios(t *testing.T) {
	for _, c := range scenarios() {
		if c.reason == "" {
			continue
		}
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
	r := row{stack: fake{}.stack(), Workload: workload.Workload{NewConn: true}, hang: hangLimit}
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
