package verdict

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// An interval is a word by where it lies to 1, the noise floor and the margin, and nowhere else is it made one.
func TestVerdictOfInterval(t *testing.T) {
	for why, c := range map[string]struct {
		of     Interval
		margin float64
		want   Verdict
	}{
		"beyond the floor, above":                   {Interval{1.06, 1.08, 0.05}, 0.02, More},
		"beyond the floor, below":                   {Interval{0.91, 0.95, 0.05}, 0.02, Less},
		"into the floor, above":                     {Interval{1.04, 1.08, 0.05}, 0.02, Undecided},
		"into the floor, below":                     {Interval{0.91, 0.96, 0.05}, 0.02, Undecided},
		"at the end of the floor":                   {Interval{1.05, 1.08, 0.05}, 0.02, Undecided},
		"less than the margin, and beyond no floor": {Interval{1.003, 1.006, 0}, 0.02, More},
		"less than the margin, within the floor":    {Interval{1.003, 1.006, 0.01}, 0.02, Same},
		"within the margin, and a floor beyond it":  {Interval{0.995, 1.005, 0.03}, 0.02, Undecided},
		"the margin itself":                         {Interval{1 / 1.02, 1.02, 0.02}, 0.02, Same},
		"wider than the margin":                     {Interval{0.97, 1.01, 0}, 0.02, Undecided},
		"a wider margin":                            {Interval{0.97, 1.01, 0.04}, 0.05, Same},
		"an interval that is no number":             {Interval{math.NaN(), math.NaN(), 0.01}, 0.02, Undecided},
		"a floor that is no number":                 {Interval{1.1, 1.2, math.NaN()}, 0.02, Undecided},
		"a floor beyond all":                        {Interval{1.1, 1.2, math.Inf(1)}, 0.02, Undecided},
	} {
		require.Equal(t, c.want, c.of.Verdict(c.margin), why)
		turned := map[Verdict]Verdict{Less: More, More: Less}[c.want]
		if turned == "" {
			turned = c.want
		}
		require.Equal(t, turned, Interval{1 / c.of.Hi, 1 / c.of.Lo, c.of.Floor}.Verdict(c.margin), "%s, exchanged", why)
	}
	for want, of := range map[Place]Interval{Below: {1.2, 1.3, 0}, Inside: {2, 3, 0.5}, Above: {3.1, 4, 0},
		Across: {2.5, 3.5, 0}} {
		require.Equal(t, want, of.At(2, 3), "%v", of)
	}
	require.Equal(t, Across, Interval{1.2, 1.3, 0.25}.At(1.1, 1.4), "in the floor it may be 1")
}

// Rounds of the base are copies of it: what they differ by is no difference of the stack.
func TestOfRounds(t *testing.T) {
	steady := []float64{1000, 1001, 999, 1000, 1000, 1001}
	restless := []float64{1000, 1100, 1000, 1120, 1000, 1080}
	times := func(base []float64, ratios ...float64) (stack []float64) {
		for i, ns := range base {
			stack = append(stack, ns*ratios[i%len(ratios)])
		}
		return stack
	}
	for why, c := range map[string]struct {
		base, stack []float64
		want        Verdict
		reason      Kind
	}{
		"a tenth less":                {steady, times(steady, 0.9, 0.91, 0.89), Less, ""},
		"a tenth more":                {steady, times(steady, 1.1, 1.11, 1.09), More, ""},
		"as much":                     {steady, times(steady, 1, 1.001), Same, ""},
		"within the noise floor":      {restless, times(restless, 1.1, 1.11, 1.09), Undecided, WithinFloor},
		"twice as much, all the same": {restless, times(restless, 2, 2.01), More, ""},
		"two states":                  {steady, times(steady, 1, 1.5, 1, 1), Undecided, IncludesOne},
		"five rounds":                 {steady[:5], times(steady[:5], 2), Undecided, TooFew},
	} {
		f := OfRounds(c.base, c.stack)
		require.Equal(t, c.want, f.Verdict, why)
		require.Equal(t, c.reason, f.Reason.Kind, why)
		require.Equal(t, Margin, f.Margin)
		require.True(t, f.Lo <= f.Ratio && f.Ratio <= f.Hi, why)
		require.False(t, math.IsInf(f.NoiseFloor, 0), "%s: JSON has no infinity", why)
	}
	// Three copies, of ratios 1.1, 1.12 and 1.08: with 2 degrees of freedom R's qt(0.975, 2) is 4.302653.
	logs := []float64{math.Log(1.1), math.Log(1.12), math.Log(1.08)}
	mean := (logs[0] + logs[1] + logs[2]) / 3
	sd := math.Sqrt((math.Pow(logs[0]-mean, 2) + math.Pow(logs[1]-mean, 2) + math.Pow(logs[2]-mean, 2)) / 2)
	require.InDelta(t, math.Exp(mean+4.302653*sd/math.Sqrt(3))-1, OfRounds(restless, restless).NoiseFloor, 1e-6)
}

// A step from one workload to another has the base's processes in pairs, and the stack's is the wider one.
func TestStep(t *testing.T) {
	from := Figure{BasesNs: []float64{1000, 1500, 1000, 1200, 1000, 1100}, Ratio: 1.2, Lo: 1.18, Hi: 1.22,
		NoiseFloor: 0.01}
	times := func(f Figure, ratios ...float64) Figure {
		ns := f.BasesNs
		f.BasesNs = nil
		for i := range ns {
			f.BasesNs = append(f.BasesNs, ns[i]*ratios[i%len(ratios)])
		}
		return f
	}
	less := times(from, 0.8, 0.81)
	less.Ratio, less.Lo, less.Hi, less.NoiseFloor = 0.9, 0.88, 0.92, 0.02
	few, noisy, unknown := less, less, less
	few.BasesNs, noisy.NoiseFloor = less.BasesNs[:5], 0.5
	unknown.Ratio, unknown.Lo, unknown.Hi = 0, 0, 0
	for why, c := range map[string]struct {
		to          Figure
		base, stack Verdict
		ratios      [2]float64
	}{
		"the base and the stack take less": {less, Less, Less, [2]float64{0.805, 0.604}},
		"the same again":                   {from, Same, Undecided, [2]float64{1, 1}},
		"five processes":                   {few, Undecided, Undecided, [2]float64{0.804, 0.603}},
		"within the noise floor":           {noisy, Undecided, Less, [2]float64{0.805, 0.604}},
		"the stack was not measured":       {unknown, Less, Undecided, [2]float64{0.805, 0}},
		"nothing was measured":             {Figure{}, Undecided, Undecided, [2]float64{0, 0}},
	} {
		base, stack := step(from, c.to)
		require.Equal(t, [2]Verdict{c.base, c.stack}, [2]Verdict{base.Verdict, stack.Verdict}, why)
		require.InDelta(t, c.ratios[0], base.Ratio, 0.001, why)
		require.InDelta(t, c.ratios[1], stack.Ratio, 0.001, why)
		if stack.Ratio > 0 {
			require.Greater(t, stack.Hi/stack.Lo, base.Hi/base.Lo, why)
		}
	}
	base, stack := step(from, less)
	half := math.Hypot(math.Log(base.Hi/base.Lo), math.Hypot(math.Log(1.22/1.18), math.Log(0.92/0.88)))
	require.InDelta(t, half, math.Log(stack.Hi/stack.Lo), 1e-9, "independent figures")
}

// A step of two answers decides nothing where one of them could not.
func TestStepOfAnswers(t *testing.T) {
	ns := []float64{1000, 1010, 1000, 1005, 1000, 1010}
	half := []float64{500, 505, 500, 502, 500, 505}
	answer := func(ns []float64) Answer {
		return Answer{Processes: Counts{Counted: 8}, CPU: Figure{Verdict: Less, Reason: Reason{Kind: "its own"}, BasesNs: ns,
			Ratio: 0.9, Lo: 0.89, Hi: 0.91}}
	}
	cpu := func(a Answer) Figure { return a.CPU }
	for why, c := range map[string]struct {
		change func(a *Answer)
		want   Verdict
		reason Kind
	}{
		"both may decide":                 {func(*Answer) {}, Less, ""},
		"another program had the machine": {func(a *Answer) { a.Busy = true }, Undecided, "its own"},
		"too few of the planned calls": {func(a *Answer) {
			a.StackLoad.Completed, a.BaseLoad.Completed = 0.5, 1
		}, Undecided, "its own"},
		"five processes":                      {func(a *Answer) { a.Processes.Counted = 5 }, Undecided, "its own"},
		"one of the answers lacks the figure": {func(a *Answer) { a.CPU = Figure{} }, "", ""},
	} {
		for i := range 2 {
			answers := []Answer{answer(ns), answer(half)}
			c.change(&answers[i])
			base, stack := Step(answers[0], answers[1], cpu)
			require.Equal(t, []Verdict{c.want, c.want}, []Verdict{base.Verdict, stack.Verdict}, why)
			require.Equal(t, []Kind{c.reason, c.reason}, []Kind{base.Reason.Kind, stack.Reason.Kind}, why)
		}
	}
}

// Two stacks that were each compared with one base have the quotient of their ratios, decided by the rule of all
// figures.
func TestQuotient(t *testing.T) {
	of := func(ratio, half, floor float64) Figure {
		return Figure{Verdict: More, Ratio: ratio, Lo: ratio / (1 + half), Hi: ratio * (1 + half), NoiseFloor: floor,
			Margin: 0.02}
	}
	for why, c := range map[string]struct {
		stack, other Figure
		ratio        float64
		want         Verdict
	}{
		"less":                       {of(1.2, 0.02, 0.01), of(2.4, 0.02, 0.01), 0.5, Less},
		"more":                       {of(2.4, 0.02, 0.01), of(1.2, 0.02, 0.01), 2, More},
		"the same":                   {of(1.2, 0.005, 0.005), of(1.2, 0.005, 0.005), 1, Same},
		"both intervals are wide":    {of(1.3, 0.1, 0.01), of(1.2, 0.1, 0.01), 1.083, Undecided},
		"within one's noise floor":   {of(1.3, 0.01, 0.01), of(1.2, 0.01, 0.5), 1.083, Undecided},
		"one of them has no ratio":   {of(1.3, 0.01, 0.01), Figure{}, 0, Undecided},
		"the other one has no ratio": {Figure{}, of(1.3, 0.01, 0.01), 0, Undecided},
	} {
		f := Quotient(c.stack, c.other)
		require.Equal(t, c.want, f.Verdict, why)
		require.InDelta(t, c.ratio, f.Ratio, 0.001, why)
	}
	f := Quotient(of(1.2, 0.03, 0), of(1.2, 0.04, 0))
	require.InDelta(t, math.Hypot(math.Log(1.03), math.Log(1.04)), math.Log(f.Hi), 1e-9, "independent figures")
}
