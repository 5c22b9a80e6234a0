package netrpc_test

import (
	"testing"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/stacktest"

	netrpc "example.com/outsider"
)

func TestMain(m *testing.M) { stacktest.Main(m, netrpc.New(), httpjson.New()) }

func TestConformance(t *testing.T) { stacktest.Conformance(t, netrpc.New()) }

func BenchmarkNetRPC(b *testing.B) {
	stacktest.Benchmark(b, rpcbench.Workload{}, netrpc.New())
}

func BenchmarkBusy(b *testing.B) {
	stacktest.Benchmark(b, rpcbench.Workload{Callers: 30, TLS: true, Payload: 2000}, netrpc.New())
}

func BenchmarkVersus(b *testing.B) {
	stacktest.BenchmarkVersus(b, rpcbench.Workload{}, httpjson.New(), netrpc.New())
}
