package versus

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/odd"
	"github.com/rpcbench/rpcbench/internal/workload"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// The Ops of a record are calls, also where an op is 200 calls of 50 callers.
func TestRecordsCountCalls(t *testing.T) {
	w, err := workload.Find("small-50-callers")
	require.NoError(t, err)
	var made atomic.Int64
	s := odd.WithClient(rawtcp.New(), func(c rpcbench.Users) rpcbench.Client {
		return odd.Client{Users: c, OnPrepare: func(u rpcbench.User) (rpcbench.Call, error) {
			call, err := c.PrepareUser(u)
			return func(ctx context.Context) error {
				made.Add(1)
				return call(ctx)
			}, err
		}}
	})
	g, err := Open(t.Context(), w, slice, 1, s, s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	o, before := g.Arms[0].open.Load(), made.Load()
	require.NoError(t, o.Op())
	perOp := int(made.Load() - before)
	before = made.Load()
	require.NoError(t, run(t, g, 1))
	ops := 0
	for _, block := range g.Record().Blocks {
		for _, s := range block {
			require.Positive(t, s.Ops)
			require.Zero(t, s.Ops%perOp, "an op makes %d calls, so a slice of %d calls can't be", perOp, s.Ops)
			ops += s.Ops
		}
	}
	require.LessOrEqual(t, int64(ops), made.Load()-before, "calls that were made")
}
