package verdict

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// processes have these ratios, one layout for each, and copies that are equal to the base.
func processes(ratios ...float64) (all []Process) {
	for i, r := range ratios {
		all = append(all, Process{Layout: i + 1, Ns: [3]float64{1000, 1000, 1000 * r},
			CPUNs: [3]float64{1000, 1000, 1000 * r}, Time: Ratios{Copy: 1, Ratio: r}})
	}
	return all
}

// ofOneBuild are processes of one link, whose contestant is as far from the copy as from the base.
func ofOneBuild(all []Process) []Process {
	for i := range all {
		all[i].Layout, all[i].Time.ToCopy = 1, all[i].Time.Ratio
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
			r := Decide(Plan{}, c.all).Time
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
	moving := func(all []Process, by float64) []Process { // every other process takes longer, by the whole machine
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
			all[i].Time.Copy = r
		}
		return all
	}
	ratios := func(few float64, n int, most float64, m int) []float64 {
		return append(slices.Repeat([]float64{few}, n), slices.Repeat([]float64{most}, m)...)
	}
	includes := func(times int, ratio float64) Reason {
		return Reason{Kind: IncludesOne, Decides: MoreTime, Times: times, Ratio: ratio}
	}
	restless := func(floor, varied float64) Reason {
		return Reason{Kind: WithinFloor, Found: floor, Decides: QuieterMachine, Varied: varied}
	}
	few := func(n, of, needed int) Reason {
		return Reason{Kind: TooFew, Processes: n, Of: of, Needed: float64(needed)}
	}
	for _, c := range []struct {
		why     string
		plan    Plan
		all     []Process
		verdict Verdict
		reason  Reason
	}{
		{"more", Plan{Processes: 8}, processes(spread(8, 1.05, 0.01)...), More, Reason{}},
		{"less", Plan{Processes: 8}, processes(spread(8, 0.95, 0.01)...), Less, Reason{}},
		{"less than the margin, and more all the same", Plan{Processes: 8},
			processes(spread(8, 1.01, 0.001)...), More, Reason{}},
		{"same", Plan{Processes: 8}, processes(spread(8, 1.001, 0.01)...), Same, Reason{}},
		{"the same by a margin of its own", Plan{Processes: 8, Margin: 0.05},
			processes(spread(8, 1, 0.03)...), Same, Reason{}},
		{"a noise floor within that margin", Plan{Processes: 8, Margin: 0.05}, copies(processes(spread(8, 1.001, 0.01)...),
			0.03), Same, Reason{}},
		{"not the same by a margin of its own", Plan{Processes: 8, Margin: 0.005}, processes(spread(8, 1.001, 0.01)...),
			Undecided, includes(5, 1.001)},
		{"too wide to be the same", Plan{Processes: 8}, processes(spread(8, 1, 0.03)...), Undecided,
			includes(2, 1)},
		{"includes 1", Plan{Processes: 8}, processes(spread(8, 1.03, 0.06)...), Undecided,
			includes(3, 1.03)},
		{"a machine that moved by 37 % decides 5 %", Plan{Processes: 8}, moving(processes(spread(8, 1.05, 0.01)...), 0.37),
			More, Reason{}},
		{"but not 3 %, of which a tenth of the movement may be the whole", Plan{Processes: 8},
			moving(processes(spread(8, 1.03, 0.001)...), 0.37), Undecided,
			restless(0.032, 0.37)},
		{"nor 3 % where the copy's floor is the larger today, and the movement's would be left", Plan{Processes: 8},
			copies(moving(processes(spread(8, 0.967, 0.001)...), 0.41), 0.06), Undecided,
			restless(0.051, 0.41)},
		{"a machine that moved beyond a factor of two", Plan{Processes: 8},
			moving(processes(spread(8, 1.03, 0.001)...), 5), Undecided, restless(0.196, 5)},
		{"a hundred times as long would be too short, on any machine", Plan{Processes: 8},
			processes(spread(8, 1.003, 0.5)...), Undecided,
			Reason{Kind: IncludesOne, Decides: Nothing}},
		{"a copy that differs", Plan{Processes: 8}, copies(processes(spread(8, 1.05, 0.01)...), 0.06), Undecided,
			Reason{Kind: WithinFloor, Found: 0.051, Decides: MoreTime, Times: 2, Ratio: 1.05}},
		{"the copy's floor counts where it is the larger", Plan{Processes: 8},
			copies(moving(processes(spread(8, 1.05, 0.01)...), 0.2), 0.06), Undecided,
			Reason{Kind: WithinFloor, Found: 0.051, Decides: MoreTime, Times: 2, Ratio: 1.05}},
		{"one of eight on the other side", Plan{Processes: 8},
			processes(append(spread(7, 1.40, 0.05), 0.98)...), More, Reason{}},
		{"two of eight", Plan{Processes: 8}, processes(1.29, 1.38, 1.41, 1.35, 1.53, 1.40, 0.94, 0.95), Undecided,
			Reason{Kind: TwoStates, Processes: 6, Of: 8, Found: 0.185}},
		{"three of twelve", Plan{Processes: 12}, processes(ratios(0.94, 3, 1.4, 9)...), Undecided,
			Reason{Kind: TwoStates, Processes: 9, Of: 12, Found: 0.18}},
		{"two of sixteen", Plan{Processes: 16}, processes(ratios(0.94, 2, 1.4, 14)...), More, Reason{}},
		{"four of sixteen", Plan{Processes: 16}, processes(ratios(0.94, 4, 1.4, 12)...), Undecided,
			Reason{Kind: TwoStates, Processes: 12, Of: 16, Found: 0.178}},
		{"six of eight have measured", Plan{Processes: 8}, processes(spread(6, 1.05, 0.01)...), More, Reason{}},
		{"five of eight", Plan{Processes: 8}, processes(spread(5, 1.05, 0.01)...), Undecided,
			few(5, 8, 6)},
		{"eleven of sixteen", Plan{Processes: 16}, processes(spread(11, 1.05, 0.01)...), Undecided,
			few(11, 16, 12)},
		{"five of five are few", Plan{Processes: 5}, processes(spread(5, 1.05, 0.01)...), Undecided,
			few(5, 5, 6)},
		{"layouts may make 1 % of one build", Plan{Processes: 8}, ofOneBuild(processes(spread(8, 1.01, 1e-4)...)), Undecided,
			Reason{Kind: IncludesOne, Decides: Nothing}},
		{"or 2.5 %, with the noise floor of two layouts", Plan{Processes: 8},
			ofOneBuild(processes(spread(8, 1.025, 1e-4)...)), Undecided,
			Reason{Kind: WithinFloor, Found: 0.013, Decides: Nothing}},
		{"but not 3 %", Plan{Processes: 8}, ofOneBuild(processes(spread(8, 1.03, 1e-4)...)), More, Reason{}},
		{"none", Plan{Processes: 8}, nil, Undecided, few(0, 8, 6)},
	} {
		t.Run(c.why, func(t *testing.T) {
			a := Decide(c.plan, c.all)
			r := a.Time
			require.Equal(t, c.verdict, r.Verdict, "%+v", r)
			require.Equal(t, c.reason, rounded(r.Reason))
			require.Equal(t, c.verdict == Undecided, r.Reason != (Reason{}))
			require.Equal(t, len(c.all), a.Processes.Counted)
			require.Equal(t, len(c.all) >= 2, r.Ratio > 0 && r.Hi > r.Ratio, "a comparison has its ratio and its interval")
			for i := range c.all {
				p := &c.all[i]
				if p.Time.Ratio, p.Time.Copy = 1/p.Time.Ratio, 1/p.Time.Copy; p.Time.ToCopy > 0 {
					p.Time.ToCopy = 1 / p.Time.ToCopy
				}
			}
			turned := map[Verdict]Verdict{Less: More, More: Less, Same: Same, Undecided: Undecided}
			require.Equal(t, turned[c.verdict], Decide(c.plan, c.all).Time.Verdict,
				"exchanging base and contestant exchanges less and more")
		})
	}
}

// rounded has the numbers of a reason to three digits.
func rounded(r Reason) Reason {
	for _, n := range []*float64{&r.Found, &r.Needed, &r.Ratio, &r.Varied} {
		*n = math.Round(1000**n) / 1000
	}
	return r
}

// Where nobody tells what others used: a process that had one core where one caller needs several is left out, and
// named, unless most had one.
func TestOneCore(t *testing.T) {
	plan := Plan{Processes: 8, NeedsCores: true, OneCaller: true}
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
	a := Decide(plan, measured())
	require.Equal(t, Counts{Planned: 8, Measured: 8, Counted: 6, OneCore: 2}, a.Processes)
	require.Equal(t, More, a.Time.Verdict)
	require.Greater(t, a.Time.Lo, 1.2)

	a = Decide(Plan{Processes: 8}, measured())
	require.Zero(t, a.Processes.OneCore, "the question needs one core")
	require.Equal(t, Undecided, a.Time.Verdict)
	a = Decide(Plan{Processes: 8, NeedsCores: true}, measured())
	require.Zero(t, a.Processes.OneCore, "of many callers, CPU time over wall time does not tell")
	require.Equal(t, 8, a.Processes.Counted)

	few := measured()
	few[0].CPUNs[0] = few[0].Ns[0]
	a = Decide(plan, few)
	require.Equal(t, Reason{Kind: TooFew, Processes: 5, Of: 8, OneCore: 3, Needed: 6}, a.Time.Reason)
	require.Positive(t, a.Time.Lo)
	few[1].CPUNs[0] = few[1].Ns[0]
	require.Equal(t, 4, Decide(plan, few).Processes.OneCore, "half had a second core")
	few[2].CPUNs[0] = 1.04 * few[2].Ns[0]
	a = Decide(plan, few)
	require.Equal(t, Counts{Planned: 8, Measured: 8, Counted: 8, NoSecond: 5}, a.Processes,
		"one that had two cores discards nobody")
	require.Equal(t, Undecided, a.Time.Verdict)

	none := measured()
	for i := range none {
		none[i].CPUNs[0] = 0.5 * none[i].Ns[0]
	}
	require.Equal(t, 8, Decide(plan, none).Processes.NoSecond)
	for i := range none {
		none[i].CPUNs = [3]float64{}
	}
	a = Decide(plan, none)
	require.Equal(t, Counts{Planned: 8, Measured: 8, Counted: 8}, a.Processes)
	require.Equal(t, []Unchecked{UncheckedCores, UncheckedOthers}, a.Unchecked)
	require.Empty(t, Decide(Plan{}, none).Unchecked, "on one core neither matters")
}

// A process is left out if other programs left it too few cores. Where too many would be, all count, and there is no
// verdict.
func TestDisturbed(t *testing.T) {
	shares := func(taken float64, n int) []Process { // of which n are disturbed, whose ratio is another
		all := processes(spread(14, 1.374, 0.01)...)
		for i := range all {
			if all[i].Others = 0.01; i < n {
				all[i].Others, all[i].Time.Ratio = taken, 0.946
			}
		}
		return all
	}
	two, four := Plan{Processes: 8, NeedsCores: true, CPUs: 2}, Plan{Processes: 8, NeedsCores: true, Apart: true, CPUs: 4}
	few := Reason{Kind: Disturbed, Processes: 8, Of: 14, Needed: 1.8}
	for _, c := range []struct {
		why         string
		plan        Plan
		all         []Process
		count, left int
		reason      Reason
	}{
		{"none is disturbed", two, shares(0, 0), 14, 0, Reason{}},
		{"two CPUs less 0.18 are enough", two, shares(0.09, 2), 14, 0, Reason{}},
		{"less 0.22 are not", two, shares(0.11, 2), 12, 2, Reason{}},
		{"as many as count", two, shares(0.5, 7), 7, 7, Reason{}},
		{"more than count, though six would be enough", two, shares(0.5, 8), 14, 8, few},
		{"a little of each", two, shares(0.07, 14), 14, 0, Reason{Kind: Crowded, Found: 1.86, Needed: 1.92}},
		{"of four CPUs an eighth is nothing", four, shares(0.125, 2), 14, 0, Reason{}},
		{"a third leaves too few for client and server", four, shares(0.33, 2), 12, 2, Reason{}},
		{"but enough for one process", Plan{Processes: 8, NeedsCores: true, CPUs: 4}, shares(0.33, 2), 14, 0, Reason{}},
		{"one core is left to a question of one", Plan{Processes: 8, CPUs: 2}, shares(0.5, 2), 14, 0, Reason{}},
		{"a machine with one CPU", Plan{Processes: 8, NeedsCores: true, Apart: true, CPUs: 1}, shares(0, 0), 14, 0, Reason{}},
	} {
		t.Run(c.why, func(t *testing.T) {
			a := Decide(c.plan, c.all)
			require.Equal(t, []int{c.count, c.left}, []int{a.Processes.Counted, a.Processes.Disturbed})
			require.Equal(t, c.reason != Reason{}, a.Busy)
			require.Equal(t, c.reason, rounded(a.Time.Reason))
			require.Equal(t, a.Busy, a.Time.Verdict == Undecided)
			require.Positive(t, a.Time.Ratio, "a disturbed row shows its ratio")
		})
	}
}

// The first condition that fails is the reason, whatever else does.
func TestFirstThatFails(t *testing.T) {
	plan := Plan{Processes: 8, NeedsCores: true, CPUs: 2}
	all := processes(spread(5, 1.4, 0.01)...)
	reason := func() Reason { return Decide(plan, all).Leading(false).Reason }
	require.Equal(t, TooFew, reason().Kind)
	for i := range all {
		all[i].Others = 0.07
	}
	require.Equal(t, Crowded, reason().Kind)
	all[0].Others, all[1].Others = 0.5, 0.5
	require.Equal(t, Disturbed, reason().Kind)
	for i := range all {
		all[i].Loads = [3]Load{{Completed: 0.9}, {Completed: 0.9}, {Completed: 1}}
	}
	require.Equal(t, Reason{Kind: NotCompleted, Found: 0.9, Needed: 0.98, Decides: LowerRate}, rounded(reason()))
	require.True(t, Decide(plan, all).Busy)
}

func TestOthers(t *testing.T) {
	all := processes(spread(8, 1.17, 0.01)...)
	for i := range all {
		all[i].Others, all[i].CPUNs[0] = 0.2*(0.5+float64(i)/7), 1500 // 0.2 is their mean
	}
	require.InDelta(t, 0.2, Decide(Plan{NeedsCores: true}, all).Others, 1e-12)
	require.Zero(t, Decide(Plan{}, all).Others, "one core is left to the question")
}

// Percentiles are compared process by process, as times are. One process without is enough for none.
func TestPercentiles(t *testing.T) {
	measured := func() []Process {
		all := processes(spread(8, 1.05, 0.01)...)
		for i, ratio := range spread(8, 1.5, 0.02) {
			us := 1e6 * math.Exp(float64(i)) // the machine moves, the ratio does not
			all[i].Latencies = [3]Latency{{P50: us, P95: 2 * us, P99: 4 * us, P999: 10 * us},
				{P50: 3 * us, P95: 5 * us, P99: 7 * us, P999: 9 * us},
				{P50: ratio * us, P95: 2 * us, P99: 2 * us, P999: 8 * us}}
		}
		return all
	}
	r := Decide(Plan{}, measured()).Percentiles
	require.InDelta(t, 1.5, r.P50.Ratio, 1e-6)
	require.InDelta(t, 2.364624*0.02/math.Sqrt(8), math.Log(r.P50.Hi/r.P50.Ratio), 1e-5)
	require.InEpsilon(t, 1e6*math.Exp(3.5), r.P50.BaseNs, 1e-6)
	require.InEpsilon(t, 3*r.P50.BaseNs, r.P50.CopyNs, 1e-6, "is its own")
	require.InDelta(t, 1, r.P95.Ratio, 1e-6)
	require.InDelta(t, 0.5, r.P99.Ratio, 1e-6)
	require.InEpsilon(t, 2*r.P50.BaseNs, r.P99.StackNs, 1e-6)
	require.InDelta(t, 0.8, r.P999.Ratio, 1e-6)

	one := Decide(Plan{}, ofOneBuild(measured())).Percentiles
	for i, p := range []Percentile{one.P50, one.P99} {
		half := math.Hypot([]float64{2.364624 * 0.02 / math.Sqrt(8), 0}[i], 1.959964*0.0065)
		require.InDelta(t, half, math.Log(p.Hi/p.Ratio), 1e-5, "what layouts make of it is in the interval")
	}
	for arm := range 3 {
		few := ofOneBuild(measured())
		few[3].Latencies[arm].P99 = 0
		a := Decide(Plan{}, few)
		r = a.Percentiles
		require.Zero(t, r.P99)
		require.NotZero(t, r.P95)
		_, err := json.Marshal(a)
		require.NoError(t, err, "no figure is infinite")
	}
	require.Zero(t, Decide(Plan{}, processes(1, 1, 1, 1)).Percentiles)
}

func TestVaried(t *testing.T) {
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
		require.InDelta(t, c.want, varied(c.ns), 1e-9, c.why)
		require.Equal(t, before, c.ns, "in order of time, as before")
	}
}

// CPU time has a figure of its own, which may say otherwise: of the processes that count, with its own copy and floor.
func TestCPUHasAFigureOfItsOwn(t *testing.T) {
	all := processes(spread(8, 0.8, 0.01)...)
	for i, ratio := range spread(8, 1.4, 0.01) {
		p := &all[i]
		p.CPU, p.CPUNs = Ratios{Copy: 1.01, Ratio: ratio}, [3]float64{3000, 3030, 3000 * ratio}
	}
	plan := Plan{NeedsCores: true, OneCaller: true}
	a := Decide(plan, all)
	require.Equal(t, []Verdict{Less, More}, []Verdict{a.Time.Verdict, a.CPU.Verdict})
	require.InDelta(t, 0.8, a.Time.Ratio, 0.01)
	require.InDelta(t, 1.4, a.CPU.Ratio, 0.01)
	require.InDelta(t, 0.01, a.CPU.CopyDiffers, 0.001)
	require.Less(t, a.Time.CopyDiffers, 0.001)
	require.Equal(t, []float64{1000, 3000}, []float64{a.Time.BaseNs, a.CPU.BaseNs})
	require.Equal(t, a.CPU, a.Leading(true), "where it is asked for")
	require.Equal(t, a.Time, a.Leading(false))

	all[0].CPUNs[1] = 1010 // one core, which is left out of both
	a = Decide(plan, all)
	require.Equal(t, []int{7, 7, 7}, []int{a.Processes.Counted, len(a.Time.BasesNs), len(a.CPU.BasesNs)})
	require.False(t, Decide(Plan{}, all).CPU.There(), "on one core time is CPU time")
	all[1].CPU = Ratios{}
	require.False(t, Decide(plan, all).CPU.There(), "a process does not tell")
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
						Time: Ratios{Copy: 1, Ratio: math.Exp(other + c.within*random.NormFloat64())}})
					ratio := math.Exp(own + c.within*random.NormFloat64())
					ofOne = append(ofOne, Process{Layout: 1, Ns: [3]float64{1, 1, 1},
						Time: Ratios{Copy: 1, Ratio: ratio, ToCopy: ratio}})
				}
			}
			if r := Decide(Plan{}, spread).Time; r.Lo <= 1 && 1 <= r.Hi {
				held++
			}
			if r := Decide(Plan{}, ofOne).Time; r.Lo <= 1 && 1 <= r.Hi {
				heldByOne++
			}
		}
		t.Logf("%s: held by layouts %d, by one build %d of %d", c.why, held, heldByOne, runs)
		require.GreaterOrEqual(t, float64(held)/runs, 0.93, c.why)
		require.GreaterOrEqual(t, float64(heldByOne)/runs, 0.93, "%s, one build", c.why)
	}
}

// At a planned rate the only figure is of CPU time, since the plan's time is the same for both. There is no verdict of
// a rate that was not reached.
func TestAtARate(t *testing.T) {
	all := processes(spread(8, 1, 0.001)...)
	for i, ratio := range spread(8, 1.4, 0.01) {
		p := &all[i]
		p.CPU, p.CPUNs = Ratios{Copy: 1.01, Ratio: ratio}, [3]float64{3000, 3030, 3000 * ratio}
		for arm := range p.Loads {
			p.Loads[arm] = Load{Idle: 0.5, Switches: 4, Completed: 0.99, Skipped: 0.01, LateNs: 100}
		}
		p.Loads[2].Switches = 8
	}
	a := Decide(Plan{NeedsCores: true, AtRate: true}, all)
	require.False(t, a.Time.There())
	require.InDelta(t, 1.4, a.CPU.Ratio, 0.01)
	require.Equal(t, []any{More, 3000.0}, []any{a.CPU.Verdict, a.CPU.BaseNs})
	require.Equal(t, a.CPU, a.Leading(false), "whatever is asked for")
	require.InDelta(t, 0.99, a.StackLoad.Completed, 1e-9)
	require.Equal(t, []float64{4, 8}, []float64{math.Round(a.BaseLoad.Switches), math.Round(a.StackLoad.Switches)})

	for i := range all {
		all[i].Loads[2].Completed = 0.9
	}
	a = Decide(Plan{NeedsCores: true, AtRate: true}, all)
	require.Equal(t, Undecided, a.CPU.Verdict)
	require.Equal(t, Reason{Kind: NotCompleted, Found: 0.9, Needed: 0.98, Decides: LowerRate}, rounded(a.CPU.Reason))
	require.InDelta(t, 1.4, a.CPU.Ratio, 0.01, "is shown")
}

// The verdict of a percentile is made as that of a figure is: of enough processes, where the machine was there and the
// calls were made, and beyond what the base's copy makes of it.
func TestWaits(t *testing.T) {
	none, floor := Reason{}, Reason{Kind: WithinFloor, Found: 0.15}
	for reason, c := range map[string]struct {
		change  func(a *Answer, p *Percentile)
		verdict Verdict
		because Reason
	}{
		"longer":                      {func(*Answer, *Percentile) {}, More, none},
		"shorter":                     {func(_ *Answer, p *Percentile) { p.Ratio, p.Lo, p.Hi = 0.8, 0.7, 0.9 }, Less, none},
		"the same":                    {func(_ *Answer, p *Percentile) { p.Ratio, p.Lo, p.Hi = 1, 0.99, 1.01 }, Same, none},
		"1 is in the interval":        {func(_ *Answer, p *Percentile) { p.Lo = 0.9 }, Undecided, Reason{Kind: IncludesOne}},
		"the copy differs as much":    {func(_ *Answer, p *Percentile) { p.CopyNs = 1150 }, Undecided, floor},
		"the copy is as much shorter": {func(_ *Answer, p *Percentile) { p.CopyNs = 1000 / 1.15 }, Undecided, floor},
		"the base varied": {func(a *Answer, _ *Percentile) { a.Time.BaseVaried = 3 }, Undecided,
			Reason{Kind: WithinFloor, Found: 0.149}},
		"few processes":  {func(a *Answer, _ *Percentile) { a.Processes.Counted = 5 }, Undecided, Reason{Kind: "why"}},
		"a busy machine": {func(a *Answer, _ *Percentile) { a.Busy = true }, Undecided, Reason{Kind: "why"}},
		"calls that were not made": {func(a *Answer, _ *Percentile) {
			a.BaseLoad.Completed, a.StackLoad.Completed = 1, 0.9
		}, Undecided, Reason{Kind: "why"}},
		"at a rate": {func(a *Answer, _ *Percentile) {
			a.Busy, a.Time, a.CPU = true, Figure{}, Figure{Verdict: Undecided, Reason: Reason{Kind: "of CPU"}}
		}, Undecided, Reason{Kind: "of CPU"}},
	} {
		a := Answer{Processes: Counts{Planned: 8, Counted: 8}, Time: Figure{Verdict: Undecided, Reason: Reason{Kind: "why"}}}
		p := Percentile{BaseNs: 1000, CopyNs: 1010, StackNs: 1200, Ratio: 1.2, Lo: 1.1, Hi: 1.3}
		c.change(&a, &p)
		got := a.Waits(p)
		require.Equal(t, c.verdict, got.Verdict, reason)
		require.Equal(t, c.because, rounded(got.Reason), reason)
		require.Equal(t, []float64{p.BaseNs, p.Ratio, p.Lo, p.Hi}, []float64{got.BaseNs, got.Ratio, got.Lo, got.Hi})
	}
	require.Equal(t, Figure{}, Answer{Processes: Counts{Counted: 8}}.Waits(Percentile{}), "no calls were timed")
}

// A process whose calls under way can't be those of its callers doesn't count, however few are left, and another takes
// its place.
func TestLittlesLaw(t *testing.T) {
	asks, planned := Plan{Processes: 8, Callers: 20}, Plan{Processes: 8, Callers: 20, AtRate: true}
	for why, test := range map[string]struct {
		plan   Plan
		change func(*Process)
		obeys  bool
	}{
		"as many as callers":                   {asks, func(p *Process) { p.InFlight = [3]float64{20, 19.1, 20.9} }, true},
		"too few of the base":                  {asks, func(p *Process) { p.InFlight[0] = 18.9 }, false},
		"too many of the copy":                 {asks, func(p *Process) { p.InFlight[1] = 21.1 }, false},
		"too few of the stack":                 {asks, func(p *Process) { p.InFlight[2] = 10 }, false},
		"a stall beside other programs":        {asks, func(p *Process) { p.InFlight[2], p.Others = 21.9, 0.03 }, true},
		"half of a window beside others":       {asks, func(p *Process) { p.InFlight[2], p.Others = 10, 0.9 }, false},
		"callers who don't tell":               {asks, func(p *Process) { p.InFlight = [3]float64{} }, true},
		"a plan that doesn't ask":              {Plan{Processes: 8}, func(p *Process) { p.InFlight[2] = 1 }, true},
		"at a rate, fewer than callers":        {planned, func(p *Process) { p.at(1, 3) }, true},
		"at a rate, all callers at a moment":   {planned, func(p *Process) { p.at(1, 20) }, true},
		"at a rate, one more than the callers": {planned, func(p *Process) { p.at(1, 21) }, false},
		"at a rate, calls counted twice":       {planned, func(p *Process) { p.at(2, 20) }, false},
		"at a rate, what an edge leaves":       {planned, func(p *Process) { p.at(1.04, 20) }, true},
	} {
		p := Process{InFlight: [3]float64{20, 20, 20}, Time: Ratios{Copy: 1, Ratio: 1.4, ToCopy: 1.4},
			Ns: [3]float64{100, 100, 140}}
		test.change(&p)
		require.Equal(t, test.obeys, test.plan.Obeys(p), why)
	}
	var all []Process
	for i, ratio := range spread(8, 1.4, 0.01) {
		p := Process{Ns: [3]float64{100, 100, 140}, Time: Ratios{Copy: 1, Ratio: ratio, ToCopy: ratio},
			InFlight: [3]float64{20, 20, 20}}
		if i%4 == 0 { // a window that hardly any call ended in
			p.Ns[2], p.Time.Ratio, p.Time.ToCopy, p.InFlight[2] = 1e6, 1e4, 1e4, 0.1
		}
		all = append(all, p)
	}
	a := Decide(asks, all)
	require.Equal(t, Counts{Planned: 8, Measured: 8, Counted: 6, Miscounted: 2}, a.Processes)
	require.Equal(t, More, a.Time.Verdict)
	require.InDelta(t, 140, a.Time.StackNs, 1e-9, "no mean has what doesn't count")
	require.True(t, a.Wanting(asks, a.Time), "others are measured in their place")
	all[1].InFlight[0] = 1
	a = Decide(asks, all)
	require.Equal(t, Counts{Planned: 8, Measured: 8, Counted: 5, Miscounted: 3}, a.Processes)
	require.Equal(t, Reason{Kind: TooFew, Processes: 5, Of: 8, Needed: 6, Miscounted: 3}, a.Time.Reason)
	for i := range all {
		all[i].InFlight[0] = 1
	}
	require.Equal(t, Counts{Planned: 8, Measured: 8, Miscounted: 8}, Decide(asks, all).Processes)
}

// at is what a process at a rate tells of each arm.
func (p *Process) at(completed float64, most int64) {
	for arm := range p.Loads {
		p.Loads[arm].Completed, p.Most[arm] = completed, most
	}
}

// Over a network with a router CPU decides nothing, and at a rate the 99th percentile does.
func TestRouted(t *testing.T) {
	all := func(base, again, own float64) (all []Process) {
		for i, r := range spread(6, 1, 0.02) {
			p := Process{Ns: [3]float64{2e6, 2e6, 2e6}, CPUNs: [3]float64{1000, 1000, 3000}, ServerNs: [3]float64{9, 9, 9},
				Time: Ratios{1, 1, 1}, CPU: Ratios{1, 3, 3}, Others: 0.01,
				Loads: [3]Load{{Completed: 1}, {Completed: 1}, {Completed: 1}}}
			for arm, ns := range []float64{base, again, own * r} {
				p.Latencies[arm] = Latency{P50: 1e6, P95: 2e6, P99: ns * (1 + float64(i)/1000)}
			}
			all = append(all, p)
		}
		return all
	}
	behind := func(all []Process, ns float64) []Process {
		for i := range all {
			all[i].LateNs = ns
		}
		return all
	}
	beside := func(all []Process) []Process {
		for i := range all {
			all[i].Others = 0.3
		}
		return all
	}
	rate := Plan{Processes: 6, NeedsCores: true, Apart: true, AtRate: true, Routed: true, Callers: 100, CPUs: 2}
	saturated := rate
	saturated.AtRate, saturated.Callers = false, 0
	eight := saturated
	eight.Callers = 8
	for _, c := range []struct {
		why     string
		plan    Plan
		all     []Process
		verdict Verdict
		ratio   float64
	}{
		{"a tail that is a fifth", rate, all(250e6, 250e6, 50e6), Less, 0.2},
		{"one that is twice as long", rate, all(25e6, 25e6, 50e6), More, 2},
		{"to the base and its copy alike", rate, all(40e6, 90e6, 15e6), Less, 0.25},
		{"a copy that differs as much leaves it open", rate, all(250e6, 60e6, 60e6), Undecided, 0.49},
		{"a router that was as late as the difference", rate, behind(all(40e6, 40e6, 50e6), 10e6), Undecided, 1.25},
		{"one that was less late", rate, behind(all(40e6, 40e6, 50e6), 1e6), More, 1.25},
		{"a machine that others use: the router tells what that does", rate, beside(all(250e6, 250e6, 50e6)), Less, 0.2},
		{"without one there is no verdict", rate, all(0, 0, 0), "", 0},
		{"of callers who call again at once time decides", saturated, all(250e6, 250e6, 50e6), Same, 1},
		{"and what a router is late has its part in latencies, not in calls a second", eight,
			behind(all(250e6, 250e6, 50e6), 0.2e6), Same, 1},
	} {
		t.Run(c.why, func(t *testing.T) {
			a := Decide(c.plan, c.all)
			require.Equal(t, c.verdict, a.Time.Verdict, "%+v", a.Time.Reason)
			require.InDelta(t, c.ratio, a.Time.Ratio, 0.01)
			require.Zero(t, a.CPU)
			require.Zero(t, a.BaseMeans.CPUNs+a.StackMeans.CPUNs+a.BaseMeans.ServerCPUNs)
			require.Equal(t, a.Time, a.Leading(true))
		})
	}
}
