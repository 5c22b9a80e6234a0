package workload_test

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/odd"
	"github.com/rpcbench/rpcbench/internal/workload"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// What Look counts of calls is what they cost: of rawtcp the frames of a small user, and what its calls are made to
// allocate besides. It counts at the GOMAXPROCS that the question needs, whatever was set.
func TestLookCounts(t *testing.T) {
	const sent, received, objects, size = 5 + 36, 5 + 54, 100, 1024
	const procs = 3
	before := runtime.NumCPU() + 1
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(before))
	for _, c := range []struct {
		workload    string
		procs       int   // that the workload asks for; 0 is as many as there are cores
		connections int64 // 0: one for each call
	}{
		{workload: "small", procs: procs, connections: 1},
		{workload: "stream", connections: 1},
		{workload: "small-50x20", connections: 20},
		{workload: "cold", procs: procs},
	} {
		t.Run(c.workload, func(t *testing.T) {
			w, err := workload.In(workload.Rows(false), c.workload)
			require.NoError(t, err)
			w.Procs = c.procs
			look := func(objects int) (f workload.Facts, seen map[int]bool) {
				var mu sync.Mutex
				seen = map[int]bool{}
				stack := odd.WithClient(rawtcp.New(), func(users rpcbench.Users) rpcbench.Client {
					return odd.Around(users, func(_ rpcbench.User, call rpcbench.Call) rpcbench.Call {
						kept := make([][]byte, objects)
						return func(ctx context.Context) error {
							for i := range kept {
								kept[i] = make([]byte, size)
							}
							mu.Lock()
							seen[runtime.GOMAXPROCS(0)] = true
							mu.Unlock()
							return call(ctx)
						}
					})
				})
				f, err := w.Look(t.Context(), stack, 1000)
				require.NoError(t, err)
				return f, seen
			}
			f, seen := look(objects)
			require.GreaterOrEqual(t, f.Calls, int64(20), "calls")
			require.EqualValues(t, sent, f.Sent, "bytes sent by a call")
			require.EqualValues(t, received, f.Received, "bytes received by a call")
			require.EqualValues(t, 1, f.Writes, "writes of a call")
			require.GreaterOrEqual(t, f.Reads, 1.0, "reads of a call")
			if c.connections > 0 {
				bare, _ := look(0)
				require.Equal(t, c.connections, f.Connections, "connections")
				require.InDelta(t, objects, f.Allocs-bare.Allocs, objects/50, "allocations of a call")
				require.InDelta(t, objects*size, f.AllocBytes-bare.AllocBytes, objects*size/50, "bytes allocated by a call")
			} else {
				require.Equal(t, f.Calls, f.Connections, "connections, one for each call")
			}
			require.Equal(t, map[int]bool{cmp.Or(c.procs, runtime.NumCPU()): true}, seen, "GOMAXPROCS during the calls")
			require.Equal(t, before, runtime.GOMAXPROCS(0), "GOMAXPROCS afterwards")
		})
	}
}
