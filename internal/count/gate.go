package count

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// gate is how many times as much as the base a contestant may count before count fails for it. 0 is no gate.
type gate float64

// counts are what the gate compares, and the growth that it takes for noise. A call may allocate a fraction of an
// object more, since the collector empties pools. Allocated bytes vary with those pools, so they don't count.
var counts = []struct {
	name  string
	of    func(*report.Counts) float64
	noise float64
}{
	{"allocations", func(f *report.Counts) float64 { return f.Allocs }, 0.5},
	{"bytes sent", func(f *report.Counts) float64 { return f.Sent }, 1},
	{"bytes received", func(f *report.Counts) float64 { return f.Received }, 1},
	{"writes", func(f *report.Counts) float64 { return f.Writes }, 0.5},
}

// exact says whether counts of a workload repeat. Where several callers share a connection, timing decides how many
// pings and writes there are, and a slow link leaves time for a few calls only.
func exact(w workload.Planned) bool { return !w.Several() && w.Link == "" }

// judge is what the gate says of workloads, and its error. An answer that it has no figure of fails, or a gate that
// sees nothing would stay green: so does a workload that was skipped and that somebody has chosen.
func (g gate) judge(s report.Summary, of []workload.Planned, chosen bool, skipped []string) (said string, err error) {
	if g == 0 {
		return "", nil
	}
	lines, over := g.lines(s.Answers, of)
	var none []string
	for _, a := range s.Answers {
		if a.Facts == nil || a.BaseFacts == nil {
			none = append(none, a.Does+", "+a.Stack)
		}
	}
	for _, line := range skipped {
		if chosen && len(lines) > 0 {
			none = append(none, strings.TrimPrefix(line, "skipped: "))
		}
	}
	if len(none) > 0 {
		err = errors.New("count: the gate has no figure of " + strings.Join(none, "; "))
	}
	if len(over) > 0 {
		err = errors.Join(err, shell.Above{Err: errors.New("count: above the gate: " + strings.Join(over, "; "))})
	}
	return strings.Join(append(lines, ""), "\n"), err
}

// lines say what was counted of each answer. What is above the gate by more than noise is over. What has grown within
// the gate has a line too.
func (g gate) lines(answers []report.Answer, of []workload.Planned) (lines, over []string) {
	for _, a := range answers {
		name := a.Does + ", " + a.Stack
		w, err := workload.In(of, a.Workload)
		if a.Facts == nil || a.BaseFacts == nil {
			lines = append(lines, "gate: "+name+" was not counted")
			continue
		}
		var said, grown []string
		for _, count := range counts {
			own, base := count.of(a.Facts), count.of(a.BaseFacts)
			both := fmt.Sprintf("%s %.2f (base %.2f)", count.name, own, base)
			said = append(said, both)
			switch {
			case err != nil || !exact(w) || own-base < count.noise:
			case own > float64(g)*base:
				over = append(over, name+": "+both)
			default:
				grown = append(grown, both)
			}
		}
		if !exact(w) {
			said = append(said, "which depend on timing and pass")
		}
		lines = append(lines, "gate: "+name+": "+strings.Join(said, ", "))
		if len(grown) > 0 {
			lines = append(lines, fmt.Sprintf("gate: %s has grown within %v: %s", name, float64(g), strings.Join(grown, ", ")))
		}
	}
	return lines, over
}
