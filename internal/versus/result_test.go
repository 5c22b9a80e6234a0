package versus

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/timing"
)

// processes have these ratios, one layout for each, and copies that are equal to the base.
func processes(ratios ...float64) (all []Process) {
	for i, r := range ratios {
		all = append(all, Process{Layout: i + 1, Ns: [3]float64{1000, 1000, 1000 * r},
			CPUNs: [3]float64{1000, 1000, 1000 * r}, Ratios: Ratios{Copy: 1, Ratio: r}})
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
// qt(0.99, 7) is 2.997952; with 15 they are 2.131450 and 2.602480; with 3, 3.182446 and 4.540703.
func TestInterval(t *testing.T) {
	alike := func(all []Process) []Process { // of one build
		for i := range all {
			all[i].Layout = 1
		}
		return all
	}
	inPairs := func(all []Process) []Process { // two processes of each layout
		for i := range all {
			all[i].Layout = i / 2
		}
		return all
	}
	for _, c := range []struct {
		why         string
		all         []Process
		contestants int
		half, level float64
	}{
		{"eight layouts, at 95 %", processes(spread(8, 1.05, 0.02)...), 0, 2.364624 * 0.02 / math.Sqrt(8), 0.95},
		{"eight processes of one build, at 98 % and called 95 %", alike(processes(spread(8, 1.05, 0.02)...)), 0,
			2.997952 * 0.02 / math.Sqrt(8), 0.95},
		{"sixteen processes of one build", alike(processes(spread(16, 1.05, 0.02)...)), 0, 2.602480 * 0.02 / 4, 0.95},
		{"four processes of one build", alike(processes(spread(4, 1.05, 0.02)...)), 1, 4.540703 * 0.02 / 2, 0.95},
		{"two of each layout that differ: the interval of the layouts is the wider",
			inPairs(processes(1.00, 1.00, 1.04, 1.04, 1.08, 1.08, 1.12, 1.12)), 0,
			3.182446 / 2 * deviation(1.00, 1.04, 1.08, 1.12), 0.95},
		{"two of each layout that differ from each other: that of the processes",
			inPairs(processes(1, 1.1, 1, 1.1, 1, 1.1, 1, 1.1)), 0,
			2.364624 / math.Sqrt(8) * deviation(1, 1.1, 1, 1.1, 1, 1.1, 1, 1.1), 0.95},
	} {
		t.Run(c.why, func(t *testing.T) {
			r := Decide(Plan{Contestants: c.contestants}, c.all)
			require.InDelta(t, c.half, math.Log(r.Hi/r.Ratio), 2e-6)
			require.InDelta(t, c.half, math.Log(r.Ratio/r.Lo), 2e-6)
			require.InDelta(t, c.level, r.Level, 1e-12)
		})
	}
	t.Run("three contestants hold together", func(t *testing.T) {
		one, three := Decide(Plan{}, alike(processes(spread(8, 1.05, 0.02)...))),
			Decide(Plan{Contestants: 3}, alike(processes(spread(8, 1.05, 0.02)...)))
		require.InDelta(t, 1-0.05/3, three.Level, 1e-12)
		require.InDelta(t, 3.805521/2.997952, math.Log(three.Hi/three.Lo)/math.Log(one.Hi/one.Lo), 1e-3, "qt(1-0.01/3, 7)")
	})
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
			Undecided, "the interval includes 1: about 5 times -time would decide 1.00"},
		{"too wide to be equal", Plan{Processes: 8}, processes(spread(8, 1, 0.03)...), Undecided,
			"the interval includes 1: about 2 times -time would decide 1.00"},
		{"includes 1", Plan{Processes: 8, Longer: "-benchtime"}, processes(spread(8, 1.03, 0.06)...), Undecided,
			"the interval includes 1: about 3 times -benchtime would decide 1.03"},
		{"a machine that moved by 37 % decides 5 %", Plan{Processes: 8}, moving(processes(spread(8, 1.05, 0.01)...), 0.37),
			Slower, ""},
		{"but not 3 %, of which a tenth of the movement may be the whole", Plan{Processes: 8},
			moving(processes(spread(8, 1.03, 0.001)...), 0.37), Undecided,
			"the interval reaches into the noise floor of 3.2 %, and the base moved by 37 %: a steadier machine would tell"},
		{"nor 3 % where the copy's floor is the larger today, and the movement's would be left", Plan{Processes: 8},
			copies(moving(processes(spread(8, 0.967, 0.001)...), 0.41), 0.06), Undecided,
			"the interval reaches into the noise floor of 5.1 %, and the base moved by 41 %: a steadier machine would tell"},
		{"a hundred times as long would be too short, on any machine", Plan{Processes: 8},
			processes(spread(8, 1.003, 0.5)...), Undecided,
			"the interval includes 1: no time would decide so small a difference"},
		{"a copy that differs", Plan{Processes: 8}, copies(processes(spread(8, 1.05, 0.01)...), 0.06), Undecided,
			"the interval reaches into the noise floor of 5.1 %: about 2 times -time would decide 1.05"},
		{"the copy's floor counts where it is the larger", Plan{Processes: 8},
			copies(moving(processes(spread(8, 1.05, 0.01)...), 0.2), 0.06), Undecided,
			"the interval reaches into the noise floor of 5.1 %: about 2 times -time would decide 1.05"},
		{"one of eight on the other side", Plan{Processes: 8}, processes(append(spread(7, 1.40, 0.05), 0.98)...), Slower, ""},
		{"two of eight", Plan{Processes: 8}, processes(1.45, 1.4, 1.5, 1.42, 1.38, 1.44, 0.98, 0.98)[:8], Undecided,
			"2 of 8 processes lie on the other side of 1, and 1 may: the machine had two states"},
		{"two of sixteen", Plan{Processes: 16}, processes(ratios(0.98, 2, 1.4, 14)...), Slower, ""},
		{"three of sixteen", Plan{Processes: 16}, processes(ratios(0.98, 3, 1.4, 13)...), Undecided,
			"3 of 16 processes lie on the other side of 1, and 2 may: the machine had two states"},
		{"one of seven", Plan{Processes: 8}, processes(ratios(0.99, 1, 1.4, 6)...), Undecided,
			"1 of 7 processes lie on the other side of 1, and 0 may: the machine had two states"},
		{"one of four, faster", Plan{Processes: 4, Fewest: FewestQuick}, processes(0.70, 0.71, 0.70, 1.01), Undecided,
			"the interval includes 1: about 2 times -time would decide 0.77"},
		{"six of eight have measured", Plan{Processes: 8}, processes(spread(6, 1.05, 0.01)...), Slower, ""},
		{"five of eight", Plan{Processes: 8}, processes(spread(5, 1.05, 0.01)...), Undecided,
			"5 of 8 processes count, and a verdict needs 6"},
		{"eleven of sixteen", Plan{Processes: 16}, processes(spread(11, 1.05, 0.01)...), Undecided,
			"11 of 16 processes count, and a verdict needs 12"},
		{"five of five are few", Plan{Processes: 5}, processes(spread(5, 1.05, 0.01)...), Undecided,
			"5 of 5 processes count, and a verdict needs 6"},
		{"four of a first answer", Plan{Processes: 4, Fewest: FewestQuick}, processes(spread(4, 1.05, 0.01)...), Slower, ""},
		{"three of a first answer", Plan{Processes: 4, Fewest: FewestQuick}, processes(spread(3, 1.05, 0.01)...), Undecided,
			"3 of 4 processes count, and a verdict needs 4"},
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
				c.all[i].Ratio, c.all[i].Copy = 1/c.all[i].Ratio, 1/c.all[i].Copy
			}
			turned := map[Verdict]Verdict{Faster: Slower, Slower: Faster, Equal: Equal, Undecided: Undecided}
			require.Equal(t, turned[c.verdict], Decide(c.plan, c.all).Verdict,
				"exchanging base and contestant exchanges faster and slower")
		})
	}
}

// A process that had one core where one caller needs several is left out, and named, unless most had one.
func TestOneCore(t *testing.T) {
	plan := Plan{Processes: 8, AllCores: true, OneCaller: true}
	measured := func() []Process { // as on 2026-11-23, one caller: six with both cores, two with one
		all := processes(1.29, 1.38, 1.41, 1.35, 1.53, 1.40, 0.94, 0.95)
		for i := range all {
			all[i].CPUNs[0] = 1.10 * all[i].Ns[0]
			if i >= 6 {
				all[i].CPUNs[0] = 0.99 * all[i].Ns[0]
			}
		}
		return all
	}
	r := Decide(plan, measured())
	require.Equal(t, 2, r.OneCore)
	require.Equal(t, 6, r.Processes)
	require.Equal(t, Slower, r.Verdict)
	require.Greater(t, r.Lo, 1.2)
	require.Equal(t, "slower; 6 of 8 processes; 2 left out that had one core", r.Said())

	r = Decide(Plan{Processes: 8}, measured())
	require.Zero(t, r.OneCore, "the question needs one core")
	require.Equal(t, Undecided, r.Verdict)
	r = Decide(Plan{Processes: 8, AllCores: true}, measured())
	require.Zero(t, r.OneCore, "of many callers, CPU time over wall time does not tell")
	require.Equal(t, 8, r.Processes)

	few := measured()
	few[0].CPUNs[0] = few[0].Ns[0]
	r = Decide(plan, few)
	require.Equal(t, "5 of 8 processes count, and a verdict needs 6; 3 had one core only", r.Reason)
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

func TestOthers(t *testing.T) {
	for share, want := range map[float64]string{
		0:    "slower",
		0.10: "slower",
		0.20: "slower; others used 20 %: on an idle machine the size differs",
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
			all[i].Latencies = [3]timing.Latency{{Calls: 5000, P50: us, P95: 2 * us, P99: 4 * us},
				{P50: 3 * us, P95: 5 * us, P99: 7 * us},
				{P50: time.Duration(ratio * float64(us)), P95: 2 * us, P99: 2 * us}}
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

	few := measured()
	few[3].Latencies[2].P99 = 0
	r = Decide(Plan{}, few)
	require.Zero(t, r.P99)
	require.NotZero(t, r.P95)
	_, err := json.Marshal(r)
	require.NoError(t, err, "no figure is infinite")
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

	all[0].CPUNs[0] = 1010 // one core, which is left out of both
	require.Equal(t, []int{7, 7}, []int{Decide(plan, all).Processes, Decide(plan, all).CPU.Processes})
	require.Nil(t, Decide(Plan{}, all).CPU, "on one core time is CPU time")
	all[1].CPU = Ratios{}
	require.Nil(t, Decide(plan, all).CPU, "a process does not tell")
}

// A link is one sample. Where links differ, only the interval over layouts holds the source's ratio.
func TestIntervalOfTheSource(t *testing.T) {
	const runs, links, each = 500, 8, 2
	for _, c := range []struct {
		why             string
		between, within float64
		one, ofAll      float64 // share of intervals that hold the truth: of one build at most, over layouts at least
	}{
		{"links differ as measured on 2026-11-22", 0.0045, 0.0028, 0.90, 0.93},
		{"links are alike", 0, 0.0028, 1, 0.93},
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
					ofOne = append(ofOne, Process{Layout: 1, Ns: [3]float64{1, 1, 1},
						Ratios: Ratios{Copy: 1, Ratio: math.Exp(own + c.within*random.NormFloat64())}})
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
		require.GreaterOrEqual(t, float64(held)/runs, c.ofAll, c.why)
		require.LessOrEqual(t, float64(heldByOne)/runs, c.one, c.why)
	}
}
