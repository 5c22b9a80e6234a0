package workload_test

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// twice is a connection that writes a part, and then the rest.
type twice struct{ net.Conn }

func (c twice) Write(p []byte) (int, error) {
	if n, err := c.Conn.Write(p[:1]); err != nil {
		return n, err
	}
	n, err := c.Conn.Write(p[1:])
	return n + 1, err
}

// What CountCalls counts is what calls cost: of rawtcp the frames of a small user, and what its calls are made to
// allocate besides. It counts at the GOMAXPROCS that the question needs, whatever was set.
func TestLookCounts(t *testing.T) {
	const sent, received, objects, size = 5 + 36, 5 + 54, 100, 4096
	const procs = 3
	before := runtime.NumCPU() + 1
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(before))
	for _, c := range []struct {
		workload    string
		procs       int   // that the workload asks for; 0 is as many as there are cores
		connections int64 // 0: one for each call
	}{
		{workload: "small", procs: procs, connections: 1},
		{workload: "stream", connections: 1},
		{workload: "small-50x20", connections: 20},
		{workload: "cold", procs: procs},
	} {
		t.Run(c.workload, func(t *testing.T) {
			w, ok := named(workload.Rows(true), c.workload)
			require.True(t, ok)
			w.Procs = c.procs
			look := func(objects int) (f workload.Facts, seen map[int]bool) {
				var mu sync.Mutex
				seen = map[int]bool{}
				stack := testkit.WithClient(rawtcp.New(), func(users rpcbench.Users) rpcbench.Client {
					return testkit.Around(users, func(_ rpcbench.User, call rpcbench.Call) rpcbench.Call {
						kept := make([][]byte, objects)
						return func(ctx context.Context) error {
							for i := range kept {
								kept[i] = make([]byte, size)
							}
							mu.Lock()
							seen[runtime.GOMAXPROCS(0)] = true
							mu.Unlock()
							return call(ctx)
						}
					})
				})
				stack = testkit.Dialling(stack, func(c *rpcbench.ClientConfig) {
					dial := c.DialContext
					c.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
						conn, err := dial(ctx, network, addr)
						return twice{conn}, err
					}
				})
				f, err := w.CountCalls(t.Context(), stack, 1000)
				require.NoError(t, err)
				return f, seen
			}
			f, seen := look(objects)
			require.GreaterOrEqual(t, f.Calls, int64(20), "calls")
			require.EqualValues(t, sent, f.Sent, "bytes sent by a call")
			require.EqualValues(t, received, f.Received, "bytes received by a call")
			require.EqualValues(t, 2, f.Writes, "writes of a call")
			require.GreaterOrEqual(t, f.Reads, 1.0, "reads of a call")
			require.Less(t, f.Reads, 2.0, "reads of a call, whose reply is written at once")
			if c.connections > 0 {
				bare, _ := look(0)
				require.Equal(t, c.connections, f.Connections, "connections")
				require.InDelta(t, objects, f.Allocs-bare.Allocs, objects/50, "allocations of a call")
				require.InDelta(t, objects*size, f.AllocBytes-bare.AllocBytes, objects*size/50, "bytes allocated by a call")
			} else {
				require.Equal(t, f.Calls, f.Connections, "connections, one for each call")
			}
			require.Equal(t, map[int]bool{cmp.Or(c.procs, environ.Procs()): true}, seen, "GOMAXPROCS during the calls")
			require.Equal(t, before, runtime.GOMAXPROCS(0), "GOMAXPROCS afterwards")
		})
	}
}

// Calls of a rate are counted at that rate: 400 of 2000 a second take about a fifth of a second.
func TestLookAtARate(t *testing.T) {
	began := time.Now()
	f, err := workload.Workload{Rate: 2000, Callers: 4}.CountCalls(t.Context(), rawtcp.New(), 400)
	require.NoError(t, err)
	require.Positive(t, f.Calls)
	require.Greater(t, time.Since(began), 100*time.Millisecond)
}

// What is warm has gone round as often as is promised, with each of its callers: before the lead-in of a window, too.
func TestWarmUp(t *testing.T) {
	for rounds, all := range map[int64][]workload.Workload{
		4: {{}, {Callers: 8}, {Callers: 8, Conns: 2}, {Rate: 2000, Callers: 8}, {Payload: "1kB"}, {TLS: true},
			{Callers: 3, Unix: true}, {Payload: "flex.2kB", Callers: 2}, {Deadline: true}},
		1: {{NewConn: true}, {NewConn: true, Callers: 4}, {NewConn: true, Rate: 2000, Callers: 4}},
	} {
		for _, w := range all {
			var made atomic.Int64
			count := func(call rpcbench.Call, err error) (rpcbench.Call, error) {
				return func(ctx context.Context) error { made.Add(1); return call(ctx) }, err
			}
			stack := testkit.WithClient(rawtcp.New(), func(users rpcbench.Users) rpcbench.Client {
				return counting{users, users.(rpcbench.Echoer), count}
			})
			o, err := w.Open(t.Context(), stack, workload.Setup{Starts: 1, Seed: 1})
			require.NoError(t, err)
			connecting := made.Load()
			require.NoError(t, o.Start(o.Warm))
			round := int64(corpus.Round) // calls of one caller, or four of each
			if w.Callers > 1 {
				round = 4 * int64(w.Callers)
			}
			require.Equal(t, rounds*round, made.Load()-connecting, "calls that warm up, in %d rounds of %d: %+v", rounds, round,
				w)
			require.NoError(t, o.Loop.Finish())
			require.NoError(t, o.Close())
		}
	}
}

// counting changes each call that is prepared, whatever it sends.
type counting struct {
	rpcbench.Users
	rpcbench.Echoer
	count func(rpcbench.Call, error) (rpcbench.Call, error)
}

func (c counting) Prepare(i int) (rpcbench.Call, error) {
	return c.PrepareUser(rpcbench.SampleUser(i, 0))
}

func (c counting) PrepareUser(u rpcbench.User) (rpcbench.Call, error) {
	return c.count(c.Users.PrepareUser(u))
}

func (c counting) PrepareEcho(m *rpcbench.Flex) (rpcbench.Call, error) {
	return c.count(c.Echoer.PrepareEcho(m))
}

// What leads is what calls cost, of several callers or of a rate, unless a connection or a link is what takes the time.
func TestWhatLeads(t *testing.T) {
	for cost, all := range map[bool][]workload.Workload{
		true: {{Callers: 2}, {Rate: 1000}, {Rate: 1000, Callers: 1}, {Callers: 2, Apart: true},
			{Callers: 100, TLS: true, Payload: "1kB"}},
		false: {{}, {Callers: 1}, {Apart: true}, {TLS: true, Headers: true}, {Stream: true}, {NewConn: true},
			{Callers: 2, NewConn: true}, {Rate: 1000, NewConn: true}, {Link: "4g"}, {Callers: 2, Link: "4g"},
			{Rate: 1000, Link: "4g"}},
	} {
		for _, w := range all {
			require.Equal(t, cost, w.AsksCPU(), "%+v", w)
		}
	}
}

// A window holds ten calls of each caller, and where it does so anyway it is as long as ever. At a rate it holds a
// thousand calls, and ten times what delays one.
func TestWindows(t *testing.T) {
	const ms = time.Millisecond
	for why, test := range map[string]struct {
		workload.Workload
		call, lead, length time.Duration
	}{
		"callers of short calls":       {workload.Workload{Callers: 100, Apart: true}, 10 * ms, 100 * ms, 100 * ms},
		"a call of a millisecond more": {workload.Workload{Callers: 100}, 11 * ms, 100 * ms, 110 * ms},
		"callers of long calls":        {workload.Workload{Callers: 2, Wait: 150 * ms}, 151 * ms, 151 * ms, 1510 * ms},
		"one caller of long calls":     {workload.Workload{Apart: true, Wait: 200 * ms}, 201 * ms, 201 * ms, 2010 * ms},
		"a quick link":                 {workload.Workload{Callers: 2, Link: "40ms/10Mbps"}, 41 * ms, 1000 * ms, 2000 * ms},
		"a slow link":                  {workload.Workload{Callers: 2, Link: "300ms/1Mbps"}, 320 * ms, 1000 * ms, 3200 * ms},
		"a rate":                       {workload.Workload{Rate: 2000}, 40 * ms, 300 * ms, 500 * ms},
		"a high rate":                  {workload.Workload{Rate: 20_000}, 40 * ms, 300 * ms, 300 * ms},
		"a rate, handlers wait":        {workload.Workload{Rate: 500, Wait: ms}, 40 * ms, 300 * ms, 2000 * ms},
		"a rate, handlers wait long":   {workload.Workload{Rate: 500, Wait: 300 * ms}, 40 * ms, 300 * ms, 3000 * ms},
	} {
		lead, length := test.Window(test.call)
		require.Equal(t, []time.Duration{test.lead, test.length}, []time.Duration{lead, length}, why)
	}
}

// The windows of records are as they were, wherever they hold ten calls of each caller: of saturated callers whose
// median call is recorded, in all results.
func TestWindowsOfRecords(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^BenchmarkRun/workload=(small-saturated|structured-saturated-tls)/.*\t(\S+) p50-ns`)
	files, err := filepath.Glob("../../../study/results/*/*/bench.txt")
	require.NoError(t, err)
	seen := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, row := range rows.FindAllStringSubmatch(string(text), -1) {
			planned, err := workload.In(workload.All(), row[1])
			require.NoError(t, err)
			p50, err := strconv.ParseFloat(row[2], 64)
			require.NoError(t, err)
			if p50 > 10e6 { // as with net/http's default client
				continue
			}
			lead, length := planned.Window(time.Duration(p50))
			require.Equal(t, 100*time.Millisecond, lead, "%s: %s", file, row[0])
			require.Equal(t, 100*time.Millisecond, length, "%s: %s", file, row[0])
			seen++
		}
	}
	require.Positive(t, seen)
}

// Callers whose calls are delayed make so many calls a second. What asks for more is refused, with how many would do.
func TestRatesOfDelayedCallers(t *testing.T) {
	const wait = 200 * time.Millisecond
	for why, test := range map[string]struct {
		workload.Planned
		want string
	}{
		"they are enough":    {workload.Planned{Workload: workload.Workload{Rate: 500, Callers: 130, Wait: wait}}, ""},
		"they are too few":   {workload.Planned{Workload: workload.Workload{Rate: 1000, Wait: wait}}, "400 calls a second"},
		"this many would do": {workload.Planned{Workload: workload.Workload{Rate: 1000, Wait: wait}}, "give 250 callers"},
		"and these are":      {workload.Planned{Workload: workload.Workload{Rate: 1000, Callers: 250, Wait: wait}}, ""},
		"too few to look":    {workload.Ordinary(workload.Workload{Wait: wait}), "give 125 callers"},
		"a link delays too":  {workload.Planned{Workload: workload.Workload{Rate: 1000, Link: "4g"}}, "calls a second"},
		"no delay":           {workload.Planned{Workload: workload.Workload{Rate: 1e6}}, ""},
	} {
		err := test.Check()
		if test.want == "" {
			require.NoError(t, err, why)
			continue
		}
		require.ErrorContains(t, err, test.want, why)
	}
}

// Of the 22 blocks that run asks of a process unless told otherwise, windows take fewer, which last longer.
func TestBlocks(t *testing.T) {
	for want, all := range map[int][]workload.Workload{22: {{}, {Callers: 1}, {TLS: true, NewConn: true}},
		8:  {{Callers: 2}, {Apart: true}},
		10: {{Rate: 1000}, {Rate: 1000, Apart: true}},
		2: {{Link: "4g"}, {Link: "4g", Callers: 2}, {Link: "4g", Rate: 1000}, {Wait: 10 * time.Millisecond},
			{Wait: time.Second, Callers: 2}}} {
		for _, w := range all {
			require.Equal(t, want, w.Blocks(22), "%+v", w)
		}
	}
	require.Equal(t, 1, workload.Workload{Rate: 1000}.Blocks(5), "-quick")
}

// What a call of the stack "allocates" makes client and server allocate, and one of "plain" does not. The client of
// "strays" opens a connection of which no fixture knows, and the server of "splits" writes twice.
const clients, servers, each = 100, 300, 1024

func allocating() []rpcbench.Stack {
	of := func(name string, client, server int) rpcbench.Stack {
		var mu sync.Mutex
		var kept [][]byte
		allocate := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			kept = kept[:0]
			for range n {
				kept = append(kept, make([]byte, each))
			}
		}
		s := testkit.WithClient(httpjson.New(), func(users rpcbench.Users) rpcbench.Client {
			return testkit.Around(users, func(_ rpcbench.User, call rpcbench.Call) rpcbench.Call {
				return func(ctx context.Context) error {
					allocate(client)
					return call(ctx)
				}
			})
		})
		bare := s.Server
		s.Name, s.Server = name, func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			inner, err := bare(config)
			if err != nil {
				return nil, err
			}
			handler := inner.(interface{ HTTPHandler() http.Handler }).HTTPHandler()
			return httpapi.NewServer(config, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				allocate(server)
				handler.ServeHTTP(w, r)
			}), false), nil
		}
		return s
	}
	strays := testkit.Dialling(of("strays", 0, 0), func(c *rpcbench.ClientConfig) {
		if os.Getenv(child.Variable) != "" {
			return
		}
		if conn, err := net.Dial("tcp", c.Addr); err == nil {
			_ = conn.Close() // or the server waits for it until the collector closes it
		}
	})
	splits := testkit.WithServer(of("splits", 0, 0), func(inner rpcbench.Server) rpcbench.Server {
		return testkit.Server{Server: inner, OnServe: func(ln net.Listener) error {
			return inner.Serve(testkit.Listener{Listener: ln, Wrap: func(c net.Conn) net.Conn { return split{c} }})
		}}
	})
	return []rpcbench.Stack{of("plain", 0, 0), of("allocates", clients, servers), strays, splits}
}

// split writes in two halves.
type split struct{ net.Conn }

func (s split) Write(p []byte) (n int, err error) {
	if n, err = s.Conn.Write(p[:len(p)/2]); err != nil {
		return n, err
	}
	rest, err := s.Conn.Write(p[n:])
	return n + rest, err
}

// What client and server allocate in processes of their own is counted on either side.
func TestLookCountsServers(t *testing.T) {
	of := map[string]workload.Facts{}
	for _, stack := range allocating()[:2] {
		f, err := workload.Workload{Apart: true, Callers: 2}.CountCalls(t.Context(), stack, 200) // the warm-up's would show
		require.NoError(t, err)
		of[stack.Name] = f
	}
	more, plain := of["allocates"], of["plain"]
	require.InDelta(t, clients, more.Allocs-plain.Allocs, clients/20, "the client's allocations")
	require.InDelta(t, clients*each, more.AllocBytes-plain.AllocBytes, clients*each/20, "bytes of the client")
	require.InDelta(t, servers, more.ServerAllocs-plain.ServerAllocs, servers/20, "the server's allocations")
	require.InDelta(t, servers*each, more.ServerAllocBytes-plain.ServerAllocBytes, servers*each/20, "bytes of the server")
	together, err := workload.Workload{}.CountCalls(t.Context(), allocating()[0], 1000)
	require.NoError(t, err)
	require.Zero(t, together.ServerAllocs, "it has no process of its own")
	require.Greater(t, together.Allocs, max(plain.Allocs, plain.ServerAllocs), "both sides'")
}

// What a server writes and reads is counted wherever it runs, and so are the calls that it handles.
func TestLookCountsServersWrites(t *testing.T) {
	for _, apart := range []bool{false, true} {
		for i, writes := range map[int]float64{0: 1, 3: 2} {
			f, err := workload.Workload{Apart: apart}.CountCalls(t.Context(), allocating()[i], 200)
			require.NoError(t, err)
			require.InDelta(t, writes, f.ServerWrites, 0.1, "apart %t", apart)
			require.GreaterOrEqual(t, f.ServerReads, 0.9, "apart %t", apart)
			require.InDelta(t, 1, f.Writes, 0.1, "the client's, apart %t", apart)
			require.EqualValues(t, 1, f.Handled, "apart %t", apart)
		}
	}
}

// Calls over a connection that no fixture knows of would be in no figure.
func TestLookKnowsEachConnection(t *testing.T) {
	_, err := workload.Workload{Apart: true}.CountCalls(t.Context(), allocating()[2], 20)
	require.EqualError(t, err, "strays: the server's process accepted 2 connections, its client opened 1")
}
