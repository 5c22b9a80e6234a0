package versus

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/workload"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// The Ops of a record are calls, also where an op is 200 calls of 50 callers.
func TestRecordsCountCalls(t *testing.T) {
	w, err := workload.Find("small-50-callers")
	require.NoError(t, err)
	var made atomic.Int64
	s := rawtcp.New()
	dial := s.Dial
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		c, err := dial(config)
		return counting{c.(rpcbench.Users), &made}, err
	}
	g, err := Open(t.Context(), w, slice, 1, nil, s, s)
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

// counting is a client that counts the calls made.
type counting struct {
	rpcbench.Users
	made *atomic.Int64
}

func (c counting) Prepare(i, payload int) (rpcbench.Call, error) {
	return c.PrepareUser(rpcbench.Sample(i, payload))
}

func (c counting) PrepareUser(u rpcbench.User) (rpcbench.Call, error) {
	call, err := c.Users.PrepareUser(u)
	return func(ctx context.Context) error {
		c.made.Add(1)
		return call(ctx)
	}, err
}
