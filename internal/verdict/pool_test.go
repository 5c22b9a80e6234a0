package verdict

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/aclements/go-moremath/stats"
	"github.com/stretchr/testify/require"
)

// estimates are those of values with known variances.
func estimates(values, variances []float64) (all []Estimate) {
	for i, v := range values {
		all = append(all, Estimate{Ln: v, SE: math.Sqrt(variances[i])})
	}
	return all
}

// trials are log risk ratios of 13 trials of the BCG vaccine, with their variances: Colditz et al. (1994), the data
// dat.bcg of R's metafor. Each row has the cases and the others of those vaccinated, and of the control group.
func trials() (all []Estimate) {
	for _, n := range [][4]float64{{4, 119, 11, 128}, {6, 300, 29, 274}, {3, 228, 11, 209}, {62, 13536, 248, 12619},
		{33, 5036, 47, 5761}, {180, 1361, 372, 1079}, {8, 2537, 10, 619}, {505, 87886, 499, 87892}, {29, 7470, 45, 7232},
		{17, 1699, 65, 1600}, {186, 50448, 141, 27197}, {5, 2493, 3, 2338}, {27, 16886, 29, 17825}} {
		treated, control := n[0]+n[1], n[2]+n[3]
		all = append(all, Estimate{Ln: math.Log(n[0] / treated * control / n[2]),
			SE: math.Sqrt(1/n[0] - 1/treated + 1/n[2] - 1/control)})
	}
	return all
}

// A mean, its error and the variance between runs are those that others have published of the same numbers.
func TestPoolAsPublished(t *testing.T) {
	// Kacker (2004), "Combining information from interlaboratory evaluations using a random effects model", Metrologia 41,
	// table 1: τ by Paule and Mandel is 0.8399. The rest is what metafor's rma(y, v, method="PM") prints of it, as in the
	// tests of statsmodels (results_meta.py).
	kacker := estimates([]float64{61, 61.4, 62.21, 62.3, 62.34, 62.6, 62.7, 62.84, 65.9},
		[]float64{0.2025, 1.21, 0.09, 0.2025, 0.3844, 0.5625, 0.0676, 0.0225, 1.8225})
	p := Pool(kacker)
	require.InDelta(t, 0.8399, p.Tau, 5e-5)
	require.InDelta(t, 0.705395309224248, p.Tau*p.Tau, 1e-9)
	require.InDelta(t, 62.4076199113286, math.Log(p.Ratio), 1e-9)
	const t8 = 2.306004135204166 // R's qt(0.975, 8)
	require.InDelta(t, 0.338030602684471, math.Log(p.Hi/p.Lo)/2/t8, 1e-8)
	require.InDelta(t, 24.801897741835, weigh(kacker, 0).q, 1e-9)
	require.InDelta(t, 0.00167935146372742, p.PValue, 1e-12)
	require.InDelta(t, 0.837218626490482, p.I2, 1e-9)

	// Cochran's Q and the mean of fixed effects are those of metafor's manual: rma(yi, vi, data=dat, method="FE").
	require.InDelta(t, 152.2330, weigh(trials(), 0).q, 5e-5)
	require.InDelta(t, -0.4303, weigh(trials(), 0).mean, 5e-5)

	// metafor's predict(rma(yi, vi, method="PM", test="knha")) is of a true value: -0.70650 to 1.16564. That of another
	// run has the run's own variance too, of which 0.05 is the mean here.
	four := []float64{0.05, 0.06, 0.04, 0.05}
	p = Pool(estimates([]float64{0.4, -0.2, 0.55, 0.1}, four))
	const t3 = 3.182446305284263 // qt(0.975, 3)
	half := math.Log(p.NextHi/p.NextLo) / 2 / t3
	require.InDelta(t, (1.16564+0.70650)/2, t3*math.Sqrt(half*half-stats.Mean(four)), 1e-5)
	require.InDelta(t, 0.22957, math.Log(p.Ratio), 5e-6)
	require.InDelta(t, 0.05930, p.Tau*p.Tau, 5e-6)
}

// Welch's test is that of R's oneway.test.
func TestRunsDifferAsPublished(t *testing.T) {
	group := func(values ...float64) Estimate {
		n := float64(len(values))
		return Estimate{Ln: stats.Mean(values), SE: stats.StdDev(values) / math.Sqrt(n), Freedom: len(values) - 1}
	}
	for reason, c := range map[string]struct {
		runs []Estimate
		want float64
	}{
		"two groups: extra ~ group, data=sleep": {[]Estimate{group(0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0, 2),
			group(1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)}, 0.07939},
		"six groups: count ~ spray, data=InsectSprays": {[]Estimate{
			group(10, 7, 20, 14, 14, 12, 10, 23, 17, 20, 14, 13), group(11, 17, 21, 11, 16, 14, 17, 17, 19, 21, 7, 13),
			group(0, 1, 7, 2, 3, 1, 2, 1, 3, 0, 1, 4), group(3, 5, 12, 6, 4, 3, 5, 5, 5, 5, 2, 4),
			group(3, 5, 3, 5, 3, 6, 1, 1, 3, 2, 6, 4), group(11, 9, 15, 22, 15, 16, 13, 10, 26, 26, 24, 13)}, 7.999e-12},
	} {
		require.InEpsilon(t, c.want, Pool(c.runs).PValue, 1e-4, reason)
	}
}

// The variance between runs is the one that its definition says, by trying all; the factor of Hartung and Knapp is 1
// with it, and less without.
func TestVarianceBetweenRuns(t *testing.T) {
	for reason, c := range map[string]struct {
		runs []Estimate
		want float64 // found in steps of 1e-5
	}{
		"trials that differ":         {trials(), 0.31806},
		"three runs":                 {estimates([]float64{0, 0.3, 0.9}, []float64{0.01, 0.02, 0.3}), 0},
		"as much as their errors":    {estimates([]float64{0, 0.1, 0.2}, []float64{0.01, 0.01, 0.01}), 0},
		"less than their errors":     {estimates([]float64{0, 0.01, 0.02}, []float64{0.01, 0.01, 0.01}), 0},
		"one that is known far best": {estimates([]float64{0, 0.5, 1}, []float64{1e-8, 0.01, 0.01}), 0},
		"all the same":               {estimates([]float64{0.1, 0.1, 0.1}, []float64{0, 0, 0}), 0},
	} {
		want, k := 0.0, float64(len(c.runs)-1)
		for weigh(c.runs, want).q > k {
			want += 1e-5
		}
		if c.want > 0 {
			require.InDelta(t, c.want, want, 1e-4, reason)
		}
		p := Pool(c.runs)
		require.InDelta(t, want, p.Tau*p.Tau, 1e-5, reason)
		factor := math.Sqrt(weigh(c.runs, p.Tau*p.Tau).q / k)
		if p.Tau > 0 {
			require.InDelta(t, 1, factor, 1e-9, reason)
		}
		require.LessOrEqual(t, factor, 1+1e-9, reason)
		require.True(t, p.NextLo <= p.Lo && p.Lo <= p.Ratio && p.Ratio <= p.Hi && p.Hi <= p.NextHi, reason)
	}
}

// What a mean of runs says, by what they found.
func TestPool(t *testing.T) {
	run := func(ratio, se, floor float64) Estimate {
		return Estimate{Ln: math.Log(ratio), SE: se, Freedom: 7, Floor: floor, Margin: Margin}
	}
	all := func(ratios ...float64) (all []Estimate) {
		for _, ratio := range ratios {
			all = append(all, run(ratio, 0.01, 0.01))
		}
		return all
	}
	for reason, c := range map[string]struct {
		runs   []Estimate
		want   Verdict
		differ bool
	}{
		"none":                     {nil, "", false},
		"one":                      {all(1.5), "", false},
		"two have no mean":         {all(1.5, 1.5), "", false},
		"two that differ":          {all(1.5, 1.6), "", true},
		"three that agree":         {all(1.5, 1.51, 1.49), More, false},
		"three that differ, less":  {all(0.7, 0.75, 0.72), Less, true},
		"three on both sides of 1": {all(0.9, 1, 1.2), Undecided, true},
		"three of nothing":         {[]Estimate{run(1, 0.001, 0.01), run(1, 0.001, 0.01), run(1, 0.001, 0.01)}, Same, false},
		"all in their noise floor": {[]Estimate{run(1.05, 0.001, 0.1), run(1.05, 0.001, 0.1), run(1.05, 0.001, 0.1)},
			Undecided, false},
		"one noisy night of four": {append(all(1.1, 1.1, 1.1), run(1.1, 0.1, 0.5)), More, false},
	} {
		p := Pool(c.runs)
		require.Equal(t, c.want, p.Verdict, reason)
		require.Equal(t, c.differ, p.Differ, reason)
		require.Equal(t, len(c.runs), p.Runs, reason)
		require.Equal(t, c.want != "", p.Ratio > 0, reason)
	}
	unequal := all(1, 1, 1)
	unequal[2].Margin = 0.05
	require.Equal(t, Margin, Pool(unequal).Margin, "the strictest")
}

// A layout is the same error in each run of a program, which no number of runs makes less. All else they do.
func TestPoolOfOneLayout(t *testing.T) {
	var many []Estimate
	for range 20 {
		e, ok := Figure{Ratio: 1.1, Lo: 1.1 * math.Exp(-0.02), Hi: 1.1 * math.Exp(0.02)}.Estimate(8, true)
		require.True(t, ok)
		many = append(many, e)
	}
	const t7, layout = 2.364624251592785, 0.0127398 // qt(0.975, 7), and 1.96 times 0.65%
	require.InDelta(t, math.Sqrt(0.02*0.02-layout*layout)/t7, many[0].SE, 1e-6)
	p := Pool(many)
	require.Greater(t, math.Log(p.Hi/p.Lo)/2, layout)
	require.Less(t, math.Log(p.Hi/p.Lo)/2, 1.1*layout)
	e, ok := Figure{Ratio: 1, Lo: 0.995, Hi: 1.005}.Estimate(8, true)
	require.True(t, ok)
	require.Zero(t, e.SE, "an older figure is of less than a layout adds")
	e, ok = Figure{Ratio: 1.1, Lo: 1.1 * math.Exp(-0.02), Hi: 1.1 * math.Exp(0.02)}.Estimate(8, false)
	require.True(t, ok)
	require.InDelta(t, 0.02/t7, e.SE, 1e-9)
}

// A mean rests on figures that may have had a verdict.
func TestEstimateOfRun(t *testing.T) {
	figure := func(why Kind) Figure {
		return Figure{Ratio: 1.1, Lo: 1, Hi: 1.2, Verdict: Undecided, Reason: Reason{Kind: why}}
	}
	for reason, c := range map[string]struct {
		of        Figure
		processes int
		want      bool
	}{
		"a ratio with its interval":   {figure(""), 8, true},
		"undecided":                   {figure(IncludesOne), 8, true},
		"two states":                  {figure(TwoStates), 8, true},
		"a busy machine":              {figure(Crowded), 8, false},
		"disturbed processes":         {figure(Disturbed), 8, false},
		"calls that were not made":    {figure(NotCompleted), 8, false},
		"too few processes":           {figure(TooFew), 3, false},
		"one process":                 {Figure{Ratio: 1.1, Lo: 1.1, Hi: 1.1}, 1, false},
		"no ratio":                    {Figure{}, 8, false},
		"an interval elsewhere":       {Figure{Ratio: 1.1, Lo: 1.2, Hi: 1.3}, 8, false},
		"no number":                   {Figure{Ratio: math.NaN(), Lo: 1, Hi: 1.2}, 8, false},
		"without an end":              {Figure{Ratio: 1.1, Lo: 1, Hi: math.Inf(1)}, 8, false},
		"more processes than anybody": {Figure{Ratio: 1.1, Lo: 1, Hi: 1.2}, math.MaxInt, true},
		"an interval beyond all":      {Figure{Ratio: 1.1, Lo: 1e-300, Hi: 1e300}, 8, true},
	} {
		e, ok := c.of.Estimate(c.processes, true)
		require.Equal(t, c.want, ok, reason)
		if ok {
			other := e
			other.Ln += 2 * e.SE
			p := Pool(slices.Repeat([]Estimate{e, other}, 10))
			for _, v := range []float64{p.Ratio, p.Lo, p.Hi, p.NextLo, p.NextHi, p.PValue, p.NoiseFloor, p.I2} {
				require.False(t, math.IsNaN(v) || math.IsInf(v, 0), "%s: JSON has no such number", reason)
			}
		}
	}
}

// In made-up runs of eight processes that differ as nights do or not at all, 95% of the intervals of means contain the
// true mean, as many prediction intervals contain what another run finds, and runs that don't differ are called
// different in a twentieth of the cases. Cochran's Q would call them different twice as often.
func TestPoolCovers(t *testing.T) {
	const sets, processes, sd = 2000, 8, 0.02
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		runs int
		tau  float64
	}{{3, 0}, {3, 0.02}, {5, 0}, {5, 0.005}, {5, 0.05}, {20, 0.02}} {
		run := func() Estimate {
			var logs []float64
			own := c.tau * random.NormFloat64()
			for range processes {
				logs = append(logs, own+sd*random.NormFloat64())
			}
			mean, half := Student(logs)
			f := Figure{Ratio: math.Exp(mean), Lo: math.Exp(mean - half), Hi: math.Exp(mean + half)}
			e, ok := f.Estimate(processes, false)
			require.True(t, ok)
			return e
		}
		within, next, differ, byQ := 0.0, 0.0, 0.0, 0.0
		for range sets {
			var all, known []Estimate
			for range c.runs {
				e := run()
				all = append(all, e)
				e.Freedom = 0
				known = append(known, e)
			}
			p, another := Pool(all), math.Exp(run().Ln)
			for n, is := range map[*float64]bool{&within: p.Lo <= 1 && 1 <= p.Hi, &differ: p.Differ,
				&next: p.NextLo <= another && another <= p.NextHi, &byQ: Pool(known).Differ} {
				if is {
					*n += 1. / sets
				}
			}
		}
		t.Logf("%d runs, τ %.3f: %.3f contain the mean, %.3f another run, %.3f differ, by Q %.3f", c.runs, c.tau, within,
			next, differ, byQ)
		require.Greater(t, within, 0.94)
		require.Greater(t, next, 0.94)
		if c.tau == 0 {
			require.InDelta(t, 0.05, differ, 0.015)
			require.Greater(t, byQ, 0.08)
		}
	}
}
