package workload_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
)

// Bytes are counted by connections that are wrapped, which grpc-go reads in another way than those of timed calls: it
// knows the connections of package net. What is counted with them is as it is without.
func TestCountsAreThoseOfTimedCalls(t *testing.T) {
	if strings.Contains(environ.Build(), "-race") {
		t.Skip("the race detector drops objects from pools")
	}
	const calls = 1000
	counted := func(config rpcbench.Config) (allocs, bytes float64) {
		o, err := workload.Workload{}.Open(t.Context(), grpcprotobuf.New(), workload.Setup{Config: config})
		require.NoError(t, err)
		require.NoError(t, o.Start(o.Warm))
		since := workload.Allocated()
		require.NoError(t, o.Loop.Run(t.Context(), calls))
		b, n := since()
		require.NoError(t, o.Close())
		return float64(n) / calls, float64(b) / calls
	}
	allocs, bytes := counted(rpcbench.Config{})
	wrap := new(tap.Counter).Wrap
	wrappedAllocs, wrappedBytes := counted(rpcbench.Config{WrapClient: wrap, WrapServer: wrap})
	require.InDelta(t, allocs, wrappedAllocs, 0.5, "less than half an object, as for a gate")
	require.InEpsilon(t, bytes, wrappedBytes, 0.03)
}
