package calibrate

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/perf/benchmath"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rpcbench/rpcbench/internal/replicate"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
)

const (
	level  = 0.95
	single = 12 * time.Second // of slices of two contestants in one process
	minute = 60 * time.Second // the same with replication
)

// The arms of all plans but the one apart: the base, its copy, and what is compared.
const (
	base = iota
	again
	first
)

// records are the complete ones by experiment, in order of their tasks' indices.
type records map[string][]timing.Record

func byExperiment(entries []Entry) records {
	type indexed struct {
		index  int
		record timing.Record
	}
	all := map[string][]indexed{}
	for _, e := range entries {
		name, number, ok := strings.Cut(e.Task, "/")
		index, err := strconv.Atoi(number)
		if ok && err == nil && e.Error == "" && e.Record != nil {
			all[name] = append(all[name], indexed{index, *e.Record})
		}
	}
	found := records{}
	for name, list := range all {
		slices.SortFunc(list, func(a, b indexed) int { return a.index - b.index })
		for _, r := range list {
			found[name] = append(found[name], r.record)
		}
		if len(list) < 2 { // which say nothing of their spread
			delete(found, name)
		}
	}
	return found
}

// within cuts a record off where two of its arms have used up a time.
func within(r timing.Record, arm, base int, limit time.Duration) timing.Record {
	var used time.Duration
	for i, block := range r.Blocks {
		if used += block[arm].Wall + block[base].Wall; used > limit {
			r.Blocks = r.Blocks[:i]
			break
		}
	}
	return r
}

// ratios are one median per record, which is what replication has of a process.
func ratios(list []timing.Record, arm int) []float64 {
	out := make([]float64, len(list))
	for i, r := range list {
		out[i] = interval(r, arm).Median
	}
	return out
}

// interval is a process's own; records are long enough for it, or there is no number in it.
func interval(r timing.Record, arm int) timing.Interval {
	i, err := r.Ratio(arm, base, level)
	if err != nil {
		return timing.Interval{Median: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}
	}
	return i
}

func halfWidth(i timing.Interval) float64 { return 50 * (i.Hi - i.Lo) } // percent

// share is k of n in percent with the limits of its 95 % interval: C. J. Clopper and E. S. Pearson, Biometrika 26 (1934).
func share(k, n int) string {
	lo, hi := 0.0, 1.0
	if k > 0 {
		lo = distuv.Beta{Alpha: float64(k), Beta: float64(n - k + 1)}.Quantile(0.025)
	}
	if k < n {
		hi = distuv.Beta{Alpha: float64(k + 1), Beta: float64(n - k)}.Quantile(0.975)
	}
	return fmt.Sprintf("%d of %d, %.1f %% (%.1f–%.1f)", k, n, 100*float64(k)/float64(n), 100*lo, 100*hi)
}

func quantiles(values []float64) string {
	s := slices.Clone(values)
	slices.Sort(s)
	q := func(p float64) float64 { return stat.Quantile(p, stat.Empirical, s, nil) }
	return fmt.Sprintf("%.2f\t%.2f\t%.2f\t%.2f\t%.2f", s[0], q(0.25), q(0.5), q(0.9), s[len(s)-1])
}

func show(i timing.Interval) string { return fmt.Sprintf("%.4f (%.4f–%.4f)", i.Median, i.Lo, i.Hi) }

// Figures writes what the entries say, as tables for people. What has not been measured yet is left out.
func Figures(w io.Writer, entries []Entry) error {
	r := byExperiment(entries)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, e := range entries {
		if e.Environment != nil {
			fmt.Fprintln(t, "#", strings.Join(e.Environment, " "))
		}
	}
	for _, part := range []func(io.Writer){r.sameness, r.sensitivity, r.usual, r.garbage, r.repeats, r.idle} {
		part(t)
	}
	return t.Flush()
}

// sameness is the base against its own copies: (a).
func (r records) sameness(w io.Writer) {
	fmt.Fprintf(w, "\n(a) a stack against its own copy, one process, the first %v of the two or what there is\n", single)
	fmt.Fprintln(w, "experiment\tprocesses\thalf-width %: least\tquarter\tmedian\t90 %\tgreatest\ttold apart\tthird copy, outside the floor\t")
	all, n := 0, 0
	for _, name := range []string{Same, Sensitivity, Kept, Replication, DefaultProcs} {
		if len(r[name]) == 0 {
			continue
		}
		var widths []float64
		apart, outside := 0, 0
		third := len(r[name][0].Arms) > first && r[name][0].Arms[first] == r[name][0].Arms[base]+versus.Again+versus.Again
		for _, record := range r[name] {
			aa := interval(within(record, again, base, single), again)
			widths = append(widths, halfWidth(aa))
			if different(aa, 0) {
				apart++
			}
			if third && different(interval(within(record, first, base, single), first), aa.Floor()) {
				outside++
			}
		}
		beyond := "–"
		if third {
			beyond = share(outside, len(widths))
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t\n", name, len(widths), quantiles(widths), share(apart, len(widths)), beyond)
		if name != Kept && name != DefaultProcs {
			all, n = all+apart, n+len(widths)
		}
	}
	if n > 0 {
		fmt.Fprintf(w, "told apart at GOMAXPROCS=1, fixtures replaced\t%s\n", share(all, n))
	}
}

func different(i timing.Interval, floor float64) bool {
	v := i.Verdict(floor, 0)
	return v == timing.Faster || v == timing.Slower
}

// sensitivity is work injected into copies: (b).
func (r records) sensitivity(w io.Writer) {
	list := r[Sensitivity]
	if len(list) == 0 {
		return
	}
	const processes = replicate.Fewest
	fmt.Fprintf(w, "\n(b) work injected into a copy of %s (%.0f ns/op): how often it is found\n", grpcStack, stat.Mean(nsPerOps(list, base), nil))
	fmt.Fprintf(w, "injected\tof a call\testimate, %d processes\tfound in %v, one process\toutside the floor\t%v in %d processes, apart groups\tany group\toutside the floor\t\n",
		len(list), single, minute, processes)
	for i, d := range works() {
		arm := first + 1 + i
		found, outside := 0, 0
		var extra []float64
		shortened := make([]timing.Record, len(list))
		for j, record := range list {
			aa := interval(within(record, again, base, single), again)
			it := interval(within(record, arm, base, single), arm)
			if it.Lo > 1 {
				found++
			}
			if it.Verdict(aa.Floor(), 0) == timing.Slower {
				outside++
			}
			extra = append(extra, (it.Median-1)*record.NsPerOp(base))
			shortened[j] = within(record, arm, base, minute/processes)
		}
		mean, sd := stat.MeanStdDev(extra, nil)
		half := 1.96 * sd / math.Sqrt(float64(len(extra)))
		medians, floors := ratios(shortened, arm), ratios(shortened, again)
		groups, groupsFound := 0, 0
		for g := range slices.Chunk(medians, processes) {
			if len(g) == processes {
				groups++
				if replicate.Interval(g, level).Lo > 1 {
					groupsFound++
				}
			}
		}
		const draws = 1000
		any, anyOutside := 0, 0
		random := rand.New(rand.NewPCG(1, 0))
		for range draws {
			var g, f []float64
			for _, j := range random.Perm(len(medians))[:min(processes, len(medians))] {
				g, f = append(g, medians[j]), append(f, floors[j])
			}
			it := replicate.Interval(g, level)
			if it.Lo > 1 {
				any++
			}
			if it.Verdict(replicate.Interval(f, level).Floor(), 0) == timing.Slower {
				anyOutside++
			}
		}
		percent := func(k int) string { return fmt.Sprintf("%.1f %%", 100*float64(k)/draws) }
		fmt.Fprintf(w, "%v\t%.2f %%\t%.0f ± %.0f ns\t%s\t%s\t%d of %d\t%s\t%s\t\n", d,
			100*float64(d)/stat.Mean(nsPerOps(list, base), nil), mean, half,
			share(found, len(list)), share(outside, len(list)), groupsFound, groups, percent(any), percent(anyOutside))
	}
}

func nsPerOps(list []timing.Record, arm int) []float64 {
	out := make([]float64, len(list))
	for i, r := range list {
		out[i] = r.NsPerOp(arm)
	}
	return out
}

// usual reads records as if one arm had run first and the other after it, six runs each, compared as benchstat does: (c).
func (r records) usual(w io.Writer) {
	fmt.Fprintf(w, "\n(c) the same records read the usual way: six runs of the base, then six of the other, U test at 0.05 as benchstat has it\n")
	fmt.Fprintln(w, "compared\tprocesses\tcalled different\tcalled faster\tspread (SD) of the ratio\tspread when paired\t")
	row := func(what, name string, arm int) {
		if len(r[name]) == 0 {
			return
		}
		differ, faster := 0, 0
		var usual, paired []float64
		for _, record := range r[name] {
			record = within(record, arm, base, single)
			half := len(record.Blocks) / 2
			a, b := runs(record.Blocks[half:], arm), runs(record.Blocks[:half], base)
			ratio := benchmath.AssumeNothing.Summary(a, level).Center / benchmath.AssumeNothing.Summary(b, level).Center
			if benchmath.AssumeNothing.Compare(a, b).P < 1-level {
				differ++
				if ratio < 1 {
					faster++
				}
			}
			usual, paired = append(usual, 100*math.Log(ratio)), append(paired, 100*math.Log(interval(record, arm).Median))
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%.2f %%\t%.2f %%\t\n", what, len(usual), share(differ, len(usual)), faster,
			stat.StdDev(usual, nil), stat.StdDev(paired, nil))
	}
	row(jsonStack+" and its copy", Same, again)
	row(grpcStack+" and its copy", Sensitivity, again)
	for i, d := range works() {
		row(fmt.Sprintf("the same and %v of work", d), Sensitivity, first+1+i)
	}
	row(jsonStack+" and its copy, default GOMAXPROCS", DefaultProcs, again)
}

// runs are six contiguous parts of the blocks, each with its mean time per operation.
func runs(blocks [][]timing.Slice, arm int) *benchmath.Sample {
	const count = 6
	var values []float64
	for i := range count {
		var wall time.Duration
		ops := 0
		for _, block := range blocks[i*len(blocks)/count : (i+1)*len(blocks)/count] {
			wall, ops = wall+block[arm].Wall, ops+block[arm].Ops
		}
		values = append(values, float64(wall)/float64(ops))
	}
	return benchmath.NewSample(values, &benchmath.DefaultThresholds)
}

// garbage is what one arm leaves for the next to collect: (d).
func (r records) garbage(w io.Writer) {
	apart := r[Garbage+"-apart"]
	if len(apart) == 0 {
		return
	}
	reference := ratios(apart, again)
	fmt.Fprintf(w, "\n(d) %d bytes of garbage per op injected into a copy of %s: does the estimate depend on how it is taken\n", litterBytes, grpcStack)
	fmt.Fprintln(w, "slices\tprocesses\tratio (95 %)\tagainst apart (95 %)\tcopy without garbage (95 %)\thalf-width % in one process, median\t")
	fmt.Fprintf(w, "apart\t%d\t%s\t–\t–\t–\t\n", len(apart), show(replicate.Interval(reference, level)))
	for _, name := range []string{"-25ms", "-100ms", "-400ms", "-25ms-byclock"} {
		list := r[Garbage+name]
		if len(list) == 0 {
			continue
		}
		var widths []float64
		for _, record := range list {
			widths = append(widths, halfWidth(interval(record, again)))
		}
		slices.Sort(widths)
		own := ratios(list, first)
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%.2f\t\n", name[1:], len(list), show(replicate.Interval(own, level)), show(between(own, reference)),
			show(replicate.Interval(ratios(list, again), level)), stat.Quantile(0.5, stat.Empirical, widths, nil))
	}
}

// between is the quotient of two groups of ratios with its 95 % interval: B. L. Welch, Biometrika 34 (1947).
func between(a, b []float64) timing.Interval {
	logs := func(v []float64) (mean, variance float64) {
		l := make([]float64, len(v))
		for i := range v {
			l[i] = math.Log(v[i])
		}
		mean, variance = stat.MeanVariance(l, nil)
		return mean, variance / float64(len(v))
	}
	am, av := logs(a)
	bm, bv := logs(b)
	freedom := (av + bv) * (av + bv) / (av*av/float64(len(a)-1) + bv*bv/float64(len(b)-1))
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile((1+level)/2) * math.Sqrt(av+bv)
	return timing.Interval{Median: math.Exp(am - bm), Lo: math.Exp(am - bm - half), Hi: math.Exp(am - bm + half), Level: level}
}

// repeats is replication done again and again: (e).
func (r records) repeats(w io.Writer) {
	fmt.Fprintf(w, "\n(e) replication repeated: does an interval hold the mean of the other repeats, and do two repeats agree\n")
	fmt.Fprintln(w, "compared\tprocesses each\trepeats\tmean ratio\tmean half-width %\thold the others' mean\tpairs within 0.5 %\twithin 3 %\tfaster, slower, equal, undecided\topposite pairs\t")
	for _, name := range []string{Replication, DefaultProcs} {
		for _, processes := range []int{replicate.Fewest, procsPer60s} {
			for _, arm := range []int{again, first} {
				r.repeat(w, name, arm, processes)
			}
		}
	}
}

func (r records) repeat(w io.Writer, name string, arm, processes int) {
	all := ratios(r[name], arm)
	var repeats []timing.Interval
	verdicts := map[timing.Verdict]int{}
	for g := range slices.Chunk(all, processes) {
		if len(g) < processes {
			break
		}
		repeats = append(repeats, replicate.Interval(g, level))
		floor := 0.0
		if arm != again {
			i := len(repeats) - 1
			floor = replicate.Interval(ratios(r[name][i*processes:(i+1)*processes], again), level).Floor()
		}
		verdicts[repeats[len(repeats)-1].Verdict(floor, versus.Margin)]++
	}
	n := len(repeats)
	if n < 2 {
		return
	}
	held, width, sum := 0, 0.0, 0.0
	for _, i := range repeats {
		sum += math.Log(i.Median)
		width += halfWidth(i) / float64(n)
	}
	near, fair, pairs := 0, 0, 0
	for i, a := range repeats {
		if others := math.Exp((sum - math.Log(a.Median)) / float64(n-1)); a.Lo <= others && others <= a.Hi {
			held++
		}
		for _, b := range repeats[:i] {
			pairs++
			apart := math.Abs(math.Log(a.Median / b.Median))
			if apart <= 0.005 {
				near++
			}
			if apart <= 0.03 {
				fair++
			}
		}
	}
	what := jsonStack + " and its copy"
	if arm == first {
		what = grpcStack + " to " + jsonStack
	}
	if name == DefaultProcs {
		what += ", default GOMAXPROCS"
	}
	fmt.Fprintf(w, "%s\t%d\t%d\t%.4f\t%.2f\t%s\t%.1f %%\t%.1f %%\t%d, %d, %d, %d\t%d\t\n", what, processes, n, math.Exp(sum/float64(n)), width,
		share(held, n), 100*float64(near)/float64(pairs), 100*float64(fair)/float64(pairs),
		verdicts[timing.Faster], verdicts[timing.Slower], verdicts[timing.Equal], verdicts[timing.Undecided],
		verdicts[timing.Faster]*verdicts[timing.Slower])
}

// idle is neighbours that do nothing: (f).
func (r records) idle(w io.Writer) {
	if len(r[Idle+"-0"]) == 0 {
		return
	}
	alone := ratios(r[Idle+"-0"], first)
	fmt.Fprintln(w, "\n(f) idle fixtures beside the contestants")
	fmt.Fprintf(w, "idle\tprocesses\t%s ns/op\t%s to %s (95 %%)\tagainst none (95 %%)\t\n", jsonStack, grpcStack, jsonStack)
	for _, n := range []int{0, 10, 30} {
		list := r[fmt.Sprintf("%s-%d", Idle, n)]
		if len(list) == 0 {
			continue
		}
		own, against := ratios(list, first), "–"
		if n > 0 {
			against = show(between(own, alone))
		}
		fmt.Fprintf(w, "%d\t%d\t%.0f\t%s\t%s\t\n", n, len(list), stat.Mean(nsPerOps(list, base), nil), show(replicate.Interval(own, level)), against)
	}
}
