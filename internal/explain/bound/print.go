package bound

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"

	"github.com/rpcbench/rpcbench/internal/explain/layers"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// fewestSamples is how many samples of a service a bound takes: a share of half of them is then known to 4 points.
const fewestSamples = 500

// binomial returns the 95 % interval of n of all samples in percent, by Wilson's formula.
func binomial(n, all float64) (lo, hi float64) {
	const zz = 1.96 * 1.96
	middle, half := n+zz/2, math.Sqrt(zz*(n*(all-n)/all+zz/4))
	return 100 * (middle - half) / (all + zz), 100 * (middle + half) / (all + zz)
}

// samples are those of all parts.
func (s Service) samples() int64 {
	n, _ := s.Parts.Sum(layers.All)
	return n
}

// share is the percentage of the samples that satisfy the condition.
func (s Service) share(of func(layers.Part) bool) float64 {
	n, _ := s.Parts.Sum(of)
	return 100 * float64(n) / float64(s.samples())
}

// print says what the profile bounds, and prints its layers.
func (s Service) print(w io.Writer, by report.Summary, typed string) error {
	samples := s.samples()
	next := "rpcbench run compares stacks; with -ratios and its folder, bound says what each saves here."
	if by.Measured() {
		next = fmt.Sprintf("go tool pprof -top %s lists the functions.", typed)
	}
	shell.Say(w, "%s: %d samples", s.Name, samples)
	fmt.Fprintln(w)
	if samples < fewestSamples {
		shell.Say(w, "%d samples are too few for a bound, which takes %d.", samples, fewestSamples)
		next = "profile for longer: a second of CPU time gives 100 samples."
	} else {
		s.printBound(w, by)
	}
	t := table.New(1, "layer", "encoding, %", "the rest, %", "all, %", "samples",
		"functions above two standard errors (SE)")
	t.Columns[len(t.Columns)-1].Words = true
	sums := map[string]func(layers.Part) bool{"RPCs": InRPCs, "sum": layers.All}
	for _, layer := range slices.Concat(layers.Names(), []string{"RPCs"}, Outside(), []string{"sum"}) {
		of, functions := sums[layer], ""
		if of == nil {
			of, functions = layers.Within(layer, ""), s.functions(layer)
		}
		if n, _ := s.Parts.Sum(of); n > 0 {
			all, encoded := s.share(of), s.share(func(p layers.Part) bool { return of(p) && p.Side == Encoding })
			t.Add(layer, fmt.Sprintf("%.1f", encoded), fmt.Sprintf("%.1f", all-encoded), fmt.Sprintf("%.1f", all), fmt.Sprint(n),
				functions)
		}
	}
	fmt.Fprintln(w)
	return errors.Join(t.Text(w, shell.Width(w)), shell.Say(w, "\nNext: %s", next))
}

// functions names those of a layer that took most, by the standard errors of counting.
func (s Service) functions(layer string) string {
	by, samples := map[string]layers.Amount{}, float64(s.samples())
	for _, p := range s.Parts {
		if name := path.Base(p.Function); p.Layer == layer {
			share := by[name].Value/100 + float64(p.Samples)/samples
			by[name] = layers.Amount{Value: 100 * share, SE: 100 * math.Sqrt(share*(1-share)/samples)}
		}
	}
	return layers.Largest(by, "%s %.2f (SE %.2f)")
}

// wording is how a saving is said: that a stack would save, or, where handlers may be among the RPCs, that it saves at
// most.
type wording struct{ would, s, atMost, why string }

// wording is that of the service, whose RPC libraries call handlers in places that are known, or not.
func (s Service) wording() wording {
	unsure := wording{s: "s", atMost: " at most, handlers included"}
	switch other := s.share(layers.Within(layers.Other, "")); {
	case s.Unseen != "":
		unsure.why = ", because rpcbench does not know where " + s.Unseen + " calls them"
	case other >= 100*verdict.Margin:
		unsure.why = fmt.Sprintf(", because RPC libraries call %.1f %% (the layer other) in places that rpcbench does not "+
			"know", other)
	default:
		return wording{would: "would "}
	}
	return unsure
}

// printBound says what a stack without cost would save, and then what those of measured ratios would.
func (s Service) printBound(w io.Writer, by report.Summary) {
	x, nobodys, is := s.share(InRPCs), s.share(layers.Within(Nobodys, "")), s.wording()
	encoded := s.share(func(p layers.Part) bool { return p.Side == Encoding && InRPCs(p) })
	samples := float64(s.samples())
	lo, hi := binomial(x*samples/100, samples)
	shell.Say(w, "Serving and calling RPCs takes %.1f %% of this service's CPU (%.1f to %.1f)%s, of which encoding is "+
		"%.1f %%. A stack without cost %ssave%s %.1f %%%s%s.", x, lo, hi, is.atMost, encoded, is.would, is.s, x, is.atMost,
		is.why)
	shell.Say(w, "The scheduler and the collector take %.1f %%, which the profile cannot attribute. "+
		"If all of that is for RPCs, a stack without cost %ssave%s %.1f %%%s.", nobodys, is.would, is.s, x+nobodys, is.atMost)
	if own := s.share(layers.Within("", Encoding)) - encoded; own > 0 {
		shell.Say(w, "The service's own code takes %.1f %% for encoding, which is not in the bound.", own)
	}
	switch margin := 100 * verdict.Margin; {
	case hi >= margin:
	case hi+nobodys >= margin:
		shell.Say(w, "Don't switch for CPU, unless most of the scheduler's and the collector's work is for RPCs.")
	default:
		shell.Say(w, "Don't switch for CPU.")
	}
	for _, stack := range by.Stacks() {
		shell.Say(w, "%s in place of %s%s", stack, by.Base, is.saving(x, report.ByRatio(by.Timed(), stack)))
	}
}

// saving is what measured ratios of a stack, the lowest first, would save: of the share x, a stack whose calls take r
// times as much CPU saves x·(1 − r).
func (is wording) saving(x float64, ratios []report.Led) string {
	decided := slices.DeleteFunc(ratios, func(l report.Led) bool {
		return l.GOMAXPROCS != 1 || l.Verdict == verdict.Undecided
	})
	if len(decided) == 0 {
		return ": no workload on one core is decided, so there is no estimate."
	}
	worst, best, verb, more, dont, sign := decided[len(decided)-1], decided[0], "save", "", "", x
	if best.Ratio > 1 {
		verb, more, sign = "take", " more", -x
	}
	if x*(1-best.Ratio) < 100*verdict.Margin {
		dont = " Don't switch for CPU."
	}
	return fmt.Sprintf(" %s%s%s %.1f %% (%s) to %.1f %% (%s)%s%s. Decided workloads on one core: %d.%s", is.would, verb,
		is.s, sign*(1-worst.Ratio), worst.Workload, sign*(1-best.Ratio), best.Workload, more, is.atMost, len(decided), dont)
}
