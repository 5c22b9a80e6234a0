package stacktest_test

import (
	"context"
	"testing"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/stacktest"
)

// A test proves a stack. In a test file of yours it is a function TestConformance.
func ExampleConformance() {
	test := func(t *testing.T) { stacktest.Conformance(t, httpjson.New()) }
	_ = test
}

// A benchmark is a row: here of 30 callers over TLS, who send 2 kB and get them back.
func ExampleBenchmark() {
	busy := rpcbench.Workload{Callers: 30, TLS: true, Payload: "2kB"}
	benchmark := func(b *testing.B) { stacktest.Benchmark(b, busy, httpjson.New()) }
	_ = benchmark
}

// A benchmark with a loop of your own has a fixture, which is closed when it ends.
func ExampleStart() {
	benchmark := func(b *testing.B) {
		fixture := stacktest.Start(b, httpjson.New(), rpcbench.Config{TLS: true})
		call, err := fixture.Users.PrepareUser(rpcbench.Sample(1, 2000))
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

// A TestMain fails if goroutines are left, and adds the flag -long.
func ExampleMain() {
	testMain := func(m *testing.M) { stacktest.Main(m, httpjson.New()) }
	_ = testMain
}

// Benchmarks that share a fixture each call Procs, or the first row could have another GOMAXPROCS than its label says.
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
