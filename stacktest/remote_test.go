package stacktest

import (
	"context"
	"flag"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/cpu"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/remote"
	"github.com/rpcbench/rpcbench/internal/users"
)

// BenchmarkElsewhere is the stacks whose servers the tests put into other processes.
func BenchmarkElsewhere(b *testing.B) {
	for _, s := range elsewhereStacks() {
		b.Run("stack="+s.Name, func(b *testing.B) { BenchmarkCreateUser(b, s, rpcbench.Config{}) })
	}
}

// What a call costs the server of the stack "costly".
const (
	knownAllocs = 1000
	knownCPU    = 500 * time.Microsecond
)

// elsewhereStacks are known to TestMain: a faultless one, two that show their faults only in a process of their own, and one whose
// server's cost is known.
func elsewhereStacks() []rpcbench.Stack {
	alone := os.Getenv(serverProcess) != ""
	var served atomic.Int64
	mortal := fake{body: func(data []byte) []byte {
		if served.Add(1) > 1+warmRounds*users.Round+10 && alone {
			os.Exit(3)
		}
		return data
	}}.stack()
	mortal.Name = "mortal"
	leaking := fake{}.stack()
	leaking.Name = "leaking"
	server := leaking.Server
	leaking.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		if alone {
			go func() { <-context.Background().Done() }()
		}
		return server(config)
	}
	var kept [][]byte
	costly := fake{body: func(data []byte) []byte {
		kept = kept[:0]
		for range knownAllocs {
			kept = append(kept, make([]byte, 64))
		}
		for start, _ := cpu.Time(); ; {
			if now, known := cpu.Time(); !known || now-start >= knownCPU {
				return data
			}
		}
	}}.stack()
	costly.Name = "costly"
	return []rpcbench.Stack{mortal, fake{}.stack(), leaking, costly}
}

// runElsewhere runs the rows of a stack with the flag.
func runElsewhere(t *testing.T, stack, server string) (output string, err error) {
	t.Helper()
	return child(t, "-test.bench=^BenchmarkElsewhere$/^stack="+stack+"$", "-test.benchtime=500x", "-server="+server)
}

// listening is the address of a server as rpcbench serve has it.
func listening(t *testing.T, versions map[string]string) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- remote.Listen(ctx, ln, versions, finder(elsewhereStacks()), func(string) {}) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return ln.Addr().String()
}

// TestServerElsewhere: with the server in another process a row's figures are the client's, and the server's stand beside
// them.
func TestServerElsewhere(t *testing.T) {
	row := func(stack, server string) *benchfmt.Result {
		out, err := runElsewhere(t, stack, server)
		require.NoError(t, err, out)
		rows, units := results(t, out)
		require.Len(t, rows, 1, out)
		for _, v := range rows[0].Values {
			custom := !strings.Contains("sec/op B/op allocs/op", v.Unit)
			require.Equal(t, custom, units[v.OrigUnit] || units[v.Unit], "a Unit line for %q, exactly if testing doesn't know it", v.Unit)
		}
		return rows[0]
	}
	get := func(r *benchfmt.Result, unit string) float64 {
		v, ok := value(r, unit)
		require.True(t, ok, "%s is missing", unit)
		return v
	}
	here := row("fake", "")
	for _, v := range here.Values {
		require.NotContains(t, v.Unit, "server")
	}
	require.Empty(t, here.GetConfig("server"))
	for server, keys := range map[string]map[string]string{
		"process":                        {"server": "process", "proved": ""},
		listening(t, environ.Versions()): {"server": "remote", "proved": "no"},
	} {
		there := row("fake", server)
		for _, unit := range []string{"B/op", "allocs/op"} {
			both, client, server := get(here, unit), get(there, unit), get(there, "server-"+unit)
			require.Less(t, client, both, "%s of the client alone", unit)
			require.Less(t, server, both, "%s of the server alone", unit)
			require.Positive(t, client, unit)
			require.Positive(t, server, unit)
		}
		if _, known := cpu.Time(); known {
			require.Positive(t, get(there, "server-cpu-ns/op"))
			require.Positive(t, get(there, "cpu-ns/op"))
		}
		for _, unit := range []string{"sent-B/op", "recv-B/op"} {
			require.Equal(t, get(here, unit), get(there, unit), "%s: the same calls", unit)
		}
		for key, want := range keys {
			require.Equal(t, want, there.GetConfig(key), "rows of other places can't be compared by mistake")
		}
	}
}

// TestServersCost: what a call is known to cost the server is what the row says.
func TestServersCost(t *testing.T) {
	figure := func(stack, unit string) float64 {
		out, err := runElsewhere(t, stack, childProcess)
		require.NoError(t, err, out)
		rows, _ := results(t, out)
		require.Len(t, rows, 1, out)
		v, ok := value(rows[0], unit)
		require.True(t, ok, "%s is missing", unit)
		return v
	}
	require.InDelta(t, knownAllocs, figure("costly", "server-allocs/op")-figure("fake", "server-allocs/op"), 10)
	if _, known := cpu.Time(); !known {
		t.Skip("the system doesn't tell CPU time")
	}
	cost, rest := figure("costly", "server-cpu-ns/op"), figure("fake", "server-cpu-ns/op")
	require.GreaterOrEqual(t, cost, 0.99*float64(knownCPU))
	require.LessOrEqual(t, cost, 1.6*float64(knownCPU)+3*rest, "beside what the server needs without it, on a machine that may be three times as slow by now")
}

// What goes wrong with a server elsewhere is one clear line, there is no row, and no process is left: child waits for all
// who hold its standard output and error.
func TestBrokenServerElsewhereHasNoRow(t *testing.T) {
	mine := environ.Versions()
	other := map[string]string{"go": "go1.1", "commit": mine["commit"]}
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, nobody.Close())
	for _, c := range []struct{ why, stack, server, want string }{
		{"it dies, and the next row has another", "(mortal|fake)", "process", "rpcbench: mortal: close: server process: exit status 3"},
		{"it leaves goroutines", "leaking", "process", "rpcbench: leaking: close: server process: exit status 1"},
		{"another Go", "fake", listening(t, other), `: go is "go1.1" at the server and "` + mine["go"] + `" at the client: build both with one Go from one commit`},
		{"nobody listens", "fake", nobody.Addr().String(), "rpcbench: -server " + nobody.Addr().String() + ": server at " + nobody.Addr().String() + ": dial tcp "},
	} {
		t.Run(c.why, func(t *testing.T) {
			if c.stack == "leaking" && testing.Short() {
				t.Skip("goroutines have three seconds to end, twice")
			}
			out, err := runElsewhere(t, c.stack, c.server)
			require.Error(t, err, out)
			require.Contains(t, out, c.want)
			rows, _ := results(t, out)
			switch c.stack {
			case "leaking": // which shows when the row is there
			case "(mortal|fake)":
				require.Len(t, rows, 1, out)
				require.Contains(t, string(rows[0].Name), "stack=fake")
			default:
				require.Empty(t, rows, out)
			}
		})
	}
}

func TestServersStackIsUnknown(t *testing.T) {
	out, err := child(t, "-test.bench=^BenchmarkHarness$", "-test.benchtime=1x", "-server=process")
	require.Error(t, err)
	require.Contains(t, out, `rpcbench: stub: server process: TestMain does not name the stack "stub": stacktest.Main takes stacks`)
}

func TestWrongServerFlag(t *testing.T) {
	for why, value := range map[string]string{
		"a word": "nonsense", "a misspelt word": "Process", "no port": "host:", "port 0": "host:0", "a port too high": "host:65536",
		"a name of a port": "host:http", "no host and port": "host",
	} {
		t.Run(why, func(t *testing.T) {
			out, err := child(t, "-test.bench=.", "-server="+value)
			require.EqualError(t, err, "exit status 2")
			require.Equal(t, `rpcbench: -server "`+value+`": it is process, or the host:port that rpcbench serve prints`+"\n", out)
		})
	}
	p := &placement{where: childProcess}
	require.EqualError(t, p.open(io.Discard, nil),
		"rpcbench: -server process: TestMain does not name the stacks of its servers: stacktest.Main(m, mystack.New())")
}

// The flag is for the loops alone: this test's stack is one that no child knows.
func TestTestsHaveTheirServersHere(t *testing.T) {
	out, err := child(t, "-test.run=^TestWarmUpRunsTheMeasuredCalls$", "-test.v", "-server=process")
	require.NoError(t, err, out)
	require.Contains(t, out, "--- PASS: TestWarmUpRunsTheMeasuredCalls")
}

func TestVersusIsInOneProcess(t *testing.T) {
	require.NoError(t, flag.Set(serverFlag, childProcess))
	defer func() { require.NoError(t, flag.Set(serverFlag, "")) }()
	skipped := false
	testing.Benchmark(func(b *testing.B) {
		defer func() { skipped = b.Skipped() }()
		BenchmarkVersus(b, fake{}.stack(), renamed("other"))
	})
	require.True(t, skipped)
}

func TestConfigsOwnServeStays(t *testing.T) {
	const mine, flags = "mine", "the flag's"
	var called string
	serve := func(name string) remote.StartFunc {
		return func(ctx context.Context, s rpcbench.Stack, c rpcbench.Config) (rpcbench.Serving, error) {
			called = name
			return rpcbench.Serve(ctx, s, c)
		}
	}
	p := &placement{where: childProcess, serve: serve(flags)}
	for want, config := range map[string]rpcbench.Config{mine: {Serve: serve(mine)}, flags: {}} {
		Start(t, fake{}.stack(), p.config(config))
		require.Equal(t, want, called)
	}
}
