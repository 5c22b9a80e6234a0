package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// gate is what a contestant may take, in times the base's, before run fails for it. 0 is no gate.
type gate struct {
	max    float64 // of the leading figure, time or CPU time
	counts float64 // of what is counted
	named  bool    // somebody has chosen the workloads, of which the gate then needs every figure
}

// with adds what a gate has judged to what has failed. After a failure it does not matter that nothing is decided.
func with(failed, judged error) error {
	if failed != nil && errors.As(judged, new(shell.NotDecided)) {
		return failed
	}
	return errors.Join(failed, judged)
}

// countsOnly says whether nothing is timed.
func (g gate) countsOnly() bool { return g.counts > 0 && g.max == 0 }

// counts are what -max-counts compares, and the growth that it takes for noise. A call may allocate a fraction of an
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
func exact(w workload.Planned) bool { return !w.At(nil).Several() && w.Link == "" }

// countAll counts, and times nothing.
func (p plan) countAll(ctx context.Context, stdout io.Writer, clock *shell.Clock) (err error) {
	l, err := p.link(ctx, environ.List(), clock.Part())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.remove()) }()
	all := p.campaign(l.programs, nil)
	facts := p.count(ctx, l, all, clock.Part())
	if ctx.Err() != nil {
		return shell.ErrInterrupted
	}
	s := p.summary(findings{linked: l, comparisons: all.Comparisons, facts: facts})
	if len(all.Failures) > 0 || s.Counts() == nil {
		err = errors.New("run: not all was counted: " + strings.Join(append(all.Failures, all.Skipped()...), "; "))
	}
	said, judged := p.gate.judge(s, p.workloads, all.Skipped())
	if s.Counts() != nil { // else the error says it
		for _, line := range all.Skipped() {
			err = errors.Join(err, shell.Say(stdout, "Warning: %s.", line))
		}
	}
	return errors.Join(err, judged, shell.SayAll(stdout, said))
}

// judge is what the gate says, and its error. It appends both that and the tables to the summary of a step of GitHub
// Actions. An answer that a gate has no figure of fails, or a gate that sees nothing would stay green.
func (g gate) judge(s report.Summary, of []workload.Planned, skipped []string) (said string, err error) {
	var lines, over, blind, none []string
	if g.max > 0 {
		lines, over, blind = g.times(s.Answers)
	}
	if g.counts > 0 {
		said, more := g.counted(s.Answers, of)
		lines, over = append(lines, said...), append(over, more...)
	}
	for _, a := range s.Answers {
		if g.max > 0 && a.Led().Ratio == 0 || g.counts > 0 && (a.Facts == nil || a.BaseFacts == nil) {
			none = append(none, a.Does+", "+a.Stack)
		}
	}
	for _, line := range skipped {
		if g.named && len(lines) > 0 {
			none = append(none, strings.TrimPrefix(line, "skipped: "))
		}
	}
	if len(none) > 0 {
		err = errors.New("run: the gate has no figure of " + strings.Join(none, "; "))
	}
	switch {
	case len(over) > 0:
		err = errors.Join(err, shell.Above{Err: errors.New("run: above the gate: " + strings.Join(over, "; "))})
	case len(blind) > 0:
		err = with(err, shell.NotDecided{Err: errors.New("run: the gate is not decided: " + strings.Join(blind, "; "))})
	}
	text := strings.Join(append(lines, ""), "\n")
	if name := os.Getenv("GITHUB_STEP_SUMMARY"); name != "" {
		if failed := step(name, s, text); failed != nil {
			text += fmt.Sprintf("Warning: the step has no summary: %s.\n", failed)
		}
	}
	return text, err
}

// step appends to the summary of a step.
func step(name string, s report.Summary, said string) error {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if s.Measured() {
		_, err = io.WriteString(file, s.Results(true).Markdown())
	}
	if counts := s.Counts(); counts != nil && err == nil {
		_, err = io.WriteString(file, "\n"+counts.Markdown())
	}
	if said != "" && err == nil {
		_, err = fmt.Fprintf(file, "\n```text\n%s```\n\n", said)
	}
	return errors.Join(err, file.Close())
}

// times says of each answer whether it is above the gate: by the lower end of its interval, and beyond the noise floor.
// Each line has the least ratio that would have been. Before them stands what is too imprecise for twice the excess,
// with what would let the gate see that.
func (g gate) times(answers []report.Answer) (lines, over, blind []string) {
	for _, a := range answers {
		a := a.Led()
		name := a.Does + ", " + a.Stack
		if a.Busy {
			lines = append(lines, "gate: "+name+": "+report.Because(a.Reason))
			blind = append(blind, name+": give it a machine that does nothing else")
			continue
		}
		if a.Ratio == 0 {
			lines = append(lines, "gate: "+name+" was not measured")
			continue
		}
		said, verdict := fmt.Sprintf("%s: %.3f (%.3f–%.3f)", name, a.Ratio, a.Lo, a.Hi), "not decided to be above"
		least := g.least(a.Figure, 1)
		if a.Lo > g.max && a.Ratio > 1+a.NoiseFloor {
			verdict, over = "above", append(over, said)
		} else if !g.sees(least) {
			blind = append(blind, name+": give it "+g.more(a.Figure))
		}
		lines = append(lines, fmt.Sprintf("gate: %s is %s %v; it fires from %.3f on", said, verdict, g.max, least))
	}
	if len(blind) > 0 {
		lines = slices.Insert(lines, 0, fmt.Sprintf("gate: not decided: it could not have seen %.4g, which is twice the "+
			"excess that it allows: %s", 2*g.max-1, strings.Join(blind, "; ")))
	}
	return lines, over, blind
}

// sees says whether a gate that fires from a ratio on sees twice the excess that it allows.
func (g gate) sees(least float64) bool { return least-1 <= 2*(g.max-1) }

// least is the least ratio at which the gate would fire, after so many times the time. Widths go with one over the root
// of the time, and the machine moves as it did.
func (g gate) least(f verdict.Figure, times float64) float64 {
	floor := verdict.Floor(f.CopyDiffers/math.Sqrt(times), f.BaseVaried)
	return max(g.max*math.Pow(f.Hi/f.Lo, 0.5/math.Sqrt(times)), 1+floor)
}

// more is what would let the gate see.
func (g gate) more(f verdict.Figure) string {
	for times := 2; times <= 100; times++ {
		if g.sees(g.least(f, float64(times))) {
			return fmt.Sprintf("about %d times -time", times)
		}
	}
	if f.BaseVaried = 0; g.sees(g.least(f, 100)) {
		return "a quieter machine"
	}
	return "a larger -max"
}

// counted says what was counted of each answer. What is above the gate by more than noise is over. What has grown
// within the gate has a line too.
func (g gate) counted(answers []report.Answer, of []workload.Planned) (lines, over []string) {
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
			case own > g.counts*base:
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
			lines = append(lines, fmt.Sprintf("gate: %s has grown within %v: %s", name, g.counts, strings.Join(grown, ", ")))
		}
	}
	return lines, over
}
