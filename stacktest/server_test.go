package stacktest

import (
	"context"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/cpu"
	"github.com/rpcbench/rpcbench/internal/odd"
)

// BenchmarkElsewhere has servers in this process and in others. No child knows the stack "stub".
func BenchmarkElsewhere(b *testing.B) {
	forChildren(b)
	b.Run("here", func(b *testing.B) { Benchmark(b, rpcbench.Workload{}, fake{}.stack()) })
	for _, s := range append(elsewhereStacks(), stub(idle)) {
		b.Run("stack="+s.Name, func(b *testing.B) { Benchmark(b, rpcbench.Workload{Apart: true}, s) })
	}
}

// What a call costs the server of the stack "costly". It also waits, and its start costs CPU time.
const (
	knownAllocs = 1000
	knownCPU    = 500 * time.Microsecond
	knownWait   = 2 * time.Millisecond
	knownStart  = 250 * knownWait
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
	leaking := odd.WithServer(fake{}.stack(), func(s rpcbench.Server) rpcbench.Server {
		if alone {
			go func() { <-context.Background().Done() }()
		}
		return s
	})
	var kept [][]byte
	costly := fake{body: func(data []byte) []byte {
		kept = kept[:0]
		for range knownAllocs {
			kept = append(kept, make([]byte, 64))
		}
		spend(knownCPU)
		if alone {
			<-time.After(knownWait)
		}
		return data
	}}.stack()
	costly = odd.WithServer(costly, func(s rpcbench.Server) rpcbench.Server {
		if alone {
			spend(knownStart)
		}
		return s
	})
	// Its client opens a connection that no fixture knows of.
	sly := odd.Dialling(fake{}.stack(), func(c *rpcbench.ClientConfig) {
		if os.Getenv("RPCBENCH_CHILD") != "" {
			return
		}
		if conn, err := net.Dial("tcp", c.Addr); err == nil {
			_ = conn.Close() // or the server waits for it until the collector closes it
		}
	})
	return []rpcbench.Stack{named("mortal", mortal), fake{}.stack(), named("leaking", leaking), named("costly", costly),
		named("sly", sly)}
}

// elsewhereRow are the flags for a row of BenchmarkElsewhere.
func elsewhereRow(row string) []string {
	return []string{"-test.bench=^BenchmarkElsewhere$/^" + row + "$", "-test.benchtime=500x"}
}

// TestServerElsewhere: with the server in another process a row's figures are the client's, and the server's stand
// beside them.
func TestServerElsewhere(t *testing.T) {
	here, there := figuresOf(t, elsewhereRow("here")...), figuresOf(t, elsewhereRow("stack=fake")...)
	require.NotContains(t, here, "server-B/op")
	for _, unit := range []string{"B/op", "allocs/op"} {
		require.Less(t, there[unit], here[unit], "%s of the client alone", unit)
		require.Positive(t, there[unit], unit)
		require.Less(t, there["server-"+unit], here[unit], "%s of the server alone", unit)
		require.Positive(t, there["server-"+unit], unit)
	}
	if _, known := cpu.Time(); known {
		require.Positive(t, there["cpu-ns/op"])
		require.Positive(t, there["server-cpu-ns/op"])
	}
	for _, unit := range []string{"sent-B/op", "recv-B/op"} {
		require.Equal(t, here[unit], there[unit], "%s: the same calls", unit)
	}
}

// TestServersCost: what a call is known to cost the server is what the row says. Neither what its start cost nor the
// time in which it waits is among that.
func TestServersCost(t *testing.T) {
	costly, rest := figuresOf(t, elsewhereRow("stack=costly")...), figuresOf(t, elsewhereRow("stack=fake")...)
	require.InDelta(t, knownAllocs, costly["server-allocs/op"]-rest["server-allocs/op"], 10)
	if _, known := cpu.Time(); !known {
		t.Skip("the system doesn't tell CPU time")
	}
	require.GreaterOrEqual(t, costly["ns/op"], float64(knownWait), "the server waited")
	const unit = "server-cpu-ns/op"
	require.GreaterOrEqual(t, costly[unit], 0.99*float64(knownCPU))
	require.LessOrEqual(t, costly[unit], costly["ns/op"]-float64(knownWait)+rest[unit], "it waits without CPU")
}

// What goes wrong with a server elsewhere is one clear line, there is no row, and no process is left: child waits for
// all who hold its standard output and error.
func TestBrokenServerElsewhereHasNoRow(t *testing.T) {
	for _, c := range []struct{ why, stack, want, row string }{
		{"it dies, and the next row has another", "(mortal|fake)",
			"rpcbench: mortal: close: server process: exit status 3", "stack=fake"},
		{"it leaves goroutines", "leaking", "rpcbench: leaking: close: server process: goroutines left ", ""},
		{"TestMain does not name it", "stub",
			`rpcbench: stub: server process: its process has no stack "stub": `, ""},
		{"its client opens a connection of which no fixture knows", "sly",
			"rpcbench: sly: the server's process accepted 2 connections, its client opened 1", ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			if c.stack == "leaking" && !current.long {
				t.Skip("goroutines have three seconds to end, twice: -long")
			}
			out, err := child(t, elsewhereRow("stack="+c.stack)...)
			require.Error(t, err, out)
			require.Contains(t, out, c.want)
			rows, _ := odd.Rows(t, out)
			if c.row == "" {
				require.Empty(t, rows, out)
				return
			}
			require.Len(t, rows, 1, out)
			require.Contains(t, string(rows[0].Name), c.row)
		})
	}
}
