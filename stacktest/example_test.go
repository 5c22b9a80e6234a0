package stacktest_test

import (
	"testing"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/stacktest"
)

// Time one caller of a stack: this would be func BenchmarkMine(b *testing.B).
func ExampleBenchmarkCreateUser() {
	_ = func(b *testing.B) { stacktest.BenchmarkCreateUser(b, httpjson.New(), rpcbench.Config{}) }
}

// Compare stacks with a base: this would be func BenchmarkVersus(b *testing.B). The first stack is the base.
func ExampleBenchmarkVersus() {
	_ = func(b *testing.B) { stacktest.BenchmarkVersus(b, httpjson.New(), grpcprotobuf.New()) }
}
