package workload

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/stacks"
)

// What Look counts is what the stack is known to do.
func TestLook(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand calls each")
	}
	all := All()
	find := func(name string) Workload {
		return all[slices.IndexFunc(all, func(w Workload) bool { return w.Name == name })]
	}
	for _, c := range []struct {
		stack, workload string
		connections     int64
		sent            float64
	}{
		{"httpjson", Small, 1, 197},
		{"grpcprotobuf", Small, 1, 113},
		{"rawtcp", Small, 1, 41},
		{"httpjson.gzip", Small, 1, 266},
		{"httpjson", "mixed-50-callers", 20, 549},
		{"httpjson", "cold-tls", 0, 1784},
	} {
		t.Run(c.stack+" "+c.workload, func(t *testing.T) {
			s, err := stacks.Find(c.stack)
			require.NoError(t, err)
			f, err := find(c.workload).Look(context.Background(), s[0], 1000)
			require.NoError(t, err)
			require.GreaterOrEqual(t, f.Calls, int64(20))
			require.Positive(t, f.Received)
			require.Greater(t, f.Allocs, 1.0)
			require.InDelta(t, c.sent, f.Sent, 2)
			if c.connections > 0 {
				require.InDelta(t, c.connections, f.Connections, 1)
			} else {
				require.Equal(t, f.Calls, f.Connections, "a connection for each call")
			}
		})
	}
}
