package verdict

import (
	"math"
	"slices"
	"sync"

	"github.com/aclements/go-moremath/stats"
)

// means are those of an answer over the processes that count.
func (a *Answer) means(all []Process) {
	n := float64(len(all))
	for _, p := range all {
		a.Others += p.Others / n
		a.BaseMeans.add(p, 0, n)
		a.StackMeans.add(p, 2, n)
		a.BaseLoad.add(p.Loads[0], n)
		a.StackLoad.add(p.Loads[2], n)
	}
}

// add adds an n-th of an arm's figures.
func (m *Means) add(p Process, arm int, n float64) {
	m.CPUNs, m.ServerCPUNs = m.CPUNs+p.CPUNs[arm]/n, m.ServerCPUNs+p.ServerNs[arm]/n
	m.InFlight += p.InFlight[arm] / n
}

// add adds an n-th of another.
func (l *Load) add(o Load, n float64) {
	l.Idle, l.Switches, l.Completed = l.Idle+o.Idle/n, l.Switches+o.Switches/n, l.Completed+o.Completed/n
	l.Skipped, l.LateNs = l.Skipped+o.Skipped/n, l.LateNs+o.LateNs/n
}

// percentiles are those of single calls, if several processes have measured.
func (q quantity) percentiles(kept []Process) (all Percentiles) {
	if len(kept) < 2 {
		return all
	}
	least := q.least(kept)
	for _, one := range []struct {
		to *Percentile
		of func(Latency) float64
	}{
		{&all.P50, func(l Latency) float64 { return l.P50 }},
		{&all.P95, func(l Latency) float64 { return l.P95 }},
		{&all.P99, func(l Latency) float64 { return l.P99 }},
		{&all.P999, func(l Latency) float64 { return l.P999 }},
	} {
		mean := func(arm int) float64 {
			mean, _ := interval(kept, func(p Process) float64 { return one.of(p.Latencies[arm]) })
			return math.Exp(mean)
		}
		ratio, half := interval(kept, func(p Process) float64 {
			own, base, again := one.of(p.Latencies[2]), one.of(p.Latencies[0]), one.of(p.Latencies[1])
			if q.ratios(p).ToCopy == 0 { // the copy is what is compared
				return own / base
			}
			return Ratios{Ratio: own / base, ToCopy: own / again}.Estimate()
		})
		half = math.Hypot(half, least)
		p := Percentile{mean(0), mean(1), mean(2), math.Exp(ratio), math.Exp(ratio - half), math.Exp(ratio + half)}
		if p.BaseNs > 0 && p.CopyNs > 0 && p.StackNs > 0 {
			*one.to = p // else some process had too few calls beyond it
		}
	}
	return all
}

// interval returns the mean of the logarithms of a value over processes, and half the width of its confidence
// interval: Student's.
//
// A link of the source is one sample of where functions lie, and its processes share it. So each layout counts once, by
// its mean, and the interval holds for the source. Where the interval of the processes is wider, that is taken. The
// processes of one build say nothing of other layouts.
func interval(all []Process, value func(Process) float64) (mean, half float64) {
	var logs, means []float64
	byLayout := map[int][]float64{}
	for _, p := range all {
		x := math.Log(value(p))
		logs, byLayout[p.Layout] = append(logs, x), append(byLayout[p.Layout], x)
	}
	if len(byLayout) < 2 {
		return Student(logs)
	}
	for _, own := range byLayout {
		means = append(means, stats.Mean(own))
	}
	slices.Sort(means) // a map has no order, and sums depend on it
	_, ofProcesses := Student(logs)
	mean, half = Student(means)
	return mean, max(half, ofProcesses)
}

// Student returns the mean of independent values, and half the width of its t interval: infinite for one value.
func Student(values []float64) (mean, half float64) {
	mean = stats.Mean(values)
	width := math.Inf(1)
	if n := len(values); n > 1 {
		width = quantile(n-1) * stats.StdDev(values) / math.Sqrt(float64(n))
	}
	return mean, ((mean + width) - (mean - width)) / 2 // rounded as stats.MeanCI has it, for the tables of the tests
}

var quantiles sync.Map // of Student's t at level, by degrees of freedom

// quantile looks Student's t up, since to find it takes longer than everything else in a verdict.
func quantile(freedom int) float64 {
	t, ok := quantiles.Load(freedom)
	if !ok {
		t = -stats.InvCDF(stats.TDist{V: float64(freedom)})((1 - level) / 2)
		quantiles.Store(freedom, t)
	}
	return t.(float64)
}

// varied is how far the base varied between processes: the longest over the shortest, minus 1, without a tenth of the
// processes at either end.
func varied(ns []float64) float64 {
	sorted := slices.Sorted(slices.Values(ns))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return sorted[n-1-n/10]/sorted[n/10] - 1
}
