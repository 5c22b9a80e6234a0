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
	"time"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
)

// gate is what a contestant may take, in times the base's, before run fails for it. 0 is no gate.
type gate struct {
	max    float64 // of the leading figure, time or CPU time
	counts float64 // of what is counted

	prove bool
	apart bool                       // the builds of a proof, as those of its comparison
	spins map[string][]time.Duration // of a proof: versus.Spec.Spins of each workload
}

// above is the error of a contestant above the gate. The exit status is then 3.
type above struct{ error }

// alone says whether nothing is timed.
func (g gate) alone() bool { return g.counts > 0 && g.max == 0 }

// counts are what -max-counts compares, and the growth that it takes for noise. A call may allocate a fraction of an
// object more, since the collector empties pools. Allocated bytes vary with those pools, so they don't count.
var counts = []struct {
	name  string
	of    func(*workload.Facts) float64
	noise float64
}{
	{"allocations", func(f *workload.Facts) float64 { return f.Allocs }, 0.5},
	{"bytes sent", func(f *workload.Facts) float64 { return f.Sent }, 1},
	{"bytes received", func(f *workload.Facts) float64 { return f.Received }, 1},
	{"writes", func(f *workload.Facts) float64 { return f.Writes }, 0.5},
}

// exact says whether counts of a workload repeat. Where several callers share a connection, timing decides how many
// pings and writes there are, and a slow link leaves time for a few calls only.
func exact(w workload.Workload) bool { return !w.Several() && w.Link == "" }

// gated says what is wrong with the flags of the gate, and sets out what they ask for.
func (c *comparison) gated(typed map[string]bool) error {
	nonsense := func(times float64) bool { return !(times > 1 && times <= 100) }
	switch g := c.gate; {
	case typed["equal"] && !(c.equal > 0 && c.equal <= 100):
		return wrong("run: -equal %v is no margin: give percent, such as 2", c.equal)
	case typed["max"] && nonsense(g.max):
		return wrong("run: -max %v is no gate: give more than 1, such as 1.05", g.max)
	case typed["max-counts"] && nonsense(g.counts):
		return wrong("run: -max-counts %v is no gate: give more than 1, such as 1.02", g.counts)
	case g.prove && (g.max == 0 || g.counts > 0 || len(c.contestants) > 1):
		return wrong("run: -prove is of -max and of one stack: give both, and no -max-counts")
	case g.counts > 0 && c.servers != nil:
		return wrong("run: -max-counts: calls of servers elsewhere are not counted: leave -server out")
	case g.counts > 0 && !slices.ContainsFunc(c.workloads, exact):
		return wrong("run: -max-counts compares counts of one caller without a link: name such a workload, small say")
	case g.alone() && (typed["out"] || typed["time"] || typed["processes"]):
		return wrong("run: -max-counts alone measures no time: leave -out, -time and -processes out, or give -max")
	case g.alone():
		c.layouts = 0
	case g.prove:
		c.gate.apart = c.apart(c.contestants[0])
		c.base = c.contestants[0]
	}
	return nil
}

// slow lets the calls of a proof's contestant spin for twice the allowed excess of its own time: of the figure that
// leads, as a first process tells it.
func (c *comparison) slow(ctx context.Context) error {
	if !c.gate.prove {
		return nil
	}
	c.gate.spins = map[string][]time.Duration{}
	c.warnings = append(c.warnings, fmt.Sprintf("a proof of -max %v: %s is compared with itself, slowed", c.gate.max,
		c.base))
	for _, w := range c.workloads {
		spec := c.spec(w, c.base)
		spec.Blocks = w.Blocks(versus.FewestBlocks)
		var p versus.Process
		record, err := versus.Run(ctx, spec, c.programs[build(c.base)][0])
		if err == nil {
			p, err = versus.ProcessOf(record)
		}
		switch {
		case ctx.Err() != nil:
			return errInterrupted
		case err != nil:
			return fmt.Errorf("rpcbench: run: -prove: %s: %s", w.Title, strings.TrimPrefix(err.Error(), "rpcbench: "))
		}
		own := p.Ns[0]
		if c.asksCPU(w) && p.CPUNs[0] > 0 {
			own = p.CPUNs[0]
		}
		c.gate.spins[w.Name] = []time.Duration{0, 0, time.Duration(2 * (c.gate.max - 1) * own)}
	}
	return nil
}

// countAll counts, and times nothing.
func (c *comparison) countAll(ctx context.Context, stdout, stderr io.Writer) (err error) {
	remove, err := c.link(ctx, progress(stderr))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	for i := range c.workloads {
		if w := &c.workloads[i]; w.Rate == workload.Auto {
			w.Rate = 1000 // since nobody looks for another
		}
	}
	all := c.campaign()
	c.look(ctx, all)
	if ctx.Err() != nil {
		return errInterrupted
	}
	for _, warning := range all.Warnings {
		fmt.Fprintf(stdout, "Warning: %s.\n", warning)
	}
	s := c.summary(c.header(), all.Comparisons)
	if len(all.Failures) > 0 || s.Counts() == nil {
		err = errors.New("rpcbench: run: not all was counted: " + strings.Join(append(all.Failures, all.Warnings...), "; "))
	}
	said, judged := c.judge(s)
	_, failed := io.WriteString(stdout, said)
	return errors.Join(err, judged, failed)
}

// judge is what the gate says, and its error. It appends both that and the tables to the summary of a step of GitHub
// Actions. An answer that a gate has no figure of fails, or a gate that sees nothing would stay green.
func (c *comparison) judge(s report.Summary) (said string, err error) {
	var lines, over, none []string
	if c.gate.max > 0 {
		lines, over = c.gate.times(s.Answers)
	}
	if c.gate.counts > 0 {
		said, more := c.gate.counted(s.Answers, c.workloads)
		lines, over = append(lines, said...), append(over, more...)
	}
	for _, a := range s.Answers {
		l := a.Leading()
		if c.gate.max > 0 && (l.Ratio == 0 || l.Busy) || c.gate.counts > 0 && (a.Facts == nil || a.BaseFacts == nil) {
			none = append(none, a.Does+", "+a.Stack)
		}
	}
	if len(none) > 0 {
		err = errors.New("rpcbench: run: the gate has no figure of " + strings.Join(none, "; "))
	}
	switch {
	case c.gate.prove && len(over) == len(s.Answers):
		lines = append(lines, "proved: it fires")
	case c.gate.prove:
		err = errors.New("rpcbench: run: -prove: the gate has not seen twice the excess that it allows: give more -time")
	case len(over) > 0:
		err = errors.Join(err, above{errors.New("rpcbench: run: above the gate: " + strings.Join(over, "; "))})
	}
	if len(lines) > 0 {
		said = strings.Join(lines, "\n") + "\n"
	}
	if name := os.Getenv("GITHUB_STEP_SUMMARY"); name != "" {
		if failed := step(name, s, said); failed != nil {
			said += fmt.Sprintf("Warning: the step has no summary: %s.\n", failed)
		}
	}
	return said, err
}

// step appends to the summary of a step.
func step(name string, s report.Summary, said string) error {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if s.Measured() {
		_, err = io.WriteString(file, s.Results().Markdown())
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
// Each line has the least ratio that would have been. Before them stands what is too imprecise for twice the excess.
func (g gate) times(answers []report.Answer) (lines, over []string) {
	var blind []string
	for _, a := range answers {
		a = a.Leading()
		name, verdict, floor := a.Does+", "+a.Stack, "not above", 1+a.NoiseFloor()
		if a.Ratio == 0 || a.Busy {
			why := "there is no ratio"
			if a.Busy {
				why = a.Reason
			}
			lines, blind = append(lines, "gate: "+name+": "+why), append(blind, name)
			continue
		}
		said := fmt.Sprintf("%s: %.3f (%.3f–%.3f)", name, a.Ratio, a.Lo, a.Hi)
		if a.Lo > g.max && a.Ratio > floor {
			verdict, over = "above", append(over, said)
		}
		least := max(g.max*math.Sqrt(a.Hi/a.Lo), floor)
		if least-1 > 2*(g.max-1) {
			blind = append(blind, name)
		}
		lines = append(lines, fmt.Sprintf("gate: %s is %s %v; it fires from %.3f on", said, verdict, g.max, least))
	}
	if len(blind) > 0 {
		lines = slices.Insert(lines, 0, fmt.Sprintf("gate: it could not have seen twice the excess that it allows, %.4g: "+
			"give more -time: %s", 2*g.max-1, strings.Join(blind, "; ")))
	}
	return lines, over
}

// counted says what was counted of each answer. What is above the gate by more than noise is over.
func (g gate) counted(answers []report.Answer, of []workload.Workload) (lines, over []string) {
	for _, a := range answers {
		name := a.Does + ", " + a.Stack
		w, err := workload.In(of, a.Workload)
		if a.Facts == nil || a.BaseFacts == nil {
			lines = append(lines, "gate: "+name+": nothing is counted")
			continue
		}
		var said []string
		for _, count := range counts {
			own, base := count.of(a.Facts), count.of(a.BaseFacts)
			both := fmt.Sprintf("%s %.2f (base %.2f)", count.name, own, base)
			said = append(said, both)
			if err == nil && exact(w) && own > g.counts*base && own-base >= count.noise {
				over = append(over, name+": "+both)
			}
		}
		if !exact(w) {
			said = append(said, "which depend on timing and pass")
		}
		lines = append(lines, "gate: "+name+": "+strings.Join(said, ", "))
	}
	return lines, over
}
