package calibrate

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/tabwriter"

	"github.com/aclements/go-moremath/mathx"

	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// Figures reads the records in a folder, and writes a table to figures.txt beside them and to w. It has a line per experiment, of its
// whole repeats, and answers three questions. How often is a verdict false: those of "same" that are faster or slower. How small a
// difference is found: the verdicts "slower" on a copy with work. Does an interval hold what it says: "hold the others' mean".
func Figures(dir string, w io.Writer) error {
	entries, _, err := read(filepath.Join(dir, RecordsFile))
	var text bytes.Buffer
	if err == nil {
		err = figures(&text, entries)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "figures.txt"), text.Bytes(), 0o644)
	}
	if err == nil {
		_, err = text.WriteTo(w)
	}
	return err
}

func figures(w io.Writer, entries []Entry) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	shown, found := map[string]bool{"": true}, map[string]timing.Record{}
	for _, e := range entries {
		if env := strings.Join(e.Environment, " "); !shown[env] {
			fmt.Fprintln(t, "#", env)
			shown[env] = true
		}
		if e.Record != nil {
			found[e.Task] = *e.Record
		}
	}
	fmt.Fprintf(t, "experiment\tcompared\tGOMAXPROCS\trepeats of %d processes\tthe base moved\tmean ratio\tmean half-width\thold the others' mean\tfaster, slower, equal, undecided\n", processes)
	plan, err := Plan()
	if err != nil {
		return err
	}
	for _, e := range plan {
		var repeats [][]timing.Record
		for i := range e.Repeats {
			var own []timing.Record
			for _, task := range e.repeat(i) {
				r, ok := found[task.id]
				for arm := 1; ok && arm < len(e.Spec.Arms); arm++ {
					if _, err := r.Ratio(arm, 0, 0.5); err != nil {
						return fmt.Errorf("rpcbench: calibrate: the record of %s is not what the plan asks for: delete its line to measure it again: %w", task.id, err)
					}
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

// line is an experiment's. A repeat whose base moved is undecided, and its ratio is not looked at.
func line(e Experiment, repeats [][]timing.Record) string {
	const level = 0.95
	var decided []timing.Interval
	verdicts := map[timing.Verdict]int{}
	sum, width, held := 0.0, 0.0, 0
	for _, records := range repeats {
		base, again, arm := versus.Read(records, 0, level), versus.Read(records, 1, level), versus.Read(records, 2, level)
		if base.Moved <= versus.Steady {
			verdicts[versus.Verdict(base, again, arm, versus.Margin, versus.Fewest)]++
			decided = append(decided, arm.Ratio)
			sum += math.Log(arm.Ratio.Median)
			width += 50 * (arm.Ratio.Hi - arm.Ratio.Lo)
		}
	}
	n := len(decided)
	said := fmt.Sprintf("%s\t%s to %s\t%s\t%d\t%d", e.Name, e.Spec.Arms[2], e.Spec.Arms[0], versus.Procs(e.Spec.Procs), len(repeats), len(repeats)-n)
	if n < 2 {
		return said
	}
	for _, i := range decided {
		if others := math.Exp((sum - math.Log(i.Median)) / float64(n-1)); i.Lo <= others && others <= i.Hi {
			held++
		}
	}
	return said + fmt.Sprintf("\t%.4f\t%.2f %%\t%s\t%d, %d, %d, %d", math.Exp(sum/float64(n)), width/float64(n), share(held, n),
		verdicts[timing.Faster], verdicts[timing.Slower], verdicts[timing.Equal], verdicts[timing.Undecided])
}

// share is k of n in percent with the limits of its 95 % interval: C. J. Clopper and E. S. Pearson, Biometrika 26 (1934).
func share(k, n int) string {
	// percent is the share at which k or more of n have that probability.
	percent := func(k int, tail float64) float64 {
		const steps = 1e9
		return 100 / steps * float64(sort.Search(steps, func(i int) bool {
			return k == 0 || k <= n && mathx.BetaInc(float64(i)/steps, float64(k), float64(n-k+1)) >= tail
		}))
	}
	return fmt.Sprintf("%d of %d, %.1f %% (%.1f–%.1f)", k, n, 100*float64(k)/float64(n), percent(k, 0.025), percent(k+1, 0.975))
}
