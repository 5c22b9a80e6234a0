package stacktest_test

import (
	"context"
	"testing"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/stacktest"
)

// Prove that a stack does what it says. In your test file this is a function TestConformance.
func ExampleConformance() {
	test := func(t *testing.T) { stacktest.Conformance(t, httpjson.New()) }
	_ = test
}

// Time a stack with 30 callers over TLS, who send 2 kB and get them back. A benchmark prints one row.
func ExampleBenchmark() {
	busy := rpcbench.Workload{Callers: 30, TLS: true, Payload: "2kB"}
	benchmark := func(b *testing.B) { stacktest.Benchmark(b, httpjson.New(), busy) }
	_ = benchmark
}

// Start a fixture for a benchmark with a loop of your own. It is closed when the benchmark ends.
func ExampleStart() {
	benchmark := func(b *testing.B) {
		fixture := stacktest.Start(b, httpjson.New(), rpcbench.Config{TLS: true})
		call, err := fixture.Client.Prepare(1)
		if err != nil {
			b.Fatal(err)
		}
		ctx := context.Background() // see rpcbench.Call
		for b.Loop() {
			if err := call(ctx); err != nil { // a wrong reply is an error
				b.Fatal(err)
			}
		}
	}
	_ = benchmark
}

// Let the tests of a package fail if goroutines are left, and give them the flag -long.
func ExampleMain() {
	testMain := func(m *testing.M) { stacktest.Main(m, httpjson.New()) }
	_ = testMain
}

// Call Procs in each benchmark that shares a fixture, or the GOMAXPROCS of the first row may differ from its label.
func ExampleProcs() {
	shared := func(b *testing.B, call rpcbench.Call) {
		stacktest.Procs(b)
		for b.Loop() {
			if err := call(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	}
	_ = shared
}
