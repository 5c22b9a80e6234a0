//go:build !race

// The race detector allocates on its own account.

package calibrate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/versus"
)

// allocated is how many bytes a call on the stack of that name allocates.
func allocated(t *testing.T, name string) float64 {
	t.Helper()
	stack, err := Find(name)
	require.NoError(t, err)
	g := &versus.Group{}
	require.NoError(t, g.Open(t.Context(), name, stack))
	cost, err := g.Arms[0].Cost()
	require.NoError(t, err)
	require.NoError(t, g.Close(0))
	return cost.Bytes
}

func TestGarbageIsAllocated(t *testing.T) {
	extra := allocated(t, litter(8192)) - allocated(t, litter(0))
	require.InDelta(t, 8192, extra, 400)
}
