package stacktest

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/cpu"
)

// TestFiguresOfARowAgree: however fast the machine is, requests per second are ops by time, and the share of the CPU is
// CPU time by the time of all cores.
func TestFiguresOfARowAgree(t *testing.T) {
	const callers, ops, takes = 2, 400, 500 * time.Microsecond
	_, known := cpu.Time()
	var turn sync.Mutex // one call at a time: the process's CPU time is all that can be read
	l := ledger{cost: func() {
		turn.Lock()
		defer turn.Unlock()
		for start, _ := cpu.Time(); known; {
			if now, _ := cpu.Time(); now-start >= takes {
				return
			}
		}
	}}
	r := bench(t, "400x", func(b *testing.B) { Benchmark(b, rpcbench.Workload{Callers: callers, Conns: 1}, l.stack()) })
	require.Equal(t, ops, r.N)
	perOp := float64(r.T) / ops
	rate := 1e9 / perOp
	require.InDelta(t, rate, r.Extra["req/s"], rate/1e6, "req/s of ops that take %v ns each", perOp)
	if known {
		cores, used := float64(runtime.NumCPU()), r.Extra["cpu-ns/op"]
		share := used / perOp / cores
		require.InDelta(t, share, r.Extra["cpu-share"], share/20,
			"cpu-share of %v cores, of ops that take %v ns each and use %v ns of CPU", cores, perOp, used)
	}
}

// What the server of the stack "slow" costs. Its start costs as much CPU time as all calls of a row wait.
const (
	slowCalls = 50
	slowWaits = 4 * time.Millisecond
	slowStart = slowCalls * slowWaits
)

// slow is a stack whose server uses much CPU time before it serves, and in a row's timed calls waits.
func slow(alone bool) rpcbench.Stack {
	var served atomic.Int64
	stack := fake{body: func(data []byte) []byte {
		if n := served.Add(1) - (1 + warmRounds*corpus.Round); alone && n > 0 && n <= slowCalls {
			<-time.After(slowWaits)
		}
		return data
	}}.stack()
	stack.Name = "slow"
	server := stack.Server
	stack.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		for start, known := cpu.Time(); known && alone; {
			if now, _ := cpu.Time(); now-start >= slowStart {
				break
			}
		}
		return server(config)
	}
	return stack
}

// TestServersCPUIsOfItsCalls: neither what its start cost nor the time in which it waits is CPU time of a call.
func TestServersCPUIsOfItsCalls(t *testing.T) {
	if _, known := cpu.Time(); !known {
		t.Skip("the system doesn't tell CPU time")
	}
	bench := "-test.bench=^BenchmarkElsewhere$/^stack=slow$"
	row := figuresOf(t, bench, fmt.Sprintf("-test.benchtime=%dx", slowCalls))
	require.GreaterOrEqual(t, row["ns/op"], float64(slowWaits), "the server waited")
	require.Positive(t, row["server-cpu-ns/op"])
	require.Less(t, row["server-cpu-ns/op"], float64(slowWaits)/2, "CPU time of a call that waits")
}
