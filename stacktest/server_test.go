package stacktest

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/cpu"
	"github.com/rpcbench/rpcbench/internal/odd"
	"github.com/rpcbench/rpcbench/internal/workload"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// BenchmarkElsewhere is the stacks whose servers the tests put into other processes.
func BenchmarkElsewhere(b *testing.B) {
	for _, s := range elsewhereStacks() {
		b.Run("stack="+s.Name, func(b *testing.B) {
			if s.Name == "sly" && flag.Lookup("server").Value.String() == "" {
				b.Skip("does not start with its server in this process")
			}
			Benchmark(b, rpcbench.Workload{}, s)
		})
	}
}

// What a call costs the server of the stack "costly".
const (
	knownAllocs = 1000
	knownCPU    = 500 * time.Microsecond
)

// elsewhereStacks are known to TestMain: a faultless one, two that show their faults only in a process of their own,
// and two whose server's cost is known.
func elsewhereStacks() []rpcbench.Stack {
	alone := os.Getenv("RPCBENCH_CHILD") == "serve"
	var served atomic.Int64
	mortal := fake{body: func(data []byte) []byte {
		if served.Add(1) > 1+warmRounds*corpus.Round+10 && alone {
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
	return []rpcbench.Stack{mortal, fake{}.stack(), leaking, costly, slow(alone), sly()}
}

// sly is a stack whose client opens a connection that no fixture knows of.
func sly() rpcbench.Stack {
	stack := fake{}.stack()
	stack.Name = "sly"
	dial := stack.Dial
	stack.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		if os.Getenv("RPCBENCH_CHILD") == "" {
			if _, err := net.Dial("tcp", config.Addr); err != nil {
				return nil, err
			}
		}
		return dial(config)
	}
	return stack
}

// runElsewhere runs the rows of a stack with the flag.
func runElsewhere(t *testing.T, stack, server string) (output string, err error) {
	t.Helper()
	return child(t, elsewhereArgs(stack, server)...)
}

// runsElsewhere are the figures of its only row.
func runsElsewhere(t *testing.T, stack, server string) map[string]float64 {
	t.Helper()
	return figuresOf(t, elsewhereArgs(stack, server)...)
}

func elsewhereArgs(stack, server string) []string {
	bench := "-test.bench=^BenchmarkElsewhere$/^stack=" + stack + "$"
	return []string{bench, "-test.benchtime=500x", "-server=" + server}
}

// TestServerElsewhere: with the server in another process a row's figures are the client's, and the server's stand
// beside them.
func TestServerElsewhere(t *testing.T) {
	here := runsElsewhere(t, "fake", "")
	require.NotContains(t, here, "server-B/op")
	remote := Start(t, fake{}.stack(), rpcbench.Config{})
	for server, keys := range map[string]string{
		"":                    "",
		"process":             "server: process\n",
		"fake=" + remote.Addr: "server: remote\nproved: no\n",
	} {
		p := &placement{where: server, seen: map[string]bool{}}
		var header strings.Builder
		p.printHeader(&header)
		require.True(t, strings.HasPrefix(header.String(), keys+"cores: "), "rows of other places are not compared")
		if server == "" {
			continue
		}
		there := runsElsewhere(t, "fake", server)
		for _, unit := range []string{"B/op", "allocs/op"} {
			require.Less(t, there[unit], here[unit], "%s of the client alone", unit)
			require.Positive(t, there[unit], unit)
			if server == childProcess {
				require.Less(t, there["server-"+unit], here[unit], "%s of the server alone", unit)
				require.Positive(t, there["server-"+unit], unit)
			}
		}
		if _, known := cpu.Time(); known {
			require.Positive(t, there["cpu-ns/op"])
			require.True(t, server != childProcess || there["server-cpu-ns/op"] > 0)
		}
		if server != childProcess {
			require.NotContains(t, there, "server-B/op", "of a server that is no child")
		}
		for _, unit := range []string{"sent-B/op", "recv-B/op"} {
			require.Equal(t, here[unit], there[unit], "%s: the same calls", unit)
		}
	}
}

// TestServersCost: what a call is known to cost the server is what the row says.
func TestServersCost(t *testing.T) {
	costly, rest := runsElsewhere(t, "costly", childProcess), runsElsewhere(t, "fake", childProcess)
	require.InDelta(t, knownAllocs, costly["server-allocs/op"]-rest["server-allocs/op"], 10)
	if _, known := cpu.Time(); !known {
		t.Skip("the system doesn't tell CPU time")
	}
	const unit = "server-cpu-ns/op"
	require.GreaterOrEqual(t, costly[unit], 0.99*float64(knownCPU))
	require.LessOrEqual(t, costly[unit], 1.6*float64(knownCPU)+3*rest[unit],
		"beside what the server needs without it, on a machine that may be three times as slow by now")
}

// What goes wrong with a server elsewhere is one clear line, there is no row, and no process is left: child waits for
// all who hold its standard output and error.
func TestBrokenServerElsewhereHasNoRow(t *testing.T) {
	const unavailable = "rpcbench: fake: connect: rpcbench: unavailable: "
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, nobody.Close())
	for _, c := range []struct{ why, stack, server, want string }{
		{"it dies, and the next row has another", "(mortal|fake)", "process",
			"rpcbench: mortal: close: server process: exit status 3"},
		{"it leaves goroutines", "leaking", "process", "rpcbench: leaking: close: server process: goroutines left "},
		{"nobody listens", "fake", "fake=" + nobody.Addr().String(), unavailable},
		{"another stack's server", "fake", "fake=" + Start(t, rawtcp.New(), rpcbench.Config{}).Addr, unavailable},
	} {
		t.Run(c.why, func(t *testing.T) {
			if c.stack == "leaking" && !current.long {
				t.Skip("goroutines have three seconds to end, twice: -long")
			}
			out, err := runElsewhere(t, c.stack, c.server)
			require.Error(t, err, out)
			require.Contains(t, out, c.want)
			rows, _ := odd.Rows(t, out)
			switch c.stack {
			case "leaking": // which shows when the row is there
				require.Contains(t, out, "goroutines left behind, which no Traits.Background names: ")
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
	require.Contains(t, out,
		`rpcbench: stub: server process: its process has no stack "stub": `)
}

func TestWrongServerFlag(t *testing.T) {
	for why, value := range map[string]string{
		"a word": "nonsense", "a misspelt word": "Process", "no stack": "127.0.0.1:http", "no address": "fake=",
		"a stack that is not here": "stub=127.0.0.1:http", "work injected by name": "fake+garbage=10000000000",
		"nothing after a comma": "fake=127.0.0.1:http,",
	} {
		t.Run(why, func(t *testing.T) {
			out, err := child(t, "-test.bench=.", "-server="+value)
			require.EqualError(t, err, "exit status 2")
			require.Regexp(t, `^rpcbench: -server: ".*" is neither process nor stack=host:port, `+
				`as rpcbench serve prints it, each stack once\n$`, out)
		})
	}
	p := &placement{where: childProcess}
	require.ErrorContains(t, p.open(nil), "TestMain does not name the stacks that -server and -processes need")
}

// TestRowsThatAServerElsewhereLacks are skipped: they would have their server here, below a key that is not theirs.
func TestRowsThatAServerElsewhereLacks(t *testing.T) {
	p := &placement{where: "fake=127.0.0.1:http", elsewhere: map[string]string{"fake": "127.0.0.1:http"},
		seen: map[string]bool{}}
	for _, c := range []struct {
		stack    string
		workload workload.Workload
		want     string // "" is skipped
	}{
		{"fake", workload.Workload{}, "127.0.0.1:http"},
		{"other.to.fake", workload.Workload{Conns: 3}, "127.0.0.1:http"},
		{"fake", workload.Workload{Apart: true}, "127.0.0.1:http"},
		{"fake.to.other", workload.Workload{}, ""},
		{"other", workload.Workload{}, ""},
		{"fake", workload.Workload{TLS: true}, ""},
	} {
		skipped, got := false, ""
		testing.Benchmark(func(b *testing.B) {
			defer func() { skipped = b.Skipped() }()
			got = p.config(b, renamed(c.stack), c.workload).Remote
		})
		require.Equal(t, c.want, got, c.stack)
		require.Equal(t, c.want == "", skipped, c.stack)
	}
	out, err := runElsewhere(t, "leaking", "fake="+Start(t, fake{}.stack(), rpcbench.Config{}).Addr)
	require.NoError(t, err, out)
	others := len(elsewhereStacks()) + len(apartStacks()) - 1
	require.Contains(t, out, fmt.Sprintf("# rpcbench: -server names no server of %d stacks: their rows are skipped\n",
		others))
	rows, _ := odd.Rows(t, out)
	require.Empty(t, rows)
}

// TestConnectionsOfAChildAreCounted: the child must have accepted what the fixture knows of.
func TestConnectionsOfAChildAreCounted(t *testing.T) {
	t.Parallel() // children measure
	out, err := runElsewhere(t, "sly", childProcess)
	require.Error(t, err)
	require.Contains(t, out, "rpcbench: sly: the server's process accepted 2 connections, its client opened 1")
	rows, _ := odd.Rows(t, out)
	require.Empty(t, rows)
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
		BenchmarkVersus(b, rpcbench.Workload{}, fake{}.stack(), renamed("other"))
	})
	require.True(t, skipped)
}
