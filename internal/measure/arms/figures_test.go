package arms

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/measure/loop"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// TestRecordsLatencies: each figure of a record's latencies is the one of its name, and of its arm.
func TestRecordsLatencies(t *testing.T) {
	g, err := Open(t.Context(), at(small(t)), rawtcp.New(), rawtcp.New())
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Close()) }()
	of := func(unit time.Duration, n int) *loop.Recorder {
		r := loop.NewRecorder()
		for i := range n {
			r.Record(time.Duration(i+1) * unit)
		}
		return r
	}
	for i, arm := range g.Arms {
		unit := time.Duration(i+1) * time.Microsecond
		*arm.setup.Figures = loop.Figures{Latency: of(unit, 20_000), Lateness: of(10*unit, 1000),
			Planned: int64(30_000 + i), Skipped: int64(300 + i)}
	}
	for i, l := range g.Record().Latencies {
		unit := float64(i+1) * 1e3
		for name, c := range map[string]struct {
			want float64
			got  time.Duration
		}{
			"P50": {10_000 * unit, l.P50}, "P95": {19_000 * unit, l.P95}, "P99": {19_800 * unit, l.P99},
			"P999": {19_980 * unit, l.P999}, "Late": {9900 * unit, l.Late}, "Sum": {20_000 * 10_000.5 * unit, l.Sum},
		} {
			require.InEpsilon(t, c.want, float64(c.got), 0.002, "%s of arm %d", name, i)
		}
		require.EqualValues(t, []int64{20_000, int64(30_000 + i), int64(300 + i)}, []int64{l.Calls, l.Planned, l.Skipped})
	}
}

// TestSwitchesAreOfBothProcesses: a workload whose server is apart has the switches of its server, too.
func TestSwitchesAreOfBothProcesses(t *testing.T) {
	g, err := Open(t.Context(), at(workload.Workload{Apart: true}), worker("rests", 0), worker("rests", 0))
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Close()) }()
	arm := g.Arms[0]
	before := arm.server.Load().Switches()
	require.NoError(t, run(t, g, 1))
	if arm.server.Load().Switches() == 0 {
		t.Skip("this system does not tell")
	}
	require.Greater(t, arm.server.Load().Switches(), before+10)
	own, servers := cpu.Switches(os.Getpid()), arm.server.Load().Switches()
	require.GreaterOrEqual(t, arm.switches(), own+servers)
}

// TestWindowsAtARateHaveTheirStarts: there are starts for the lead-in and all of the window.
func TestWindowsAtARateHaveTheirStarts(t *testing.T) {
	t.Parallel()
	w := workload.Workload{Rate: 2000, Callers: 20}
	g, err := Open(t.Context(), at(w), rawtcp.New(), rawtcp.New())
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Close()) }()
	require.NoError(t, run(t, g, 1))
	_, length := w.Window(0)
	for _, l := range g.Record().Latencies {
		planned := w.Rate * length.Seconds() // about, and more where a busy machine ends a window late
		require.Greater(t, float64(l.Planned), 0.7*planned, "a process of starts whose gaps are random")
	}
}

// TestDroppedStartsAreOfAllWindows: callers who are busy for 120 ms drop the starts that were due meanwhile, and the
// record has them. How late a start was is known of each that ended.
func TestDroppedStartsAreOfAllWindows(t *testing.T) {
	t.Parallel()
	slow := replaced(func(_ int64, real rpcbench.Call) error {
		<-time.After(120 * time.Millisecond)
		return real(t.Context())
	})
	g, err := Open(t.Context(), at(workload.Workload{Rate: 2000, Callers: 2}), rawtcp.New(), slow)
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Close()) }()
	before := int64(0)
	for range 2 {
		require.NoError(t, run(t, g, 1))
		own := g.Record().Latencies[1]
		require.Greater(t, own.Skipped, before)
		require.Equal(t, own.Calls+own.Skipped, g.Arms[1].setup.Figures.Lateness.Count())
		before = own.Skipped
	}
}

// At a rate the arms of a block share a plan, which is another in each block and process. Windows have a thousand
// starts, and what is planned is done.
func TestRate(t *testing.T) {
	t.Parallel()
	w := workload.Workload{Rate: 5000, Callers: 20}
	seeds := map[uint64]bool{}
	for seed, blocks := range []int{2, 1} {
		g, err := Open(t.Context(), Spec{Workload: w, Slice: slice, Seed: uint64(seed)}, rawtcp.New(), rawtcp.New())
		require.NoError(t, err)
		for range blocks {
			require.NoError(t, run(t, g, 1))
			require.Equal(t, g.Arms[0].setup.Seed, g.Arms[1].setup.Seed)
			seeds[g.Arms[0].setup.Seed] = true
		}
		record := g.Record()
		require.NoError(t, g.Close())
		for i, l := range record.Latencies {
			lead, least := w.Window(0)
			require.GreaterOrEqual(t, record.Blocks[0][i].Lead, lead, "lead-in of arm %d", i)
			require.GreaterOrEqual(t, record.Blocks[0][i].Wall, least, "window of arm %d", i)
			require.Greater(t, l.Planned, int64(blocks*1000), "planned calls of arm %d, in %d windows", i, blocks)
			require.Positive(t, l.Calls, "calls of arm %d, of %d planned ones", i, l.Planned)
			require.Positive(t, l.Late, "how late the calls of arm %d began", i)
		}
	}
	require.Len(t, seeds, 3)
}
