package stacktest

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/httpjsoniter"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// clientOf is the faultless fake with its client changed.
func clientOf(change func(rpcbench.Users) rpcbench.Client) rpcbench.Stack {
	return testkit.WithClient(fake{}.stack(), change)
}

// wantsDeadline fails calls without a deadline, or with one that was used before.
func wantsDeadline() rpcbench.Stack {
	var mu sync.Mutex
	var last time.Time
	return clientOf(func(c rpcbench.Users) rpcbench.Client {
		return testkit.Around(c, func(_ rpcbench.User, call rpcbench.Call) rpcbench.Call {
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
	})
}

// keepsItsConnection gives every caller of Dial the first client, so that nothing is cold.
func keepsItsConnection() rpcbench.Stack {
	var first atomic.Pointer[rpcbench.Users]
	return clientOf(func(c rpcbench.Users) rpcbench.Client {
		if !first.CompareAndSwap(nil, &c) {
			return testkit.Client{Users: *first.Load(), OnClose: nothing}
		}
		return c
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
}

func scenarios() []scenario {
	const warmUp, slow = warmRounds * corpus.Round, "4ms/100Mbps"
	plain, refused, cold := fake{}.stack(), rpcbench.Workload{Invalid: true}, rpcbench.Workload{NewConn: true}
	panics := func(int64) error { panic("broken") }
	afterWarmUp := func(fault func(int64) error) rpcbench.Stack {
		return stub(func(n int64) error {
			if n <= warmUp {
				return nil
			}
			return fault(n)
		})
	}
	broken := func(int64) error { return errors.New("broken") }
	return []scenario{
		{name: "broken.start", reason: "a fixture is connected by a right reply", stack: emptyAfter(0),
			fails: "fake: connect: malformed"},
		{name: "broken.warmUp", reason: "an error ends the warm-up", stack: stub(broken),
			fails: "stub: warm-up: broken"},
		{name: "broken.reply", reason: "every reply is read", stack: emptyAfter(1 + warmUp),
			fails: "fake: call 0: malformed"},
		{name: "broken.error", reason: "an error ends the row", stack: afterWarmUp(broken),
			fails: "stub: call 0: broken"},
		{name: "broken.panic", reason: "as does a panic", stack: afterWarmUp(panics), fails: "stub: panic: broken"},
		{name: "broken.parallel", reason: "one caller's panic ends all", stack: stub(panics),
			workload: rpcbench.Workload{Callers: 4, Conns: 1}, fails: "stub: panic: broken"},
		{name: "broken.server", reason: "a server falls silent", stack: hangingAfter(warmUp),
			workload: rpcbench.Workload{Callers: corpus.Round, Conns: 1}, hang: 200 * time.Millisecond,
			fails: "the call hung, so its fixture was closed"},
		{name: "broken.handler", reason: "a handler panics at its first call",
			stack: handlingAfter(0, func() { panic("broken") }),
			fails: "grpcprotobuf: connect: internal: rpc error: code = Internal desc = internal: Handle panicked at"},
		{name: "broken.answer", reason: "or within the row", stack: handlingAfter(1+warmUp, func() { panic("broken") }),
			fails: "grpcprotobuf: call 0: internal: rpc error: code = Internal desc = internal: Handle panicked at"},
		{name: "broken.silence", reason: "a handler never answers", stack: handlingAfter(1+warmUp, func() { select {} }),
			hang: 200 * time.Millisecond, fails: "the call hung, so its fixture was closed"},
		{name: "broken.rate", reason: "a row has no rate", stack: plain, workload: rpcbench.Workload{Rate: 1000},
			fails: "fake: rows have no Rate and no server Apart: rpcbench run has both"},
		{name: "broken.apart", reason: "nor another process", stack: plain, workload: rpcbench.Workload{Apart: true},
			fails: "and so has your own program that calls cli.Main"},
		{name: "broken.callers", reason: "a number that is none", stack: plain, workload: rpcbench.Workload{Callers: -1},
			fails: "fake: a workload's Callers lies between 0 and "},
		{name: "payload", reason: "the payload goes both ways, in base64", stack: httpjsoniter.New(),
			workload: rpcbench.Workload{Payload: "10kB"}, least: figs{"sent-B/op": 13_000, "recv-B/op": 13_000}},
		{name: "invalid.accepted", reason: "an invalid user must not be accepted", stack: stub(idle),
			workload: refused, fails: "an invalid user must be refused for {email email}, got: <nil>"},
		{name: "invalid.otherwise", reason: "nor refused for another reason", stack: stub(func(int64) error {
			required := []rpcbench.Violation{{Field: "email", Rule: "required"}}
			return &rpcbench.Error{Code: rpcbench.CodeInvalid, Violations: required}
		}), workload: refused, fails: "an invalid user must be refused for {email email}"},
		{name: "deadline", reason: "every call has a deadline of its own", stack: wantsDeadline(),
			workload: rpcbench.Workload{Deadline: true}, least: figs{"ns/op": 1}},
		{name: "headers.unable", reason: "a protocol without headers", stack: rawtcp.New(),
			workload: rpcbench.Workload{Headers: true},
			skipped:  "rawtcp: dial: the protocol has no headers: unsupported operation"},
		{name: "echo.lossy", reason: "a stack that would lose digits", stack: httpjsoniter.Fastest(),
			workload: rpcbench.Workload{Payload: "flex.complex"},
			skipped:  "httpjsoniter.fastest: the digits of the message's floats: unsupported operation"},
		{name: "stream.unable", reason: "HTTP/1.1 does not stream", stack: httpjson.New(),
			workload: rpcbench.Workload{Stream: true}, skipped: "httpjson: streams: unsupported operation"},
		{name: "cold.warm", reason: "a client that keeps its connection is not cold", stack: keepsItsConnection(),
			workload: cold, fails: "in 20 timed calls the number of connections differs by -20 from what is declared"},
		{name: "link", reason: "an op waits for its reply: 4 ms", stack: plain, workload: rpcbench.Workload{Link: slow},
			least: figs{"round-trips/op": 1, "ns/op": 4e6, "sent-B/op": 100, "recv-B/op": 100}},
		{name: "link.cold", reason: "a dial, a handshake, an op", stack: plain,
			workload: rpcbench.Workload{Link: slow, NewConn: true, TLS: true},
			least:    figs{"round-trips/op": 3, "ns/op": 12e6}},
		{name: "link.heap", reason: "a client's buffers are billed, a link's of 64 kB are not", stack: plain,
			workload: rpcbench.Workload{Link: slow, NewConn: true}, least: figs{"B/op": 1000}, most: figs{"B/op": 80_000}},
		{name: "parallel.idle", stack: stub(func(int64) error { <-time.After(time.Millisecond); return nil }),
			workload: rpcbench.Workload{Callers: 2, Conns: 1}},
		{name: "procs", reason: "a row's GOMAXPROCS is -cpu's", stack: plain, workload: rpcbench.Workload{Procs: 1000},
			skipped: "a workload needs GOMAXPROCS=1000, and its row has"},
		{name: "dials", reason: "more connections than a late machine explains",
			stack: redialling(warmUp, 100, func() {}), fails: "in 20 timed calls the number of connections differs by +"},
		{name: "redials", stack: redialling(warmUp, 1, func() {})},
		{name: "busy", stack: redialling(warmUp, 6, starve)},
		{name: "declared", stack: reconnecting()},
	}
}

// scenarioOf are the flags for a row of BenchmarkScenarios.
func scenarioOf(name, benchtime string) []string {
	return scenariosOf([]string{regexp.QuoteMeta(name)}, benchtime)
}

func scenariosOf(names []string, benchtime string) []string {
	bench := "-test.bench=^BenchmarkScenarios$/^case=(" + strings.Join(names, "|") + ")$"
	return []string{bench, "-test.benchtime=" + benchtime}
}

func BenchmarkScenarios(b *testing.B) {
	forChildren(b)
	for _, c := range scenarios() {
		r := row{stack: c.stack, Workload: workload.Workload(c.workload), hang: cmp.Or(c.hang, hangLimit)}
		b.Run("case="+c.name, r.benchmark)
	}
}

// TestScenarios: one child makes all rows that end without one, and another those that have one. A row that waits has a
// child of its own.
func TestScenarios(t *testing.T) {
	var failing, running []string
	for _, c := range scenarios() {
		switch {
		case c.fails != "" || c.skipped != "":
			failing = append(failing, regexp.QuoteMeta(c.name))
		case c.reason != "" && !strings.HasPrefix(c.name, "link"):
			running = append(running, regexp.QuoteMeta(c.name))
		}
	}
	ended, err := child(t, append(scenariosOf(failing, "20x"), "-test.v")...)
	require.Error(t, err, ended)
	timed := map[string]figs{}
	rows, names := figures(t, scenariosOf(running, "20x")...)
	for i, row := range rows {
		name, _, _ := strings.Cut(strings.TrimPrefix(names[i], "Scenarios/case="), "-")
		timed[name] = row
	}
	for _, c := range scenarios() {
		if c.reason == "" {
			continue
		}
		t.Run(c.name+": "+c.reason, func(t *testing.T) {
			waits := strings.HasPrefix(c.name, "link")
			if waits {
				t.Parallel() // and needs no core
			}
			if c.fails != "" || c.skipped != "" {
				label, how := "BenchmarkScenarios/case="+c.name+"\n", "\n--- FAIL: "
				if c.skipped != "" {
					how = "\n--- SKIP: "
				}
				_, said, begun := strings.Cut(ended, "\n"+label)
				said, _, over := strings.Cut(said, how+label)
				require.True(t, begun && over, ended)
				require.NotContains(t, said, "\n--- ", "a row of its own")
				require.Contains(t, said, c.fails+c.skipped)
				require.NotContains(t, said, " ns/op")
				return
			}
			var row figs
			if waits {
				row = figuresOf(t, scenarioOf(c.name, "20x")...)
			} else {
				row = timed[c.name]
				require.NotNil(t, row, "a row")
			}
			for unit, least := range c.least {
				require.GreaterOrEqual(t, row[unit], least, unit)
			}
			for unit, most := range c.most {
				require.Contains(t, row, unit)
				require.LessOrEqual(t, row[unit], most, unit)
			}
		})
	}
}

// TestCallsInFlight: a row of two callers who do nothing but wait for replies says so, from 100 calls per caller on.
func TestCallsInFlight(t *testing.T) {
	row := func(calls string) map[string]float64 {
		return figuresOf(t, scenarioOf("parallel.idle", calls)...)
	}
	require.NotContains(t, row("199x"), "in-flight", "the ends of the run would be much of it")
	got := row("200x")["in-flight"]
	require.Greater(t, got, 1.0, "latencies of one caller, or of none")
	require.LessOrEqual(t, got, 2.002, "more calls than callers")
}

// TestColdConnectionsAreReset: the server reads a reset, so the client's port is free at once.
func TestColdConnectionsAreReset(t *testing.T) {
	ends := make(chan error, 1)
	wrap := func(c net.Conn) net.Conn { return ending{c, ends} }
	o, err := workload.Workload{NewConn: true}.Open(t.Context(), fake{}.stack(),
		workload.Setup{Config: rpcbench.Config{WrapServer: wrap}})
	require.NoError(t, err)
	closing(t, o.Fixture.Stack, o.Close)
	require.NoError(t, o.Loop.Start(1))
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
