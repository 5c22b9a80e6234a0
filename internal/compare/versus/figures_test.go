package versus

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/measure/loop"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/verdict"
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

// TestEveryFigureIsItsOwn: a result at a rate has each figure of the base, its copy and the stack where it belongs. All
// of them differ.
func TestEveryFigureIsItsOwn(t *testing.T) {
	at := func(n int) time.Duration { return time.Duration(n) * time.Microsecond }
	var all []verdict.Process
	for i := range 8 {
		r := timing.Record{Arms: []string{"base", "base again", "x"}, Others: 0.001, Layout: i}
		var block []timing.Slice
		for arm := range 3 {
			n := 10 * (arm + 1)
			block = append(block, timing.Slice{Ops: 100, Wall: at(100_000), CPU: 100 * at(20+n), Server: 100 * at(5+n),
				Switches: int64(100 * (arm + 2)), Busy: 100*at(20+n) + at(arm), Idle: at(100_000 + 10_000*arm)})
			r.Latencies = append(r.Latencies, timing.Latency{Calls: 100, Planned: int64(101 + arm), Skipped: int64(arm),
				Late: at(700 + n), P50: at(100 + n), P95: at(200 + n), P99: at(300 + n), P999: at(400 + n),
				Sum: at(5000 + 100*n)})
		}
		for range 12 {
			r.Blocks = append(r.Blocks, block)
		}
		p, err := ProcessOf(r)
		require.NoError(t, err)
		all = append(all, p)
	}
	r := verdict.Decide(verdict.Plan{Processes: 8, NeedsCores: true, CPUs: 2, Apart: true}, all)
	p := r.Percentiles
	for name, c := range map[string]struct{ want, got float64 }{
		"CPU.BaseNs": {30_000, r.CPU.BaseNs}, "CPU.StackNs": {50_000, r.CPU.StackNs},
		"BaseMeans.ServerCPUNs":  {15_000, r.BaseMeans.ServerCPUNs},
		"StackMeans.ServerCPUNs": {35_000, r.StackMeans.ServerCPUNs},
		"BaseLoad.Switches":      {2, r.BaseLoad.Switches}, "StackLoad.Switches": {4, r.StackLoad.Switches},
		"BaseLoad.Completed": {100. / 101, r.BaseLoad.Completed}, "StackLoad.Completed": {100. / 103, r.StackLoad.Completed},
		"BaseLoad.Skipped": {0, r.BaseLoad.Skipped}, "StackLoad.Skipped": {2. / 103, r.StackLoad.Skipped},
		"BaseLoad.LateNs": {710_000, r.BaseLoad.LateNs}, "StackLoad.LateNs": {730_000, r.StackLoad.LateNs},
		"BaseLoad.Idle": {100_000. / 103_000, r.BaseLoad.Idle}, "StackLoad.Idle": {120_000. / 125_002, r.StackLoad.Idle},
		"P50.BaseNs": {110_000, p.P50.BaseNs}, "P50.CopyNs": {120_000, p.P50.CopyNs}, "P50.StackNs": {130_000, p.P50.StackNs},
		"P95.BaseNs": {210_000, p.P95.BaseNs}, "P95.CopyNs": {220_000, p.P95.CopyNs}, "P95.StackNs": {230_000, p.P95.StackNs},
		"P99.BaseNs": {310_000, p.P99.BaseNs}, "P99.CopyNs": {320_000, p.P99.CopyNs}, "P99.StackNs": {330_000, p.P99.StackNs},
		"P999.BaseNs": {410_000, p.P999.BaseNs}, "P999.CopyNs": {420_000, p.P999.CopyNs},
		"P999.StackNs": {430_000, p.P999.StackNs},
	} {
		require.InDelta(t, c.want, c.got, c.want*1e-9, name)
	}
}

// TestSwitchesAreOfBothProcesses: a workload whose server is apart has the switches of its server, too.
func TestSwitchesAreOfBothProcesses(t *testing.T) {
	g, err := Open(t.Context(), at(workload.Workload{Apart: true}), worker("rests", 0), worker("rests", 0))
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Close()) }()
	arm := g.Arms[0]
	before := arm.server.Switches()
	require.NoError(t, run(t, g, 1))
	if arm.server.Switches() == 0 {
		t.Skip("this system does not tell")
	}
	require.Greater(t, arm.server.Switches(), before+10)
	own, servers := cpu.Switches(os.Getpid()), arm.server.Switches()
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
