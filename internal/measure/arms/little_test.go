package arms

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
)

// TestCallsUnderWayAreTheCallers: windows follow calls that are longer than they would be, so that as many calls are
// under way as there are callers, whatever a call takes. Windows of 100 ms would count the two callers' calls of 150 ms
// as three.
func TestCallsUnderWayAreTheCallers(t *testing.T) {
	t.Parallel()
	for why, w := range map[string]workload.Workload{
		"handlers wait longer than a window": {Callers: 2, Wait: 150 * time.Millisecond},
		"many handlers wait":                 {Callers: 50, Wait: 20 * time.Millisecond},
		"callers share connections":          {Callers: 6, Conns: 2, Wait: 20 * time.Millisecond},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			g, err := Open(t.Context(), at(w), httpjson.New(), grpcprotobuf.New())
			require.NoError(t, err)
			defer func() { require.NoError(t, g.Close()) }()
			require.NoError(t, run(t, g, 1))
			record := g.Record()
			_, usual := w.Window(0)
			for i, arm := range g.Arms {
				require.Greater(t, record.Blocks[0][i].Wall, usual+usual/2, arm.Name)
				require.Positive(t, arm.setup.Spread, arm.Name)
			}
			for i, l := range record.Latencies {
				if w.Callers == 2 { // whose windows are so long that no stall of a machine that others use tells
					require.InEpsilon(t, 2, float64(l.Sum)/float64(record.Blocks[0][i].Wall), 0.3,
						"a window that is too short has three")
				}
			}
		})
	}
}
