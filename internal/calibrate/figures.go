package calibrate

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rpcbench/rpcbench/internal/replicate"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
)

const level = 0.95

// The arms of every experiment.
const (
	base = iota
	again
	contestant
)

// Figures writes a table with a line per experiment, of its whole repeats. It answers three questions. How often is a verdict
// false: those of "same" that are faster or slower. How small a difference is found: the verdicts "slower" on a copy with work. Does an
// interval hold what it says: "hold the others' mean".
func Figures(w io.Writer, entries []Entry) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var shown []string
	found := map[string]timing.Record{}
	for _, e := range entries {
		if env := strings.Join(e.Environment, " "); env != "" && !slices.Contains(shown, env) {
			fmt.Fprintln(t, "#", env)
			shown = append(shown, env)
		}
		if e.Error == "" && e.Record != nil {
			found[e.Task] = *e.Record
		}
	}
	fmt.Fprintf(t, "experiment\tcompared\tGOMAXPROCS\trepeats of %d processes\tthe base moved\tmean ratio\tmean half-width\thold the others' mean\tfaster, slower, equal, undecided\n", processes)
	for _, e := range Plan() {
		var repeats [][]timing.Record
		for i := range e.Repeats {
			var own []timing.Record
			for j := range e.Processes {
				id := fmt.Sprintf("%s/%d", e.Name, i*e.Processes+j)
				r, ok := found[id]
				if ok && !complete(r, e.Spec) {
					return fmt.Errorf("rpcbench: calibrate: the record of %s is not what the plan asks for: delete its line to measure it again", id)
				}
				if ok {
					own = append(own, r)
				}
			}
			if len(own) == e.Processes {
				repeats = append(repeats, own)
			}
		}
		if len(repeats) > 1 {
			fmt.Fprintln(t, line(e, repeats))
		}
	}
	return t.Flush()
}

// complete says whether there is a ratio in a record.
func complete(r timing.Record, spec replicate.Spec) bool {
	empty := func(s timing.Slice) bool { return s.Ops <= 0 || s.Wall <= 0 }
	return len(r.Arms) == len(spec.Arms) && len(r.Blocks) > 0 && !slices.ContainsFunc(r.Blocks, func(block []timing.Slice) bool {
		return len(block) != len(r.Arms) || slices.ContainsFunc(block, empty)
	})
}

// line is an experiment's. A repeat whose base moved is undecided, and its ratio is not looked at.
func line(e Experiment, repeats [][]timing.Record) string {
	var decided []timing.Interval
	verdicts := map[timing.Verdict]int{}
	for _, records := range repeats {
		var ns []float64
		for _, r := range records {
			ns = append(ns, r.NsPerOp(base))
		}
		if replicate.Moved(ns) > replicate.Steady {
			continue
		}
		i := replicate.Interval(medians(records, contestant), level)
		verdicts[i.Verdict(replicate.Interval(medians(records, again), level).Floor(), versus.Margin)]++
		decided = append(decided, i)
	}
	procs := "default"
	if e.Spec.Procs > 0 {
		procs = strconv.Itoa(e.Spec.Procs)
	}
	n := len(decided)
	said := fmt.Sprintf("%s\t%s to %s\t%s\t%d\t%d", e.Name, e.Spec.Arms[contestant], e.Spec.Arms[base], procs, len(repeats), len(repeats)-n)
	if n < 2 {
		return said
	}
	sum, width, held := 0.0, 0.0, 0
	for _, i := range decided {
		sum += math.Log(i.Median)
		width += 50 * (i.Hi - i.Lo) / float64(n)
	}
	for _, i := range decided {
		if others := math.Exp((sum - math.Log(i.Median)) / float64(n-1)); i.Lo <= others && others <= i.Hi {
			held++
		}
	}
	return said + fmt.Sprintf("\t%.4f\t%.2f %%\t%s\t%d, %d, %d, %d", math.Exp(sum/float64(n)), width, share(held, n),
		verdicts[timing.Faster], verdicts[timing.Slower], verdicts[timing.Equal], verdicts[timing.Undecided])
}

// medians are one ratio to the base per process.
func medians(records []timing.Record, arm int) []float64 {
	out := make([]float64, len(records))
	for i, r := range records {
		ratio, _ := r.Ratio(arm, base, 0.5) // the median alone: an interval of a process is not asked for
		out[i] = ratio.Median
	}
	return out
}

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
