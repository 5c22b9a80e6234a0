package run

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// gate is how many times as much as the base a contestant may take of the leading figure before run fails for it. 0 is
// no gate.
type gate float64

// with adds what a gate has judged to what has failed. After a failure it does not matter that nothing is decided.
func with(failed, judged error) error {
	if failed != nil && errors.As(judged, new(shell.NotDecided)) {
		return failed
	}
	return errors.Join(failed, judged)
}

// judge is what the gate says, and its error. It appends both that and the tables to the summary of a step of GitHub
// Actions. An answer that a gate has no figure of fails, or a gate that sees nothing would stay green: so does a
// workload that was skipped and that somebody has chosen.
func (g gate) judge(s report.Summary, chosen bool, skipped []string) (said string, err error) {
	var lines, over, blind, none []string
	if g > 0 {
		lines, over, blind = g.times(s.Answers)
	}
	for _, a := range s.Answers {
		if g > 0 && a.Led().Figure.Ratio == 0 {
			none = append(none, a.Does+", "+a.Stack)
		}
	}
	for _, line := range skipped {
		if chosen && len(lines) > 0 {
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
	said = strings.Join(append(lines, ""), "\n")
	return said + shell.Step(s, said), err
}

// times says of each answer whether it is above the gate: by an interval that lies above it and beyond the noise floor.
// Each line has the least ratio that would have been. Before them stands what is too imprecise for twice the excess,
// with what would let the gate see that.
func (g gate) times(answers []report.Answer) (lines, over, blind []string) {
	for _, a := range answers {
		f, name := a.Led().Figure, a.Does+", "+a.Stack
		if a.Busy {
			lines = append(lines, "gate: "+name+": "+report.Because(f.Reason))
			blind = append(blind, name+": give it a machine that does nothing else")
			continue
		}
		if f.Ratio == 0 {
			lines = append(lines, "gate: "+name+" was not measured")
			continue
		}
		said, is := fmt.Sprintf("%s: %.3f (%.3f–%.3f)", name, f.Ratio, f.Lo, f.Hi), "not decided to be above"
		least := g.least(f, 1)
		if f.Interval().At(0, float64(g)) == verdict.Above {
			is, over = "above", append(over, said)
		} else if !g.sees(least) {
			blind = append(blind, name+": give it "+g.more(f))
		}
		lines = append(lines, fmt.Sprintf("gate: %s is %s %v; it fires from %.3f on", said, is, float64(g), least))
	}
	if len(blind) > 0 {
		lines = slices.Insert(lines, 0, fmt.Sprintf("gate: not decided: it could not have seen %.4g, which is twice the "+
			"excess that it allows: %s", 2*float64(g)-1, strings.Join(blind, "; ")))
	}
	return lines, over, blind
}

// sees says whether a gate that fires from a ratio on sees twice the excess that it allows.
func (g gate) sees(least float64) bool { return least-1 <= 2*(float64(g)-1) }

// least is the least ratio at which the gate would fire, after so many times the time. Widths go with one over the root
// of the time, and the machine moves as it did.
func (g gate) least(f verdict.Figure, times float64) float64 {
	floor := verdict.Floor(f.CopyDiffers/math.Sqrt(times), f.BaseVaried)
	return max(float64(g), 1+floor) * math.Pow(f.Hi/f.Lo, 0.5/math.Sqrt(times))
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
