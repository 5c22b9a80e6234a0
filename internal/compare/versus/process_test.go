package versus

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// With two arms the copy is what is compared, to the base alone: half of a difference would not be seen.
func TestCopyThatIsSlower(t *testing.T) {
	record := timing.Record{Arms: []string{"a", "a again"}, Blocks: [][]timing.Slice{{{Ops: 1, Wall: 1000, CPU: 1000},
		{Ops: 1, Wall: 1040, CPU: 1040}}}, Latencies: []timing.Latency{{Calls: 5000, P50: 1000}, {Calls: 5000, P50: 1040}}}
	p, err := ProcessOf(record)
	require.NoError(t, err)
	a := verdict.Decide(verdict.Plan{NeedsCores: true}, slices.Repeat([]verdict.Process{p}, 8))
	require.InDelta(t, 1.04, a.Time.Ratio, 1e-9)
	require.InDelta(t, 1.04, a.CPU.Ratio, 1e-9)
	require.InDelta(t, 1.04, a.Percentiles.P50.Ratio, 1e-9)

	record.Arms = append(record.Arms, "b") // which takes 4 % longer than the base, and as long as its copy
	record.Blocks[0] = append(record.Blocks[0], record.Blocks[0][1])
	record.Latencies = append(record.Latencies, record.Latencies[1])
	p, err = ProcessOf(record)
	require.NoError(t, err)
	a = verdict.Decide(verdict.Plan{NeedsCores: true}, slices.Repeat([]verdict.Process{p}, 8))
	for _, ratio := range []float64{a.Time.Ratio, a.CPU.Ratio, a.Percentiles.P50.Ratio} {
		require.InDelta(t, math.Sqrt(1.04), ratio, 1e-9, "both fixtures of the base count")
	}
}

func TestProcessOf(t *testing.T) {
	block := func(wall time.Duration) []timing.Slice {
		return []timing.Slice{{Ops: 10, Wall: wall, CPU: wall / 2}, {Ops: 10, Wall: 2 * wall, CPU: wall},
			{Ops: 10, Wall: 3 * wall, CPU: 2 * wall}}
	}
	record := timing.Record{Arms: []string{"a", "a again", "b"}, Layout: 4, Others: 0.25,
		Blocks:    [][]timing.Slice{block(1000), block(2000), block(6000)},
		Latencies: []timing.Latency{{Sum: 9000, P50: 1}, {Sum: 9000, P50: 2}, {Sum: 54_000, P50: 3}}}
	p, err := ProcessOf(record)
	require.NoError(t, err)
	require.Equal(t, verdict.Process{Layout: 4, Others: 0.25, Ns: [3]float64{200, 400, 600},
		CPUNs: [3]float64{100, 200, 400},
		Time:  verdict.Ratios{Copy: 2, Ratio: 3, ToCopy: 1.5}, CPU: verdict.Ratios{Copy: 2, Ratio: 4, ToCopy: 2},
		Latencies: [3]verdict.Latency{{P50: 1}, {P50: 2}, {P50: 3}}, InFlight: [3]float64{1, 0.5, 2}}, p)

	two := record
	two.Arms = two.Arms[:2]
	two.Blocks = [][]timing.Slice{block(1000)[:2]}
	two.Latencies = nil
	p, err = ProcessOf(two)
	require.NoError(t, err)
	require.Equal(t, verdict.Ratios{Copy: 2, Ratio: 2}, p.Time, "the copy is what is compared")
	require.Equal(t, 200.0, p.Ns[2])

	for why, broken := range map[string]timing.Record{"nothing": {}, "one arm": {Arms: []string{"a"}},
		"no block": {Arms: []string{"a", "b"}}, "a copy without operations": {Arms: []string{"a", "a again", "b"},
			Blocks: [][]timing.Slice{{{Ops: 1, Wall: 1}, {Wall: 1}, {Ops: 1, Wall: 1}}}}} {
		_, err := ProcessOf(broken)
		require.Error(t, err, why)
	}
	atARate := timing.Record{Arms: []string{"a", "a"}, Blocks: [][]timing.Slice{{{Ops: 1, Wall: 1}, {Ops: 1, Wall: 1}}},
		Latencies: []timing.Latency{{Calls: 1, Planned: 1}, {Calls: 1, Planned: 1}}}
	_, err = ProcessOf(atARate)
	require.ErrorIs(t, err, errors.ErrUnsupported, "no CPU time is told")
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
