package stacktest_test

import (
	"testing"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/stacktest"
)

// Time one caller of a stack: this would be func BenchmarkMine(b *testing.B).
func ExampleBenchmark() {
	_ = func(b *testing.B) { stacktest.Benchmark(b, rpcbench.Workload{}, httpjson.New()) }
}

// Compare stacks with a base: this would be func BenchmarkVersus(b *testing.B). The first stack is the base.
func ExampleBenchmarkVersus() {
	_ = func(b *testing.B) {
		stacktest.BenchmarkVersus(b, rpcbench.Workload{}, httpjson.New(), grpcprotobuf.New())
	}
}
