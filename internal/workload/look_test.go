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
		stack, workload, seen string
		connections           int64
		sent                  float64
	}{
		{"httpjson", Small, "HTTP/1.1, application/json", 1, 197},
		{"grpcprotobuf", Small, "HTTP/2, application/grpc", 1, 113},
		{"rawtcp", Small, "no HTTP", 1, 0},
		{"httpjson.gzip", Small, "HTTP/1.1, application/json, gzip", 1, 0},
		{"httpjson", "mixed-50-callers", "HTTP/1.1, application/json", 20, 0},
		{"httpjson", "cold-tls", "TLS", 0, 0},
	} {
		t.Run(c.stack+" "+c.workload, func(t *testing.T) {
			s, err := stacks.Find(c.stack)
			require.NoError(t, err)
			f, err := find(c.workload).Look(context.Background(), s[0])
			require.NoError(t, err)
			require.Equal(t, c.seen, f.Seen)
			require.GreaterOrEqual(t, f.Calls, int64(20))
			require.Positive(t, f.Received)
			require.Greater(t, f.Allocs, 1.0)
			if c.sent > 0 {
				require.InDelta(t, c.sent, f.Sent, 2)
			}
			if c.connections > 0 {
				require.InDelta(t, c.connections, f.Connections, 1)
			} else {
				require.Equal(t, f.Calls, f.Connections, "a connection for each call")
			}
		})
	}
}
