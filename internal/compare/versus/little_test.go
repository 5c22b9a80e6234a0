package versus

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
	for why, w := range map[string]workload.Workload{
		"handlers wait longer than a window": {Callers: 2, Wait: 150 * time.Millisecond},
		"many handlers wait":                 {Callers: 50, Wait: 20 * time.Millisecond},
		"callers share connections":          {Callers: 6, Conns: 2, Wait: 20 * time.Millisecond},
		"short calls":                        {Callers: 4},
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
				if wall := record.Blocks[0][i].Wall; w.Wait > 0 {
					require.Greater(t, wall, usual+usual/2, arm.Name)
					require.Positive(t, arm.setup.Spread, arm.Name)
				}
			}
			p, err := ProcessOf(record)
			require.NoError(t, err)
			for i, n := range p.InFlight[:2] { // where a window is too short, half as many again are counted
				require.InEpsilon(t, w.AtOnce(), n, 0.3, "%s, on a machine that other tests use", g.Arms[i].Name)
			}
		})
	}
}
