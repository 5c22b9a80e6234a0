package versus

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/measure/latency"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// TestRecordsLatencies: each figure of a record's latencies is the one of its name, and of its arm.
func TestRecordsLatencies(t *testing.T) {
	g, err := Open(t.Context(), at(small(t)), rawtcp.New(), rawtcp.New())
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Close()) }()
	of := func(unit time.Duration, n int) *latency.Recorder {
		r := latency.NewRecorder()
		for i := range n {
			r.Record(time.Duration(i+1) * unit)
		}
		return r
	}
	for i, arm := range g.Arms {
		unit := time.Duration(i+1) * time.Microsecond
		*arm.setup.Figures = latency.Figures{Latency: of(unit, 20_000), Lateness: of(10*unit, 1000),
			Planned: int64(30_000 + i), Dropped: int64(300 + i)}
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
		require.EqualValues(t, []int64{20_000, int64(30_000 + i), int64(300 + i)}, []int64{l.Calls, l.Planned, l.Dropped})
	}
}

// TestEveryFigureIsItsOwn: a result at a rate has each figure of the base, its copy and the stack where it belongs. All
// of them differ.
func TestEveryFigureIsItsOwn(t *testing.T) {
	at := func(n int) time.Duration { return time.Duration(n) * time.Microsecond }
	var all []Process
	for i := range 8 {
		r := timing.Record{Arms: []string{"base", "base again", "x"}, Others: 0.001, Layout: i}
		var block []timing.Slice
		for arm := range 3 {
			n := 10 * (arm + 1)
			block = append(block, timing.Slice{Ops: 100, Wall: at(100_000), CPU: 100 * at(20+n), Server: 100 * at(5+n),
				Switches: int64(100 * (arm + 2)), Busy: 100*at(20+n) + at(arm), Idle: at(100_000 + 10_000*arm)})
			r.Latencies = append(r.Latencies, timing.Latency{Calls: 100, Planned: int64(101 + arm), Dropped: int64(arm),
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
	r := Decide(Plan{Processes: 8, AllCores: true, CPUs: 2, Apart: true}, all)
	for name, c := range map[string]struct{ want, got float64 }{
		"BaseNs": {30_000, r.BaseNs}, "Ns": {50_000, r.Ns},
		"BaseServer": {15_000, r.BaseServer}, "Server": {35_000, r.Server},
		"BaseLoad.Switches": {2, r.BaseLoad.Switches}, "Load.Switches": {4, r.Load.Switches},
		"BaseLoad.Reached": {100. / 101, r.BaseLoad.Reached}, "Load.Reached": {100. / 103, r.Load.Reached},
		"BaseLoad.Dropped": {0, r.BaseLoad.Dropped}, "Load.Dropped": {2. / 103, r.Load.Dropped},
		"BaseLoad.LateNs": {710_000, r.BaseLoad.LateNs}, "Load.LateNs": {730_000, r.Load.LateNs},
		"BaseLoad.Free": {100_000. / 103_000, r.BaseLoad.Free}, "Load.Free": {120_000. / 125_002, r.Load.Free},
		"P50.Base": {110_000, r.P50.Base}, "P50.Copy": {120_000, r.P50.Copy}, "P50.Ns": {130_000, r.P50.Ns},
		"P95.Base": {210_000, r.P95.Base}, "P95.Copy": {220_000, r.P95.Copy}, "P95.Ns": {230_000, r.P95.Ns},
		"P99.Base": {310_000, r.P99.Base}, "P99.Copy": {320_000, r.P99.Copy}, "P99.Ns": {330_000, r.P99.Ns},
		"P999.Base": {410_000, r.P999.Base}, "P999.Copy": {420_000, r.P999.Copy}, "P999.Ns": {430_000, r.P999.Ns},
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
	w := workload.Workload{Rate: 2000, Callers: 20}
	g, err := Open(t.Context(), at(w), rawtcp.New(), rawtcp.New())
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Close()) }()
	require.NoError(t, run(t, g, 3))
	_, length := w.Window()
	for _, l := range g.Record().Latencies {
		planned := 3 * w.Rate * length.Seconds() // about, and more where a busy machine ends a window late
		require.Greater(t, float64(l.Planned), 0.7*planned, "a process of starts whose gaps are random")
	}
}

// TestDroppedStartsAreOfAllWindows: callers who are busy for 120 ms drop the starts that were due meanwhile, and the
// record has them.
func TestDroppedStartsAreOfAllWindows(t *testing.T) {
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
		dropped := g.Record().Latencies[1].Dropped
		require.Greater(t, dropped, before)
		before = dropped
	}
}
