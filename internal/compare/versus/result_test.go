package versus

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/measure/timing"
)

// processes have these ratios, one layout for each, and copies that are equal to the base.
func processes(ratios ...float64) (all []Process) {
	for i, r := range ratios {
		all = append(all, Process{Layout: i + 1, Ns: [3]float64{1000, 1000, 1000 * r},
			CPUNs: [3]float64{1000, 1000, 1000 * r}, Ratios: Ratios{Copy: 1, Ratio: r}})
	}
	return all
}

// ofOneBuild are processes of one link, whose contestant is as far from the copy as from the base.
func ofOneBuild(all []Process) []Process {
	for i := range all {
		all[i].Layout, all[i].ToCopy = 1, all[i].Ratio
	}
	return all
}

// spread has n ratios around a centre, of this standard deviation.
func spread(n int, center, sd float64) (ratios []float64) {
	var logs, squares float64
	for i := range n {
		ratios = append(ratios, float64(i)-float64(n-1)/2)
		squares += ratios[i] * ratios[i]
	}
	for i := range ratios {
		ratios[i] = center * math.Exp(ratios[i]*sd/math.Sqrt(squares/float64(n-1)))
		logs += math.Log(ratios[i])
	}
	return ratios
}

// The interval is Student's of the logarithms. With 7 degrees of freedom R's qt(0.975, 7) is 2.364624 and
// qt(1-0.025/3, 7) is 3.127553; with 3 the first is 3.182446. Of one build, what layouts make of a ratio is added in
// squares: 1.959964 times 0.0065, or 2.393980 times for one of three.
func TestInterval(t *testing.T) {
	inPairs := func(all []Process) []Process { // two processes of each layout
		for i := range all {
			all[i].Layout = i / 2
		}
		return all
	}
	for _, c := range []struct {
		why         string
		all         []Process
		half, level float64
	}{
		{"eight layouts, at 95 %", processes(spread(8, 1.05, 0.02)...), 2.364624 * 0.02 / math.Sqrt(8), 0.95},
		{"eight processes of one build", ofOneBuild(processes(spread(8, 1.05, 0.02)...)),
			math.Hypot(2.364624*0.02/math.Sqrt(8), 1.959964*0.0065), 0.95},
		{"one build that has no noise", ofOneBuild(processes(spread(8, 1.05, 1e-9)...)), 1.959964 * 0.0065, 0.95},
		{"two of each layout that differ: the interval of the layouts is the wider",
			inPairs(processes(1.00, 1.00, 1.04, 1.04, 1.08, 1.08, 1.12, 1.12)),
			3.182446 / 2 * deviation(1.00, 1.04, 1.08, 1.12), 0.95},
		{"two of each layout that differ from each other: that of the processes",
			inPairs(processes(1, 1.1, 1, 1.1, 1, 1.1, 1, 1.1)),
			2.364624 / math.Sqrt(8) * deviation(1, 1.1, 1, 1.1, 1, 1.1, 1, 1.1), 0.95},
	} {
		t.Run(c.why, func(t *testing.T) {
			r := Decide(Plan{}, c.all)
			require.InDelta(t, c.half, math.Log(r.Hi/r.Ratio), 2e-6)
			require.InDelta(t, c.half, math.Log(r.Ratio/r.Lo), 2e-6)
			require.InDelta(t, c.level, r.Level, 1e-12)
		})
	}
}

// deviation is the standard deviation of the logarithms.
func deviation(ratios ...float64) float64 {
	var sum, squares float64
	for _, r := range ratios {
		sum += math.Log(r) / float64(len(ratios))
	}
	for _, r := range ratios {
		squares += (math.Log(r) - sum) * (math.Log(r) - sum)
	}
	return math.Sqrt(squares / float64(len(ratios)-1))
}

func TestVerdict(t *testing.T) {
	moving := func(all []Process, by float64) []Process { // every other process is slower, by the whole machine
		for i := range all {
			if i%2 == 1 {
				for arm := range 3 {
					all[i].Ns[arm] *= 1 + by
				}
			}
		}
		return all
	}
	copies := func(all []Process, sd float64) []Process {
		for i, r := range spread(len(all), 1, sd) {
			all[i].Copy = r
		}
		return all
	}
	ratios := func(few float64, n int, most float64, m int) []float64 {
		return append(slices.Repeat([]float64{few}, n), slices.Repeat([]float64{most}, m)...)
	}
	for _, c := range []struct {
		why     string
		plan    Plan
		all     []Process
		verdict Verdict
		reason  string
	}{
		{"slower", Plan{Processes: 8}, processes(spread(8, 1.05, 0.01)...), Slower, ""},
		{"faster", Plan{Processes: 8}, processes(spread(8, 0.95, 0.01)...), Faster, ""},
		{"less than the margin, and slower all the same", Plan{Processes: 8}, processes(spread(8, 1.01, 0.001)...), Slower,
			""},
		{"equal", Plan{Processes: 8}, processes(spread(8, 1.001, 0.01)...), Equal, ""},
		{"equal by a margin of its own", Plan{Processes: 8, Margin: 0.05}, processes(spread(8, 1, 0.03)...), Equal, ""},
		{"a noise floor within that margin", Plan{Processes: 8, Margin: 0.05}, copies(processes(spread(8, 1.001, 0.01)...),
			0.03), Equal, ""},
		{"not equal by a margin of its own", Plan{Processes: 8, Margin: 0.005}, processes(spread(8, 1.001, 0.01)...),
			Undecided, "the interval includes 1: about 5 times -time would decide 1.00 in half of the cases"},
		{"too wide to be equal", Plan{Processes: 8}, processes(spread(8, 1, 0.03)...), Undecided,
			"the interval includes 1: about 2 times -time would decide 1.00 in half of the cases"},
		{"includes 1", Plan{Processes: 8}, processes(spread(8, 1.03, 0.06)...), Undecided,
			"the interval includes 1: about 3 times -time would decide 1.03 in half of the cases"},
		{"a machine that moved by 37 % decides 5 %", Plan{Processes: 8}, moving(processes(spread(8, 1.05, 0.01)...), 0.37),
			Slower, ""},
		{"but not 3 %, of which a tenth of the movement may be the whole", Plan{Processes: 8},
			moving(processes(spread(8, 1.03, 0.001)...), 0.37), Undecided,
			"the interval reaches into the noise floor of 3.2 %, " +
				"and the base's own time varied by 37 %: measure on a quieter machine"},
		{"nor 3 % where the copy's floor is the larger today, and the movement's would be left", Plan{Processes: 8},
			copies(moving(processes(spread(8, 0.967, 0.001)...), 0.41), 0.06), Undecided,
			"the interval reaches into the noise floor of 5.1 %, " +
				"and the base's own time varied by 41 %: measure on a quieter machine"},
		{"a machine that moved beyond a factor of two", Plan{Processes: 8},
			moving(processes(spread(8, 1.03, 0.001)...), 5), Undecided, "the interval reaches into the noise floor of 20 %, " +
				"and the base's own time varied by more than 100 %: measure on a quieter machine"},
		{"a hundred times as long would be too short, on any machine", Plan{Processes: 8},
			processes(spread(8, 1.003, 0.5)...), Undecided,
			"the interval includes 1: no time would decide so small a difference"},
		{"a copy that differs", Plan{Processes: 8}, copies(processes(spread(8, 1.05, 0.01)...), 0.06), Undecided,
			"the interval reaches into the noise floor of 5.1 %: about 2 times -time would decide 1.05 in half of the cases"},
		{"the copy's floor counts where it is the larger", Plan{Processes: 8},
			copies(moving(processes(spread(8, 1.05, 0.01)...), 0.2), 0.06), Undecided,
			"the interval reaches into the noise floor of 5.1 %: about 2 times -time would decide 1.05 in half of the cases"},
		{"one of eight on the other side", Plan{Processes: 8}, processes(append(spread(7, 1.40, 0.05), 0.98)...), Slower, ""},
		{"two of eight", Plan{Processes: 8}, processes(1.29, 1.38, 1.41, 1.35, 1.53, 1.40, 0.94, 0.95), Undecided,
			"6 of 8 processes lie on one side of 1, but their ratios vary by 19 %: the machine may have had two states"},
		{"three of twelve", Plan{Processes: 12}, processes(ratios(0.94, 3, 1.4, 9)...), Undecided,
			"9 of 12 processes lie on one side of 1, but their ratios vary by 18 %: the machine may have had two states"},
		{"two of sixteen", Plan{Processes: 16}, processes(ratios(0.94, 2, 1.4, 14)...), Slower, ""},
		{"four of sixteen", Plan{Processes: 16}, processes(ratios(0.94, 4, 1.4, 12)...), Undecided,
			"12 of 16 processes lie on one side of 1, but their ratios vary by 18 %: the machine may have had two states"},
		{"six of eight have measured", Plan{Processes: 8}, processes(spread(6, 1.05, 0.01)...), Slower, ""},
		{"five of eight", Plan{Processes: 8}, processes(spread(5, 1.05, 0.01)...), Undecided,
			"5 of 8 processes count, and a verdict needs 6"},
		{"eleven of sixteen", Plan{Processes: 16}, processes(spread(11, 1.05, 0.01)...), Undecided,
			"11 of 16 processes count, and a verdict needs 12"},
		{"five of five are few", Plan{Processes: 5}, processes(spread(5, 1.05, 0.01)...), Undecided,
			"5 of 5 processes count, and a verdict needs 6"},
		{"layouts may make 1 % of one build", Plan{Processes: 8}, ofOneBuild(processes(spread(8, 1.01, 1e-4)...)), Undecided,
			"the interval includes 1: no time would decide so small a difference"},
		{"or 2.5 %, with the noise floor of two layouts", Plan{Processes: 8},
			ofOneBuild(processes(spread(8, 1.025, 1e-4)...)), Undecided,
			"the interval reaches into the noise floor of 1.3 %: no time would decide so small a difference"},
		{"but not 3 %", Plan{Processes: 8}, ofOneBuild(processes(spread(8, 1.03, 1e-4)...)), Slower, ""},
		{"none", Plan{Processes: 8}, nil, Undecided, "0 of 8 processes count, and a verdict needs 6"},
	} {
		t.Run(c.why, func(t *testing.T) {
			r := Decide(c.plan, c.all)
			require.Equal(t, c.verdict, r.Verdict, "%+v", r)
			require.Equal(t, c.reason, r.Reason)
			require.Equal(t, c.verdict == Undecided, r.Reason != "")
			require.Equal(t, len(c.all), r.Processes)
			require.Equal(t, len(c.all) >= 2, r.Ratio > 0 && r.Hi > r.Ratio, "a comparison has its ratio and its interval")
			for i := range c.all {
				p := &c.all[i]
				if p.Ratio, p.Copy = 1/p.Ratio, 1/p.Copy; p.ToCopy > 0 {
					p.ToCopy = 1 / p.ToCopy
				}
			}
			turned := map[Verdict]Verdict{Faster: Slower, Slower: Faster, Equal: Equal, Undecided: Undecided}
			require.Equal(t, turned[c.verdict], Decide(c.plan, c.all).Verdict,
				"exchanging base and contestant exchanges faster and slower")
		})
	}
}

// Where nobody tells what others used: a process that had one core where one caller needs several is left out, and
// named, unless most had one.
func TestOneCore(t *testing.T) {
	plan := Plan{Processes: 8, AllCores: true, OneCaller: true}
	measured := func() []Process { // as on 2026-11-23, one caller: six with both cores, two with one
		all := processes(1.29, 1.38, 1.41, 1.35, 1.53, 1.40, 0.94, 0.95)
		for i := range all {
			all[i].CPUNs[0], all[i].CPUNs[1] = 1.10*all[i].Ns[0], 1.10*all[i].Ns[0]
			if i >= 6 {
				all[i].CPUNs[i-6] = 0.99 * all[i].Ns[0] // of the base, or of its copy
			}
		}
		return all
	}
	r := Decide(plan, measured())
	require.Equal(t, 2, r.OneCore)
	require.Equal(t, 6, r.Processes)
	require.Equal(t, Slower, r.Verdict)
	require.Greater(t, r.Lo, 1.2)
	require.Equal(t, "slower; all 6 processes that count; 2 left out that had one core", r.Said())

	r = Decide(Plan{Processes: 8}, measured())
	require.Zero(t, r.OneCore, "the question needs one core")
	require.Equal(t, Undecided, r.Verdict)
	r = Decide(Plan{Processes: 8, AllCores: true}, measured())
	require.Zero(t, r.OneCore, "of many callers, CPU time over wall time does not tell")
	require.Equal(t, 8, r.Processes)

	few := measured()
	few[0].CPUNs[0] = few[0].Ns[0]
	r = Decide(plan, few)
	require.Equal(t, "5 processes count, and a verdict needs 6; 3 had one core only", r.Reason)
	require.Positive(t, r.Lo)
	few[1].CPUNs[0] = few[1].Ns[0]
	require.Equal(t, 4, Decide(plan, few).OneCore, "half had a second core")
	few[2].CPUNs[0] = 1.04 * few[2].Ns[0]
	r = Decide(plan, few)
	require.Zero(t, r.OneCore)
	require.Equal(t, 8, r.Processes, "one that had two cores discards nobody")
	require.Regexp(t, "^undecided: .*; 5 of 8 had no second core to themselves$", r.Said())

	none := measured()
	for i := range none {
		none[i].CPUNs[0] = 0.5 * none[i].Ns[0]
	}
	require.Equal(t, 8, Decide(plan, none).NoSecond)
	for i := range none {
		none[i].CPUNs = [3]float64{}
	}
	r = Decide(plan, none)
	require.Zero(t, r.OneCore+r.NoSecond)
	require.Equal(t, []string{"whether each process had several cores: CPU time is not recorded",
		"what other programs used: their share is not recorded"}, r.Unchecked)
	require.Empty(t, Decide(Plan{}, none).Unchecked, "on one core neither matters")
}

// A process is left out if other programs left it too few cores. Where too many would be, all count, and there is no
// verdict.
func TestDisturbed(t *testing.T) {
	shares := func(taken float64, n int) []Process { // of which n are disturbed, whose ratio is another
		all := processes(spread(14, 1.374, 0.01)...)
		for i := range all {
			if all[i].Others = 0.01; i < n {
				all[i].Others, all[i].Ratio = taken, 0.946
			}
		}
		return all
	}
	two, four := Plan{Processes: 8, AllCores: true, CPUs: 2}, Plan{Processes: 8, AllCores: true, Apart: true, CPUs: 4}
	for _, c := range []struct {
		why         string
		plan        Plan
		all         []Process
		count, left int
		busy        bool
		said        string
	}{
		{"none is disturbed", two, shares(0, 0), 14, 0, false, "slower"},
		{"two CPUs less 0.18 are enough", two, shares(0.09, 2), 14, 0, false, "slower"},
		{"less 0.22 are not", two, shares(0.11, 2), 12, 2, false,
			"slower; all 12 processes that count; 2 left out, as other programs left them too few cores"},
		{"as many as count", two, shares(0.5, 7), 7, 7, false,
			"slower; all 7 processes that count; 7 left out, as other programs left them too few cores"},
		{"more than count, though six would be enough", two, shares(0.5, 8), 14, 8, true,
			"undecided: disturbed: in 8 of 14 processes other programs left less than 1.8 cores, so the ratio was " +
				"measured on a " +
				"busy machine"},
		{"a little of each", two, shares(0.07, 14), 14, 0, true,
			"undecided: disturbed: other programs left 1.86 cores on average, so the ratio was measured on a busy machine"},
		{"of four CPUs an eighth is nothing", four, shares(0.125, 2), 14, 0, false, "slower"},
		{"a third leaves too few for client and server", four, shares(0.33, 2), 12, 2, false,
			"slower; all 12 processes that count; 2 left out, as other programs left them too few cores"},
		{"but enough for one process", Plan{Processes: 8, AllCores: true, CPUs: 4}, shares(0.33, 2), 14, 0, false, "slower"},
		{"one core is left to a question of one", Plan{Processes: 8, CPUs: 2}, shares(0.5, 2), 14, 0, false, "slower"},
		{"a machine with one CPU", Plan{Processes: 8, AllCores: true, Apart: true, CPUs: 1}, shares(0, 0), 14, 0, false,
			"slower"},
	} {
		t.Run(c.why, func(t *testing.T) {
			r := Decide(c.plan, c.all)
			require.Equal(t, []int{c.count, c.left}, []int{r.Processes, r.Disturbed})
			require.Equal(t, c.busy, r.Busy)
			require.Equal(t, c.said, r.Said())
			require.Positive(t, r.Ratio, "a disturbed row shows its ratio")
		})
	}
}

// With two arms the copy is what is compared, to the base alone: half of a difference would not be seen.
func TestCopyThatIsSlower(t *testing.T) {
	record := timing.Record{Arms: []string{"a", "a again"}, Blocks: [][]timing.Slice{{{Ops: 1, Wall: 1000, CPU: 1000},
		{Ops: 1, Wall: 1040, CPU: 1040}}}, Latencies: []timing.Latency{{Calls: 5000, P50: 1000}, {Calls: 5000, P50: 1040}}}
	p, err := ProcessOf(record)
	require.NoError(t, err)
	r := Decide(Plan{AllCores: true}, slices.Repeat([]Process{p}, 8))
	require.InDelta(t, 1.04, r.Ratio, 1e-9)
	require.InDelta(t, 1.04, r.CPU.Ratio, 1e-9)
	require.InDelta(t, 1.04, r.P50.Ratio, 1e-9)

	record.Arms = append(record.Arms, "b") // which takes 4 % longer than the base, and as long as its copy
	record.Blocks[0] = append(record.Blocks[0], record.Blocks[0][1])
	record.Latencies = append(record.Latencies, record.Latencies[1])
	p, err = ProcessOf(record)
	require.NoError(t, err)
	r = Decide(Plan{AllCores: true}, slices.Repeat([]Process{p}, 8))
	for _, ratio := range []float64{r.Ratio, r.CPU.Ratio, r.P50.Ratio} {
		require.InDelta(t, math.Sqrt(1.04), ratio, 1e-9, "both fixtures of the base count")
	}
}

func TestOthers(t *testing.T) {
	for share, want := range map[float64]string{
		0:    "slower",
		0.10: "slower",
		0.20: "slower; other programs used 20 % of the machine, and the size is another on an idle one",
	} {
		all := processes(spread(8, 1.17, 0.01)...)
		for i := range all {
			all[i].Others, all[i].CPUNs[0] = share*(0.5+float64(i)/7), 1500 // share is their mean
		}
		r := Decide(Plan{AllCores: true}, all)
		require.Equal(t, want, r.Said())
		require.InDelta(t, share, r.Others, 1e-12)
		require.Equal(t, "slower", Decide(Plan{}, all).Said(), "one core is left to the question")
	}
	require.Equal(t, "equal within 5 %", Decide(Plan{Margin: 0.05}, processes(spread(8, 1, 0.03)...)).Said())
	require.Equal(t, "not measured", Decide(Plan{Processes: 8}, nil).Said())
}

// Percentiles are compared process by process, as times are. One process without is enough for none.
func TestPercentiles(t *testing.T) {
	measured := func() []Process {
		all := processes(spread(8, 1.05, 0.01)...)
		for i, ratio := range spread(8, 1.5, 0.02) {
			us := time.Duration(float64(time.Millisecond) * math.Exp(float64(i))) // the machine moves, the ratio does not
			all[i].Latencies = [3]timing.Latency{{Calls: 5000, P50: us, P95: 2 * us, P99: 4 * us, P999: 10 * us},
				{P50: 3 * us, P95: 5 * us, P99: 7 * us, P999: 9 * us},
				{P50: time.Duration(ratio * float64(us)), P95: 2 * us, P99: 2 * us, P999: 8 * us}}
		}
		return all
	}
	r := Decide(Plan{}, measured())
	require.InDelta(t, 1.5, r.P50.Ratio, 1e-6)
	require.InDelta(t, 2.364624*0.02/math.Sqrt(8), math.Log(r.P50.Hi/r.P50.Ratio), 1e-5)
	require.InEpsilon(t, 1e6*math.Exp(3.5), r.P50.Base, 1e-6)
	require.InEpsilon(t, 3*r.P50.Base, r.P50.Copy, 1e-6, "is its own")
	require.InDelta(t, 1, r.P95.Ratio, 1e-6)
	require.InDelta(t, 0.5, r.P99.Ratio, 1e-6)
	require.InEpsilon(t, 2*r.P50.Base, r.P99.Ns, 1e-6)
	require.InDelta(t, 0.8, r.P999.Ratio, 1e-6)

	for arm := range 3 {
		few := ofOneBuild(measured())
		few[3].Latencies[arm].P99 = 0
		r = Decide(Plan{}, few)
		require.Zero(t, r.P99)
		require.NotZero(t, r.P95)
		_, err := json.Marshal(r)
		require.NoError(t, err, "no figure is infinite")
	}
	require.Zero(t, Decide(Plan{}, processes(1, 1, 1, 1)).Percentiles)
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
	require.Equal(t, Process{Layout: 4, Others: 0.25, Ns: [3]float64{200, 400, 600}, CPUNs: [3]float64{100, 200, 400},
		Ratios: Ratios{Copy: 2, Ratio: 3, ToCopy: 1.5}, CPU: Ratios{Copy: 2, Ratio: 4, ToCopy: 2},
		Latencies: [3]timing.Latency(record.Latencies), InFlight: [3]float64{1, 0.5, 2}}, p)

	two := record
	two.Arms = two.Arms[:2]
	two.Blocks = [][]timing.Slice{block(1000)[:2]}
	two.Latencies = nil
	p, err = ProcessOf(two)
	require.NoError(t, err)
	require.Equal(t, [3]float64{2, 2, 0}, [3]float64{p.Copy, p.Ratio, p.ToCopy}, "the copy is what is compared")
	require.Equal(t, 200.0, p.Ns[2])

	for why, broken := range map[string]timing.Record{"nothing": {}, "one arm": {Arms: []string{"a"}},
		"no block": {Arms: []string{"a", "b"}}, "a copy without operations": {Arms: []string{"a", "a again", "b"},
			Blocks: [][]timing.Slice{{{Ops: 1, Wall: 1}, {Wall: 1}, {Ops: 1, Wall: 1}}}}} {
		_, err := ProcessOf(broken)
		require.Error(t, err, why)
	}
}

func TestMoved(t *testing.T) {
	for _, c := range []struct {
		why  string
		ns   []float64
		want float64
	}{
		{"no process", nil, 0},
		{"one", []float64{30}, 0},
		{"eight, of which none is left out", []float64{30, 31, 30, 32, 30, 33, 30, 30}, 0.1},
		{"sixteen, without the extremes", []float64{20, 30, 30, 30, 30, 30, 30, 36, 30, 30, 30, 30, 30, 30, 30, 90}, 0.2},
	} {
		before := slices.Clone(c.ns)
		require.InDelta(t, c.want, moved(c.ns), 1e-9, c.why)
		require.Equal(t, before, c.ns, "in order of time, as before")
	}
}

// CPU time has a result of its own, which may say otherwise: of the processes that count, with its own copy and floor.
func TestCPUHasAResultOfItsOwn(t *testing.T) {
	all := processes(spread(8, 0.8, 0.01)...)
	for i, ratio := range spread(8, 1.4, 0.01) {
		p := &all[i]
		p.CPU, p.CPUNs = Ratios{Copy: 1.01, Ratio: ratio}, [3]float64{3000, 3030, 3000 * ratio}
	}
	plan := Plan{AllCores: true, OneCaller: true}
	r := Decide(plan, all)
	require.Equal(t, Faster, r.Verdict)
	require.InDelta(t, 0.8, r.Ratio, 0.01)
	require.InDelta(t, 1.4, r.CPU.Ratio, 0.01)
	require.Equal(t, Slower, r.CPU.Verdict)
	require.InDelta(t, 0.01, r.CPU.CopyFloor, 0.001)
	require.Less(t, r.CopyFloor, 0.001)
	require.Equal(t, []float64{3000, 8}, []float64{r.CPU.BaseNs, float64(r.CPU.Processes)})

	all[0].CPUNs[1] = 1010 // one core, which is left out of both
	require.Equal(t, []int{7, 7}, []int{Decide(plan, all).Processes, Decide(plan, all).CPU.Processes})
	require.Nil(t, Decide(Plan{}, all).CPU, "on one core time is CPU time")
	all[1].CPU = Ratios{}
	require.Nil(t, Decide(plan, all).CPU, "a process does not tell")
}

// A link is one sample of a source. The interval holds the source's ratio, if it is made of several links or of one.
func TestIntervalOfTheSource(t *testing.T) {
	const runs, links, each = 500, 8, 2
	for _, c := range []struct {
		why             string
		between, within float64
	}{
		{"links differ as measured on 2026-11-22", 0.0045, 0.0028},
		{"links differ as the rule takes it", 0.0065, 0.0028},
		{"links are alike", 0, 0.0028},
	} {
		random := rand.New(rand.NewPCG(2, 0))
		var held, heldByOne int
		for range runs {
			var spread, ofOne []Process
			own := c.between * random.NormFloat64()
			for layout := range links {
				other := c.between * random.NormFloat64()
				for range each {
					spread = append(spread, Process{Layout: layout + 1, Ns: [3]float64{1, 1, 1},
						Ratios: Ratios{Copy: 1, Ratio: math.Exp(other + c.within*random.NormFloat64())}})
					ratio := math.Exp(own + c.within*random.NormFloat64())
					ofOne = append(ofOne, Process{Layout: 1, Ns: [3]float64{1, 1, 1},
						Ratios: Ratios{Copy: 1, Ratio: ratio, ToCopy: ratio}})
				}
			}
			if r := Decide(Plan{}, spread); r.Lo <= 1 && 1 <= r.Hi {
				held++
			}
			if r := Decide(Plan{}, ofOne); r.Lo <= 1 && 1 <= r.Hi {
				heldByOne++
			}
		}
		t.Logf("%s: held by layouts %d, by one build %d of %d", c.why, held, heldByOne, runs)
		require.GreaterOrEqual(t, float64(held)/runs, 0.93, c.why)
		require.GreaterOrEqual(t, float64(heldByOne)/runs, 0.93, "%s, one build", c.why)
	}
}

// The verdict of a percentile is made as that of a mean is: of enough processes, where the machine was there and the
// calls were made, and beyond what the base's copy makes of it.
func TestWaits(t *testing.T) {
	p := Percentile{Base: 1000, Copy: 1010, Ns: 1200, Ratio: 1.2, Lo: 1.1, Hi: 1.3}
	for reason, c := range map[string]struct {
		change  func(r *Result, p *Percentile)
		verdict Verdict
		because string
	}{
		"longer":               {func(*Result, *Percentile) {}, Slower, ""},
		"shorter":              {func(_ *Result, p *Percentile) { p.Ratio, p.Lo, p.Hi = 0.8, 0.7, 0.9 }, Faster, ""},
		"the same":             {func(_ *Result, p *Percentile) { p.Ratio, p.Lo, p.Hi = 1, 0.99, 1.01 }, Equal, ""},
		"1 is in the interval": {func(_ *Result, p *Percentile) { p.Lo = 0.9 }, Undecided, "the interval includes 1"},
		"the copy differs as much": {func(_ *Result, p *Percentile) { p.Copy = 1150 }, Undecided,
			"the interval reaches into the noise floor of 15 %"},
		"the copy is as much shorter": {func(_ *Result, p *Percentile) { p.Copy = 870 }, Undecided,
			"the interval reaches into the noise floor of 15 %"},
		"the base varied": {func(r *Result, _ *Percentile) { r.Moved = 3 }, Undecided,
			"the interval reaches into the noise floor of 15 %"},
		"few processes":  {func(r *Result, _ *Percentile) { r.Processes, r.Reason = 5, "few" }, Undecided, "few"},
		"a busy machine": {func(r *Result, _ *Percentile) { r.Busy, r.Reason = true, "busy" }, Undecided, "busy"},
		"calls that were not made": {func(r *Result, _ *Percentile) {
			r.BaseLoad.Reached, r.Load.Reached, r.Reason = 1, 0.9, "not kept"
		}, Undecided, "not kept"},
	} {
		r, own := Result{Processes: 8, Planned: 8}, p
		c.change(&r, &own)
		got := r.Waits(own)
		require.Equal(t, c.verdict, got.Verdict, reason)
		require.Equal(t, c.because, got.Reason, reason)
		require.Equal(t, []float64{own.Base, own.Ratio, own.Lo, own.Hi}, []float64{got.BaseNs, got.Ratio, got.Lo, got.Hi})
	}
	require.Equal(t, Result{}, Result{Processes: 8}.Waits(Percentile{}), "no calls were timed")
}
