package calibrate

import (
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
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
	fewest = 6                // blocks for an interval of that level; another version's plan may have had more than this one's, or less
	single = 12 * time.Second // of two contestants in one process, with what leads in
	minute = 60 * time.Second // the same with replication
)

// The arms of all plans but the one apart: the base, its copy, and what is compared.
const (
	base = iota
	again
	first
)

// records are the complete ones by experiment, in the order in which they were measured: processes that follow each other
// are one repeat of a comparison, so that what the machine does from one repeat to the next is between them.
type records map[string][]timing.Record

func byExperiment(entries []Entry) records {
	found := records{}
	for _, e := range entries {
		if name, _, ok := strings.Cut(e.Task, "/"); ok && e.Error == "" && e.Record != nil {
			found[name] = append(found[name], *e.Record)
		}
	}
	maps.DeleteFunc(found, func(_ string, list []timing.Record) bool { return len(list) < 2 }) // which say nothing of their spread
	return found
}

// planned refuses a record that is not what the plan asks for, on which arithmetic would stumble.
func planned(entries []Entry) error {
	specs := map[string]replicate.Spec{}
	for _, e := range Plan() {
		specs[e.Name] = e.Spec
	}
	for _, e := range entries {
		name, _, _ := strings.Cut(e.Task, "/")
		if spec, ok := specs[name]; ok && e.Error == "" && e.Record != nil && !complete(*e.Record, spec) {
			return fmt.Errorf("rpcbench: calibrate: the record of %s is not what the plan asks for: delete its line to measure it again", e.Task)
		}
	}
	return nil
}

func complete(r timing.Record, spec replicate.Spec) bool {
	if len(r.Arms) != len(spec.Arms) || len(r.Blocks) < fewest {
		return false
	}
	empty := func(s timing.Slice) bool { return s.Ops <= 0 || s.Wall <= 0 }
	return !slices.ContainsFunc(r.Blocks, func(block []timing.Slice) bool {
		return len(block) != len(r.Arms) || slices.ContainsFunc(block, empty)
	})
}

// repeats are groups of so many processes in a row; what is left over is none.
func repeats(ratios []float64, processes int) (groups []timing.Interval) {
	for g := range slices.Chunk(ratios, processes) {
		if len(g) == processes {
			groups = append(groups, replicate.Interval(g, level))
		}
	}
	return groups
}

// within cuts a record off where two of its arms have used up a time.
func within(r timing.Record, arm, base int, limit time.Duration) timing.Record {
	var used time.Duration
	for i, block := range r.Blocks {
		if used += block[arm].Lead + block[arm].Wall + block[base].Lead + block[base].Wall; used > limit {
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
	if n == 0 {
		return "–"
	}
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
	if err := planned(entries); err != nil {
		return err
	}
	r := byExperiment(entries)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var shown []string
	for _, e := range entries {
		if env := strings.Join(e.Environment, " "); env != "" && !slices.Contains(shown, env) {
			fmt.Fprintln(t, "#", env)
			shown = append(shown, env)
		}
	}
	for _, part := range []func(io.Writer){r.sameness, r.sensitivity, r.faintness, r.usual, r.garbage, r.replication, r.idle} {
		part(t)
	}
	return t.Flush()
}

// sameness is the base against its own copies: (a).
func (r records) sameness(w io.Writer) {
	fmt.Fprintf(w, "\n(a) a stack against its own copy, one process, the first %v of the two or what there is\n", single)
	fmt.Fprintln(w, "experiment\tprocesses\thalf-width %: least\tquarter\tmedian\t90 %\tgreatest\ttold apart\tthird copy, outside the floor\t")
	all, n, long, nLong := 0, 0, 0, 0
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
		switch name {
		case Same, Sensitivity:
			long, nLong = long+apart, nLong+len(widths)
			fallthrough
		case Replication:
			all, n = all+apart, n+len(widths)
		}
	}
	if n > 0 && nLong > 0 {
		fmt.Fprintf(w, "told apart in %v, GOMAXPROCS=1, fixtures replaced: %s\n", single, share(long, nLong))
		fmt.Fprintf(w, "told apart in %v or less, GOMAXPROCS=1, fixtures replaced: %s\n", single, share(all, n))
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
	fmt.Fprintf(w, "\n(b) work injected into copies of %s (%.0f ns/op), %d open together: how often it is found\n", grpcStack, stat.Mean(nsPerOps(list, base), nil), len(list[0].Arms))
	fmt.Fprintf(w, "injected\tof a call\testimate, %d processes\tfound in %v, one process\toutside the floor\t%v in %d processes in a row\tany %d processes\toutside the floor\t\n",
		len(list), single, minute, processes, processes)
	for i, d := range works() {
		arm := first + 1 + i
		found, outside := 0, 0
		var extra []float64
		shortened := make([]timing.Record, len(list))
		for j, record := range list {
			aa := interval(within(record, again, base, single), again)
			cut := within(record, arm, base, single)
			it := interval(cut, arm)
			if it.Lo > 1 {
				found++
			}
			if it.Verdict(aa.Floor(), 0) == timing.Slower {
				outside++
			}
			extra = append(extra, (it.Median-1)*cut.NsPerOp(base))
			shortened[j] = within(record, arm, base, minute/processes)
		}
		mean, sd := stat.MeanStdDev(extra, nil)
		n := float64(len(extra))
		half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile((1+level)/2) * sd / math.Sqrt(n)
		medians, floors := ratios(shortened, arm), ratios(shortened, again)
		groups := repeats(medians, processes)
		groupsFound := 0
		for _, g := range groups {
			if g.Lo > 1 {
				groupsFound++
			}
		}
		const draws = 1000
		drawn, drawnOutside := 0, 0
		random := rand.New(rand.NewPCG(1, 0))
		for range draws {
			var g, f []float64
			for _, j := range random.Perm(len(medians))[:min(processes, len(medians))] {
				g, f = append(g, medians[j]), append(f, floors[j])
			}
			it := replicate.Independent(g, level)
			if it.Lo > 1 {
				drawn++
			}
			if it.Verdict(replicate.Independent(f, level).Floor(), 0) == timing.Slower {
				drawnOutside++
			}
		}
		percent := func(k int) string { return fmt.Sprintf("%.1f %%", 100*float64(k)/draws) }
		fmt.Fprintf(w, "%v\t%.2f %%\t%.0f ± %.0f ns\t%s\t%s\t%d of %d\t%s\t%s\t\n", d,
			100*float64(d)/stat.Mean(nsPerOps(list, base), nil), mean, half,
			share(found, len(list)), share(outside, len(list)), groupsFound, len(groups), percent(drawn), percent(drawnOutside))
	}
}

// faintness is a small amount of work, and replication.
func (r records) faintness(w io.Writer) {
	list := r[Faint]
	if len(list) == 0 {
		return
	}
	found, outside := 0, 0
	groups, floors := repeats(ratios(list, first), procsPer60s), repeats(ratios(list, again), procsPer60s)
	for i, g := range groups {
		if g.Lo > 1 {
			found++
		}
		if g.Verdict(floors[i].Floor(), 0) == timing.Slower {
			outside++
		}
	}
	fmt.Fprintf(w, "\n(b) %v of work injected into a copy of %s, %d processes in a row, which take less than %v\n", faintWork, grpcStack, procsPer60s, minute)
	fmt.Fprintln(w, "of a call\tratio, all processes\tfound\toutside the floor\t")
	fmt.Fprintf(w, "%.2f %%\t%s\t%s\t%s\t\n", 100*float64(faintWork)/stat.Mean(nsPerOps(list, base), nil),
		show(replicate.Independent(ratios(list, first), level)), share(found, len(groups)), share(outside, len(groups)))
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
			if half < usualRuns {
				continue // not a block for each run
			}
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
		if len(usual) > 0 {
			fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%.2f %%\t%.2f %%\t\n", what, len(usual), share(differ, len(usual)), faster,
				stat.StdDev(usual, nil), stat.StdDev(paired, nil))
		}
	}
	row(jsonStack+" and its copy", Same, again)
	row(grpcStack+" and its copy", Sensitivity, again)
	for i, d := range works() {
		row(fmt.Sprintf("the same and %v of work", d), Sensitivity, first+1+i)
	}
	row(jsonStack+" and its copy, default GOMAXPROCS", DefaultProcs, again)
}

const usualRuns = 6

// runs are contiguous parts of the blocks, each with its mean time per operation.
func runs(blocks [][]timing.Slice, arm int) *benchmath.Sample {
	var values []float64
	for i := range usualRuns {
		var wall time.Duration
		ops := 0
		for _, block := range blocks[i*len(blocks)/usualRuns : (i+1)*len(blocks)/usualRuns] {
			wall, ops = wall+block[arm].Wall, ops+block[arm].Ops
		}
		values = append(values, float64(wall)/float64(ops))
	}
	return benchmath.NewSample(values, &benchmath.DefaultThresholds)
}

// garbage is what one arm leaves for the next to collect: (d).
func (r records) garbage(w io.Writer) {
	if len(r[Garbage+"-25ms"]) == 0 {
		return
	}
	fmt.Fprintf(w, "\n(d) %d bytes of garbage per op injected into a copy of %s: does the estimate depend on how it is taken\n", litterBytes, grpcStack)
	fmt.Fprintln(w, "slices\tprocesses\tratio (95 %)\tprocesses apart\tratio (95 %)\tagainst apart (95 %)\tcopy without garbage (95 %)\thalf-width % in one process, median\tcopies without: calls per collection after garbage, after each other\t")
	for _, row := range []struct{ name, apart string }{
		{"-25ms", "-apart"}, {"-100ms", "-apart-100ms"}, {"-400ms", "-apart-400ms"}, {"-25ms-byclock", "-apart"},
	} {
		list, apart := r[Garbage+row.name], r[Garbage+row.apart]
		if len(list) == 0 {
			continue
		}
		var widths []float64
		for _, record := range list {
			widths = append(widths, halfWidth(interval(record, again)))
		}
		slices.Sort(widths)
		own, other, against := ratios(list, first), "–", "–"
		if min(len(own), len(apart)) > 1 {
			reference := ratios(apart, again)
			other, against = show(replicate.Independent(reference, level)), show(between(own, reference))
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%s\t%s\t%s\t%.2f\t%s\t\n", row.name[1:], len(list), show(replicate.Independent(own, level)), len(apart), other, against,
			show(replicate.Independent(ratios(list, again), level)), stat.Quantile(0.5, stat.Empirical, widths, nil), perCollection(list))
	}
}

// perCollection is how many calls the arms without garbage make for each collection, in slices right after the arm with it, and right
// after each other.
func perCollection(list []timing.Record) string {
	var ops, collections [2]int
	for _, r := range list {
		for _, block := range r.Blocks {
			for _, s := range block[:first] {
				after := 1
				if s.Turn == block[first].Turn+1 {
					after = 0
				}
				if s.Turn > 0 { // what ran before turn 0 was another block's
					ops[after], collections[after] = ops[after]+s.Ops, collections[after]+s.GC
				}
			}
		}
	}
	if min(collections[0], collections[1]) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f, %.0f", float64(ops[0])/float64(collections[0]), float64(ops[1])/float64(collections[1]))
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

// replication is done again and again: (e).
func (r records) replication(w io.Writer) {
	fmt.Fprintf(w, "\n(e) replication repeated: does an interval hold the mean of the other repeats, and do two repeats agree; without the repeats whose base moved by more than %.0f %%\n", 100*replicate.Steady)
	fmt.Fprintln(w, "compared\tprocesses each\trepeats\tthe base moved\tmean ratio\tmean half-width %\thold the others' mean\tpairs within 0.5 %\twithin 3 %\tfaster, slower, equal, undecided\topposite pairs\t")
	for _, name := range []string{Replication, DefaultProcs} {
		for _, processes := range []int{replicate.Fewest, procsPer60s} {
			for _, arm := range []int{again, first} {
				r.repeat(w, name, arm, processes)
			}
		}
	}
}

func (r records) repeat(w io.Writer, name string, arm, processes int) {
	all := repeats(ratios(r[name], arm), processes)
	allFloors := repeats(ratios(r[name], again), processes)
	var groups, floors []timing.Interval
	for i, g := range all {
		if replicate.Moved(nsPerOps(r[name][i*processes:(i+1)*processes], base)) <= replicate.Steady {
			groups, floors = append(groups, g), append(floors, allFloors[i])
		}
	}
	verdicts := map[timing.Verdict]int{}
	for i, g := range groups {
		floor := 0.0
		if arm != again {
			floor = floors[i].Floor()
		}
		verdicts[g.Verdict(floor, versus.Margin)]++
	}
	n := len(groups)
	if n < 2 {
		return
	}
	held, width, sum := 0, 0.0, 0.0
	for _, i := range groups {
		sum += math.Log(i.Median)
		width += halfWidth(i) / float64(n)
	}
	near, fair, pairs := 0, 0, 0
	for i, a := range groups {
		if others := math.Exp((sum - math.Log(a.Median)) / float64(n-1)); a.Lo <= others && others <= a.Hi {
			held++
		}
		for _, b := range groups[:i] {
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
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%.4f\t%.2f\t%s\t%.1f %%\t%.1f %%\t%d, %d, %d, %d\t%d\t\n", what, processes, len(all), len(all)-n, math.Exp(sum/float64(n)), width,
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
	for _, n := range idles() {
		list := r[fmt.Sprintf("%s-%d", Idle, n)]
		if len(list) == 0 {
			continue
		}
		own, against := ratios(list, first), "–"
		if n > 0 {
			against = show(between(own, alone))
		}
		fmt.Fprintf(w, "%d\t%d\t%.0f\t%s\t%s\t\n", n, len(list), stat.Mean(nsPerOps(list, base), nil), show(replicate.Independent(own, level)), against)
	}
}
