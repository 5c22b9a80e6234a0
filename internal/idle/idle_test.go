package idle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/plan"
	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
	"github.com/rpcbench/rpcbench/internal/suite/wire"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/verdict"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// TestMain is also the processes that the tests start.
func TestMain(m *testing.M) {
	jobs := map[string]child.Job{child.Holds: Holding()}
	switch done, err := child.Serve(os.Stdin, os.Stdout, child.List(known()), jobs); {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case !done:
		goleak.VerifyTestMain(m)
	}
}

// known are the stacks of children: real ones, those that fail if a connection is wrapped, and some that keep so many
// bytes more for each connection. Of grpcprotobuf that is a wrapper and nothing else.
func known() []rpcbench.Stack {
	failing := rawtcp.New()
	failing.Name = "failing"
	failing.Dial = func(rpcbench.ClientConfig) (rpcbench.Client, error) { return nil, errors.New("odd") }
	hasty := httpjson.New()
	hasty.Name, hasty.Server = "hasty", func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		config.Wait = 0
		return httpjson.New().Server(config)
	}
	return []rpcbench.Stack{hasty, httpjson.New(), grpcprotobuf.New(), bare(httpjson.New()), bare(grpcprotobuf.New()),
		keeping(rawtcp.New(), "none", 0, 0), keeping(rawtcp.New(), "server", 3<<16, 0),
		keeping(rawtcp.New(), "client", 0, 3<<16), keeping(grpcprotobuf.New(), "wrapped", 0, 0), failing}
}

// bare is a stack that fails if a connection that it is given is not package net's own.
func bare(stack rpcbench.Stack) rpcbench.Stack {
	stack.Name += ".bare"
	stack = testkit.WithServer(stack, func(s rpcbench.Server) rpcbench.Server {
		return testkit.Server{Server: s, OnServe: func(ln net.Listener) error { return s.Serve(bareListener{ln}) }}
	})
	return testkit.Dialling(stack, func(config *rpcbench.ClientConfig) {
		dial := config.DialContext
		config.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return isBare(dial(ctx, network, addr))
		}
	})
}

type bareListener struct{ net.Listener }

func (l bareListener) Accept() (net.Conn, error) { return isBare(l.Listener.Accept()) }

func isBare(conn net.Conn, err error) (net.Conn, error) {
	if _, is := conn.(*net.TCPConn); !is && err == nil {
		return nil, errors.Join(fmt.Errorf("the connection is wrapped: %T", conn), conn.Close())
	}
	return conn, err
}

func keeping(stack rpcbench.Stack, name string, server, client int) rpcbench.Stack {
	stack = testkit.WithServer(stack, func(s rpcbench.Server) rpcbench.Server {
		return testkit.Server{Server: s, OnServe: func(ln net.Listener) error { return s.Serve(&keeper{ln, server}) }}
	})
	stack.Name = name
	return testkit.Dialling(stack, func(config *rpcbench.ClientConfig) {
		dial := config.DialContext
		config.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			return &kept{Conn: conn, data: make([]byte, client)}, err
		}
	})
}

type keeper struct {
	net.Listener
	n int
}

func (k *keeper) Accept() (net.Conn, error) {
	conn, err := k.Listener.Accept()
	return &kept{Conn: conn, data: make([]byte, k.n)}, err
}

type kept struct {
	net.Conn
	data []byte
}

// TestKnownMemory: what a stack keeps for each connection is the slope of its side, and of no other.
func TestKnownMemory(t *testing.T) {
	const number, tolerance = 100, 300 // bytes: what else a process keeps varies by some kilobytes
	none, server, client := heaps(t, number, "none"), heaps(t, number, "server"), heaps(t, number, "client")
	require.InDelta(t, 3<<16, server[0]-none[0], tolerance)
	require.InDelta(t, 0, server[1]-none[1], tolerance)
	require.InDelta(t, 0, client[0]-none[0], tolerance)
	require.InDelta(t, 3<<16, client[1]-none[1], tolerance)
}

// heaps are what each of so many connections of a stack keeps on the heap of a server, and of a client.
func heaps(t *testing.T, number int, name string) (each [2]float64) {
	t.Helper()
	made := Plan{Number: number, Arms: []Arm{{Contestant: plan.Of(name)}}}
	one, err := made.pair(t.Context(), part{Connections, false}, made.Arms[0])
	require.NoError(t, err)
	for i, r := range made.rows(part{}, name, []pair{one}, nil) {
		each[i] = r.Figures[heap].Mean
	}
	return each
}

// TestConnectionsAreBare: a library may read a connection of package net in another way than a wrapped one. Nothing
// wraps those of clients and servers, whatever they hold.
func TestConnectionsAreBare(t *testing.T) {
	for _, part := range parts() {
		for _, name := range []string{"httpjson.bare", "grpcprotobuf.bare"} {
			_, err := Plan{Number: least}.pair(t.Context(), part, Arm{plan.Of(name), oneP})
			if part.State == Streams && name == "httpjson.bare" {
				require.ErrorIs(t, err, errors.ErrUnsupported)
				continue
			}
			require.NoError(t, err, "%s, %s", part, name)
		}
	}
}

// TestWrappersTakeBuffers: grpc-go gives the buffer that it reads into back only where a connection is bare. The one of
// an idle connection is in no figure, and would be with a wrapper, on each side.
func TestWrappersTakeBuffers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("grpc-go keeps the buffer")
	}
	const number, buffer, tolerance = 100, 32 << 10, 2 << 10 // bytes
	bare, wrapped := heaps(t, number, "grpcprotobuf"), heaps(t, number, "wrapped")
	for i, side := range sides {
		t.Logf("%s: %.0f and %.0f bytes", side, bare[i], wrapped[i])
		require.InDelta(t, buffer, wrapped[i]-bare[i], tolerance, side)
	}
}

// oneP is this program where it collects without two Ps that spin: where what is held is not compared to a byte.
var oneP = versus.Program{Env: []string{"GOMAXPROCS=1"}}

// TestServersCountWhatIsHeld: what idle measures is what was typed. At each point a server has as many connections,
// streams or calls as its client was asked to hold, and connections that are shared carry as many each.
func TestServersCountWhatIsHeld(t *testing.T) {
	const number = 25 // whose half is no multiple of its tenth
	for _, part := range parts() {
		for _, stack := range []rpcbench.Stack{httpjson.New(), grpcprotobuf.New()} {
			if part.State == Streams && !stack.Traits.Multiplexed {
				continue
			}
			t.Run(fmt.Sprint(part, ", ", stack.Name), func(t *testing.T) {
				served, serving, config := new(tap.Tap), stack, rpcbench.Config{TLS: part.TLS}
				if config.WrapServer = served.Wrap; part.State == Calls { // what is counted does not wait for replies
					serving, config.Wait = impatient(stack), 200*time.Millisecond
				}
				f, err := rpcbench.Start(t.Context(), serving, config)
				require.NoError(t, err)
				defer f.Close()
				h := holder{stack: stack, ended: make(chan error, number),
					asked: question{Addr: f.Addr, TLS: part.TLS, State: part.State, Most: number}}
				if state, ok := f.TLS(); ok {
					h.asked.Certificate = state.PeerCertificates[0].Raw
				}
				require.NoError(t, h.reach(t.Context()))
				before := len(served.Conns())
				for _, n := range points(number) {
					require.NoError(t, h.hold(t.Context(), n))
					want := counted{connections: n, calls: n, each: 1}
					if shares := stack.Traits.Multiplexed && part.State != Connections; shares {
						want.connections, want.each = min(n, conns), (n+conns-1)/conns
					}
					if part.State == Streams {
						want.calls, want.streams = 0, n
					}
					if part.TLS {
						want = counted{connections: want.connections, tls: true}
					}
					var got counted
					require.Eventually(t, func() bool { got = countedOf(served.Conns()[before:]); return got == want },
						time.Minute, time.Millisecond, "%d: what idle measures is what was typed: %+v %+v", n, want, &got)
				}
				for _, kept := range h.kept {
					_ = kept.(io.Closer).Close() // a client's close ends its streams
				}
			})
		}
	}
}

// counted is what a server has of connections: each is the most calls or streams of one.
type counted struct {
	connections, calls, streams, each int
	tls                               bool // all of them
}

func countedOf(conns []*tap.TapConn) (c counted) {
	c.connections, c.tls = len(conns), len(conns) > 0
	for _, conn := range conns {
		sent, received := conn.Bytes()
		c.tls = c.tls && bytes.HasPrefix(received, []byte{22}) // a handshake
		calls, _, _ := wire.Read(received, sent)
		streams, _ := wire.Open(received)
		streams = slices.DeleteFunc(streams, func(m wire.Message) bool { return len(m.Body) == 0 })
		c.calls, c.streams, c.each = c.calls+len(calls), c.streams+len(streams), max(c.each, len(calls)+len(streams))
	}
	return c
}

// A server whose handlers don't wait is said, and not measured.
func TestWaitIsDropped(t *testing.T) {
	_, err := Plan{Number: 20}.pair(t.Context(), part{Calls, false}, Arm{Contestant: plan.Of("hasty")})
	require.EqualError(t, err, "a call was answered whose handler should wait: its server drops ServerConfig.Wait")
}

// counting is a server of httpjson that counts the calls of each connection.
type counting struct {
	*http.Server
	begun, dialled atomic.Int64    // connections of the client under test
	early          context.Context // is done when a call comes while some are dialled and others are not
	tell           func()
	calls          sync.Map // how many, by the client's address
}

func (c *counting) Serve(ln net.Listener) error {
	if c.TLSConfig != nil {
		return c.ServeTLS(ln, "", "")
	}
	return c.Server.Serve(ln)
}

// TestEachConnectionHasOneCall: no call of a client that gives connections back is sent before all of its connections
// are there, so that each of them has one.
func TestEachConnectionHasOneCall(t *testing.T) {
	const number = 60
	for _, test := range []struct {
		why         string
		tls, silent bool
	}{
		{"in clear", false, false},
		{"over TLS", true, false},
		{"of a client that does not tell when a call has its connection", false, true},
	} {
		t.Run(test.why, func(t *testing.T) {
			c, stack := new(counting), httpjson.New()
			c.early, c.tell = context.WithCancel(t.Context())
			made := stack.Server
			stack.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
				s, err := made(config)
				handler := s.(interface{ HTTPHandler() http.Handler }).HTTPHandler()
				c.Server = &http.Server{TLSConfig: config.TLS, Handler: http.HandlerFunc(
					func(w http.ResponseWriter, r *http.Request) {
						if n := c.dialled.Load(); n > 0 && n < number {
							c.tell()
						}
						calls, _ := c.calls.LoadOrStore(r.RemoteAddr, new(atomic.Int64))
						calls.(*atomic.Int64).Add(1)
						handler.ServeHTTP(w, r)
					})}
				return c, err
			}
			f, err := rpcbench.Start(t.Context(), stack, rpcbench.Config{TLS: test.tls})
			require.NoError(t, err)
			defer f.Close()
			asked := question{Addr: f.Addr, TLS: test.tls, State: Connections, Most: 10 * number}
			if state, ok := f.TLS(); ok {
				asked.Certificate = state.PeerCertificates[0].Raw
			}
			if test.silent {
				stack = testkit.WithClient(stack, func(c rpcbench.Users) rpcbench.Client {
					return testkit.Around(c, func(_ rpcbench.User, call rpcbench.Call) rpcbench.Call {
						return func(context.Context) error { return call(context.Background()) }
					})
				})
			}
			h := holder{stack: stack, asked: asked}
			require.NoError(t, h.reach(t.Context()))
			dial := h.config.DialContext
			h.config.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if c.begun.Add(1) > 1 { // a call on the first one has time to come early
					select {
					case <-c.early.Done():
					case <-time.After(100 * time.Millisecond):
					}
				}
				defer c.dialled.Add(1)
				return dial(ctx, network, addr)
			}
			c.calls.Clear()
			require.NoError(t, h.hold(t.Context(), number))
			defer h.kept[0].(io.Closer).Close()
			require.EqualValues(t, number, c.dialled.Load())
			require.NoError(t, c.early.Err(), "a call came before all were dialled")
			if test.silent {
				return
			}
			connections := 0
			c.calls.Range(func(_, calls any) bool {
				connections++
				return assert.EqualValues(t, 1, calls.(*atomic.Int64).Load(), "calls of a connection")
			})
			require.Equal(t, number, connections)
		})
	}
}

// A client that can't open what it is asked for fails, and does not wait for the calls that are held back.
func TestHoldingFails(t *testing.T) {
	stack, dials := httpjson.New(), atomic.Int64{}
	f, err := rpcbench.Start(t.Context(), stack, rpcbench.Config{})
	require.NoError(t, err)
	defer f.Close()
	h := holder{stack: testkit.Dialling(stack, func(config *rpcbench.ClientConfig) {
		dial := config.DialContext
		config.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if dials.Add(1) == 10 {
				return nil, errors.New("too many open files")
			}
			return dial(ctx, network, addr)
		}
	}), asked: question{Addr: f.Addr, Most: 200}}
	require.NoError(t, h.reach(t.Context()))
	require.ErrorContains(t, h.hold(t.Context(), 20), "too many open files")
	require.NoError(t, h.kept[0].(io.Closer).Close())
}

// No step is larger than the first one, whatever the number: see hold.
func TestStepsAreEqual(t *testing.T) {
	f, err := rpcbench.Start(t.Context(), httpjson.New(), rpcbench.Config{})
	require.NoError(t, err)
	defer f.Close()
	var steps []int
	h := holder{stack: httpjson.New(), asked: question{Addr: f.Addr, Most: 25}}
	require.NoError(t, h.reach(t.Context()))
	h.stack = testkit.Dialling(h.stack, func(config *rpcbench.ClientConfig) { steps = append(steps, config.Conns) })
	for _, n := range points(25) {
		require.NoError(t, h.hold(t.Context(), n))
		require.Equal(t, n, h.number)
	}
	require.Equal(t, []int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1}, steps)
	for _, client := range h.kept {
		require.NoError(t, client.(io.Closer).Close())
	}
}

// A part that fails is said, and the others go on; so is what a stack does not have. Nothing is left when it ends.
func TestMeasure(t *testing.T) {
	shown := map[string]bool{}
	made := Plan{Number: 10, pairs: 2, Show: func(what string, _ time.Duration) { shown[what] = true }}
	for _, name := range []string{"grpcprotobuf", "httpjson", "failing"} {
		made.Arms = append(made.Arms, Arm{plan.Of(name), oneP})
	}
	r, err := made.Measure(t.Context(), 1)
	said := strings.Split(err.Error(), "\n")
	require.Len(t, said, len(parts()))
	for _, line := range said {
		require.Regexp(t, "^idle: .*, failing: failing: dial: odd$", line)
	}
	require.Equal(t, []string{"open streams, on 4 connections: httpjson has no streams"}, r.Left)
	require.Len(t, r.Rows, len(sides)*(2*len(parts())-2))
	for _, row := range r.Rows {
		require.Equal(t, row.Stack != "grpcprotobuf", row.Figures[heap].Verdict != "", "the base is compared with nothing")
		require.Len(t, row.Held, made.pairs)
	}
	require.True(t, shown["open streams, on 4 connections, TLS, httpjson"])
	require.True(t, shown[""])
}

// What whole rounds have measured outlives an interruption, if there are two of them.
func TestInterrupted(t *testing.T) {
	const each = 6 // turns of a round
	for after, rows := range map[int]int{2*each - 1: 0, 2*each + 1: 12} {
		ctx, cancel := context.WithCancel(t.Context())
		turns := 0
		made := Plan{Number: 10, pairs: 3, Arms: []Arm{{plan.Of("grpcprotobuf"), oneP}},
			Show: func(what string, _ time.Duration) {
				if turns++; turns == after && what != "" {
					cancel()
				}
			}}
		r, err := made.Measure(ctx, 1)
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, r.Rows, rows, "after %d turns", after)
		for _, row := range r.Rows {
			require.Len(t, row.Held, 2, "of whole rounds")
		}
		require.Contains(t, r.Left, fmt.Sprintf("%d of 3 rounds, since it was interrupted", 3-(after-1)/each))
		require.NoError(t, r.Write(t.TempDir()))
		cancel()
	}
}

func TestSlope(t *testing.T) {
	for why, c := range map[string]struct {
		y    []float64
		want float64
	}{
		"a line":                     {[]float64{1100, 1500, 2000}, 1},
		"nothing grows":              {[]float64{7, 7, 7}, 0},
		"what is freed":              {[]float64{1000, 600, 100}, -1},
		"the middle is off the line": {[]float64{0, 90, 900}, 1.025409836065574},
	} {
		require.InDelta(t, c.want, slope([]int{100, 500, 1000}, c.y), 1e-12, why)
	}
	require.Equal(t, []int{1, 5, 10}, points(10))
}

// A verdict is that of the interval of the ratios of pairs of one round, beyond what the base's rounds differ by.
func TestVerdicts(t *testing.T) {
	base := []float64{1000, 1001, 999, 1000, 1000.5, 999.5}
	for _, c := range []struct {
		why   string
		times []float64 // of the base's
		want  verdict.Verdict
	}{
		{"a tenth less", []float64{0.9, 0.9, 0.91, 0.89, 0.9, 0.9}, "less"},
		{"a tenth more", []float64{1.1, 1.1, 1.11, 1.09, 1.1, 1.1}, "more"},
		{"a percent more, each time", []float64{1.01, 1.01, 1.01, 1.01, 1.01, 1.01}, "more"},
		{"as much", []float64{1, 1.001, 0.999, 1, 1, 1}, "same"},
		{"as much more as the base's rounds differ", []float64{1.002, 1.002, 1.002, 1.002, 1.002, 1.002}, "same"},
		{"two states", []float64{1, 1.5, 1, 1.5, 1, 1}, "undecided"},
		{"nothing in a pair", []float64{1, 1, 1, 1, 1, 0}, ""},
	} {
		each := slices.Clone(base)
		for i := range each {
			each[i] *= c.times[i]
		}
		f := newFigure(each)
		f.compare(base)
		require.Equal(t, c.want, f.Verdict, c.why)
		require.Equal(t, c.want == "", f.Ratio == 0, c.why)
		require.Less(t, f.Lo, f.Mean)
	}
	f := newFigure([]float64{1100, 1101, 1100, 1099, 1100, 1100})
	f.compare([]float64{1000, 1060, 1000, 1070, 1000, 1050})
	require.Greater(t, f.RatioLo, 1.)
	require.Greater(t, f.NoiseFloor, 0.05)
	require.EqualValues(t, "undecided", f.Verdict)
	ratios := table.New(1, "compared", "heap")
	require.Regexp(t, `^undecided 1\.0\d .* \[1\]$`, compared(ratios, f))
	require.Equal(t, []string{"within the noise floor"}, ratios.Notes)
	f = newFigure([]float64{8, 12, 10, 10, 10, 10})
	require.InDelta(t, 10, f.Mean, 1e-12)
	require.InDelta(t, 2.5706*math.Sqrt(8./5/6), f.Hi-f.Mean, 1e-3, "Student's, of six")
	require.Equal(t, "10 (50%)", spread(f))
}

func TestCheck(t *testing.T) {
	for number, want := range map[int]string{
		1000: "", 10: "", 900: "",
		9:     "9 is too few: a slope over a tenth, a half and all needs 10 or more",
		-1:    "-1 is too few: a slope over a tenth, a half and all needs 10 or more",
		20001: "20001 is too many: an address has ports for no more than 20000 connections: give less",
		1001: "1001 needs 1101 open files in a process, and 1100 are allowed: raise the limit with ulimit -n 1101, " +
			"or give 1000 or less",
	} {
		err := check(number, 1100)
		require.Equal(t, want == "", err == nil, number)
		if err != nil {
			require.EqualError(t, err, want)
		}
	}
	require.NoError(t, Check(least), "here")
	reconnects := httpjson.Default()
	require.EqualError(t, Refused(reconnects),
		"httpjson.default opens and closes connections as it needs them, and holds none: leave it out")
	require.NoError(t, Refused(httpjson.New()))
}

// What was found is written as it is read, for people, for programs and for benchstat.
func TestResult(t *testing.T) {
	figure := func(mean, ratio float64, said verdict.Verdict) Figure {
		return Figure{Mean: mean, Lo: mean - 1, Hi: mean + 1, Each: []float64{mean - 1, mean + 1},
			Ratio: ratio, RatioLo: ratio - 0.01, RatioHi: ratio + 0.01, Verdict: said}
	}
	r := Result{Number: 1000, Points: points(1000), Base: "httpjson", Left: []string{"streams: httpjson has no streams"}}
	for _, part := range parts() {
		for _, side := range sides {
			row := Row{part: part, Stack: "httpjson", Side: side, Held: make([][]Held, 2), Figures: map[string]Figure{
				heap: figure(10042, 0, ""), stacks: figure(8338, 0, ""), resident: figure(0, 0, ""), goroutines: figure(2, 0, "")}}
			other := row
			other.Stack = "grpcprotobuf@google.golang.org/grpc@v1.80.0"
			other.Figures = map[string]Figure{heap: figure(58912, 3.2, "more"), stacks: figure(20190, 2.4, "more"),
				resident: figure(0, 0, ""), goroutines: figure(5, 2.5, "more")}
			r.Rows = append(r.Rows, row, other)
		}
	}
	dir := t.TempDir()
	require.NoError(t, r.Write(dir))
	read, err := Read(dir)
	require.NoError(t, err)
	r.Release = Release
	require.Equal(t, r, read)
	for _, width := range []int{100, 60} {
		var text bytes.Buffer
		require.NoError(t, read.Text(&text, width, false))
		for line := range strings.Lines(text.String()) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), width, line)
		}
		require.Contains(t, text.String(), "10042 (0.02%)")
		require.Contains(t, text.String(), "more 3.20 (3.19–3.21)")
		require.Contains(t, text.String(), "Left out: streams: httpjson has no streams.\n")
	}
	data, err := os.ReadFile(dir + "/bench.txt")
	require.NoError(t, err)
	rows, _ := testkit.Rows(t, string(data))
	require.Len(t, rows, 2*len(r.Rows))
	require.Equal(t, "Idle/state=connections/tls=false/stack=grpcprotobuf@google.golang.org:grpc@v1.80.0/side=server",
		rows[2].Name.String())
	heaps, ok := rows[2].Value("heap-B")
	require.True(t, ok)
	require.InDelta(t, 58911, heaps, 0)
	_, ok = rows[2].Value("resident-B")
	require.False(t, ok, "a system that does not tell")

	require.NoError(t, os.WriteFile(dir+"/"+File, []byte(`{"release": 99}`), 0o600))
	_, err = Read(dir)
	require.EqualError(t, err, "idle.json has release 99 of its form, and this program reads 1")
}
