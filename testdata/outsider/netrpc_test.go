package netrpc_test

import (
	"testing"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/stacktest"

	netrpc "example.com/outsider"
)

func TestMain(m *testing.M) { stacktest.Main(m, netrpc.New()) }

func TestConformance(t *testing.T) { stacktest.Conformance(t, netrpc.New()) }

func BenchmarkNetRPC(b *testing.B) {
	stacktest.BenchmarkCreateUser(b, netrpc.New(), rpcbench.Config{})
}
