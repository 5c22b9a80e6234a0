package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/explain/layers"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// answer links a plan's programs, has them measured, writes what was found, tidies up and prints. What was measured
// before a step that fails is written. A folder in which nothing was measured goes.
func (p plan) answer(ctx context.Context, out string, verbose bool, stdout, stderr io.Writer) error {
	ctx, clock := shell.NewClock(ctx, stderr, p.parts()...)
	defer clock.End()
	clock.Spare = p.spare()
	if p.gate.countsOnly() {
		return p.countAll(ctx, stdout, clock)
	}
	here := environ.List() // a folder of results would be a change of the source
	err := p.reach(ctx)
	if err == nil && os.Getenv(report.Typed) == "" { // else a parent rpcbench made it for us
		out, err = shell.Folder(out)
	}
	if err != nil {
		return err
	}
	l, err := p.link(ctx, here, clock.Part())
	if err != nil {
		return errors.Join(err, os.RemoveAll(out))
	}
	f, err := p.run(ctx, l, out, clock)
	s, page := p.summary(f), filepath.Join(out, "report.html")
	raw, failed := os.ReadFile(filepath.Join(out, rawFile))
	switch s.Raw = string(raw); {
	case s.Measured():
		if failed = cmp.Or(failed, s.Save(out), s.Write(out)); failed != nil { // a full disk fails all in one way
			err, page = errors.Join(err, failed), ""
		}
	case !strings.Contains(s.Raw, "\nBenchmark"): // else processes have measured, of which none counts
		err = errors.Join(err, os.RemoveAll(out))
	}
	err = errors.Join(err, l.remove())
	said, judged := "", error(nil)
	if ctx.Err() == nil { // an interrupted run is not judged
		said, judged = p.gate.judge(s, p.workloads, f.skipped)
	}
	// Printing comes last, since nobody may read it.
	err = errors.Join(err, printSummary(stdout, s, page, verbose), shell.SayAll(stdout, said))
	return with(err, judged)
}

const rawFile = "bench.txt" // has a row for each arm of each process, as go test -bench prints them

// run looks for the rates, measures, counts and describes. It keeps each process in bench.txt, and the summary so far,
// so that a run can be reported however it ends. With an error comes what was found before it.
func (p plan) run(ctx context.Context, l linked, out string, clock *shell.Clock) (f findings, err error) {
	f.linked = l
	if f.rates, f.warnings, err = p.lookForRates(ctx, l, clock.Part()); err != nil {
		return f, err
	}
	raw, err := os.Create(filepath.Join(out, rawFile))
	if err != nil {
		return f, fmt.Errorf("run: %w", err)
	}
	defer func() { err = errors.Join(err, raw.Close()) }()
	if _, err := io.WriteString(raw, p.heading(l)); err != nil {
		return f, fmt.Errorf("run: %w", err)
	}
	all := p.campaign(l.programs, f.rates)
	f.comparisons = all.Comparisons
	all.Show = clock.Part()
	all.Kept = func(one *versus.Comparison, r timing.Record) error {
		return errors.Join(keep(raw, one, r), p.summary(f).Save(out))
	}
	all.Say = func(line string) error {
		_, failed := fmt.Fprintf(raw, "# %s\n", line)
		return errors.Join(failed, clock.Say(line))
	}
	if err = all.Run(ctx); err == nil {
		f.facts = p.count(ctx, l, all, clock.Part())
	}
	if err == nil && ctx.Err() == nil && p.summary(f).Measured() {
		err = p.describe(ctx, &f, clock.Part())
	}
	return p.ended(ctx, f, all, err)
}

// ended adds what of the plan there is no figure of. An interruption is the cause of all else that failed.
func (p plan) ended(ctx context.Context, f findings, all *versus.Campaign, err error) (findings, error) {
	f.skipped = all.Skipped()
	f.warnings = append(append(append(f.warnings, f.skipped...), all.Warnings...), all.Failures...)
	switch {
	case ctx.Err() != nil:
		f.warnings, err = append(f.warnings, "interrupted"), shell.ErrInterrupted
	case len(all.Failures) > 0:
		err = errors.Join(err, errors.New("run: "+strings.Join(all.Failures, "; ")))
	case err == nil && !p.summary(f).Measured():
		err = errors.New("run: nothing was measured: " +
			strings.Join(append(p.summary(f).Warnings, miscounted(all)...), "; "))
	}
	return f, err
}

// miscounted has a line for each comparison of which no process counts.
func miscounted(all *versus.Campaign) (lines []string) {
	for _, one := range all.Comparisons {
		if n := one.Answer(all.Plan).Processes.Miscounted; n > 0 && n == len(one.Found) {
			lines = append(lines, fmt.Sprintf("%s: in none of %d processes were the calls under way those of the callers: "+
				"quiet the machine; %s has what was measured", one, n, rawFile))
		}
	}
	return lines
}

// lookForRates finds the rate of each workload at ordinary load, or warns that it is another.
func (p plan) lookForRates(ctx context.Context, l linked, show shell.Show) (found map[string]float64, warnings []string,
	err error) {
	found = map[string]float64{}
	defer show("", 0)
	left := 0 * time.Second
	for _, w := range p.workloads {
		if w.Ordinary {
			left += versus.LookTakes(w.At(nil))
		}
	}
	for _, planned := range p.workloads {
		if !planned.Ordinary {
			continue
		}
		w := planned.At(nil)
		show("looking at "+w.Title, left)
		left -= versus.LookTakes(w)
		rate, err := versus.Ordinary(ctx, versus.Run, p.spec(w, p.base), l.programs[build(p.base)][0])
		switch {
		case ctx.Err() != nil:
			return nil, nil, shell.ErrInterrupted
		case err != nil:
			warnings = append(warnings, fmt.Sprintf("%s: no ordinary load was found, so it is %v calls a second: %s",
				w.Title, w.Rate, err))
		default:
			found[w.Name] = rate
		}
	}
	return found, warnings, nil
}

// count has a process of each build count bytes and allocations. Servers elsewhere count nothing.
func (p plan) count(ctx context.Context, l linked, all *versus.Campaign, show shell.Show) (
	facts map[[2]string]*workload.Facts) {
	facts, left := map[[2]string]*workload.Facts{}, 0*time.Second
	for _, one := range all.Comparisons {
		left += counted(one)
	}
	defer show("", 0)
	for _, one := range all.Comparisons {
		w := one.Spec.Workload
		show("counting, "+one.String(), left)
		left -= counted(one)
		for _, name := range one.Spec.Arms[1:] {
			key := [2]string{w.Name, name}
			if one.Left != "" && one.TooFast() < 2 || p.servers != nil || facts[key] != nil || ctx.Err() != nil {
				continue
			}
			seen, err := versus.Count(ctx, name, w, l.programs[build(name)][0])
			if err == nil {
				facts[key] = &seen
				continue
			}
			one.Left = err.Error()
			if one.Cant = errors.Is(err, errors.ErrUnsupported); !one.Cant && ctx.Err() == nil {
				all.Failures = append(all.Failures, fmt.Sprintf("%s, counting: %s", one, one.Left))
			}
		}
	}
	return facts
}

// describe finds the messages and the layers of a method of one's own. Of create-user it has neither.
func (p plan) describe(ctx context.Context, f *findings, show shell.Show) (err error) {
	var warnings []string
	f.call, warnings, err = p.call(ctx)
	f.warnings = append(f.warnings, warnings...)
	if f.call != nil && err == nil && p.servers == nil {
		f.layers, err = p.layers(ctx, show)
	}
	if err != nil && strings.Contains(err.Error(), layers.ErrNoSamples.Error()) { // told by a child: handlers wait
		f.warnings, err = append(f.warnings, "where the CPU time of a call goes is not known: "+err.Error()), nil
	}
	return err
}
