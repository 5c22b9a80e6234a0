package versus

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/measure/network"
	"github.com/rpcbench/rpcbench/internal/measure/tcp"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
)

var long = flag.Bool("long", false, "measure over a network too, which takes half a minute")

// Over a network with a router a process has latencies of the round trip and more, skips no start, and tells what TCP
// did in each arm's windows and what the router did.
func TestOverNetwork(t *testing.T) {
	if !*long {
		t.Skip("takes half a minute: -long")
	}
	w := workload.Workload{Name: "lossy", Title: "lossy", Apart: true, Rate: 500, Link: "20ms/100Mbps/1%"}
	link, _ := w.Linked()
	if _, err := network.Check(t.Context(), link, tcp.Present()); err != nil {
		t.Log(err) // and no skip: the long tests have to run
		return
	}
	r, err := Run(t.Context(), Spec{Arms: []string{"httpjson", "httpjson", "rawtcp"}, Workload: w, Slice: Slice, Blocks: 1,
		Seed: 1}, Program{})
	require.NoError(t, err)
	require.Len(t, r.TCP, 3)
	for arm, did := range r.TCP {
		l := r.Latencies[arm]
		require.Greater(t, l.P50, 20*time.Millisecond)
		require.Greater(t, l.Calls, int64(1000))
		require.Zero(t, l.Skipped)
		require.Greater(t, did.Sent, l.Calls, "a call sends a segment each way")
		require.Less(t, did.Sent, 20*l.Calls, "of the window alone")
		require.Positive(t, did.Again)
		require.Less(t, did.Again, l.Calls)
	}
	require.Positive(t, r.Router.Lost)
	require.Less(t, r.Router.Lost, r.Router.Packets/20)
	require.Positive(t, r.Router.CPU)
	p, err := ProcessOf(r)
	require.NoError(t, err)
	require.EqualValues(t, r.Router.Late, p.LateNs)
}
