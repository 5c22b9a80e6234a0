package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/tcp"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/plan"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// answer links a plan's programs, has them measured, writes what was found, tidies up and prints. What was measured
// before a step that fails is written. A folder in which nothing was measured goes.
func answer(ctx context.Context, p plan.Plan, o options, stdout, stderr io.Writer) error {
	parts, out := takes(p), o.out
	ctx, clock := shell.NewClock(ctx, stderr, parts...)
	defer clock.End()
	clock.Spare = p.Spare()
	here := environ.List() // a folder of results would be a change of the source
	settings, err := reach(ctx, p)
	if err == nil {
		out, err = shell.Folder("run", out)
	}
	if err != nil {
		return err
	}
	crowded := crowds(ctx, p)
	for _, line := range crowded {
		if err == nil {
			err = clock.Say(line)
		}
	}
	if p.Warnings = append(slices.Clip(p.Warnings), crowded...); err != nil {
		return errors.Join(err, os.RemoveAll(out))
	}
	links := p.Links()
	links.Say = clock.Say
	if o.max > 0 {
		links.Judged = "-max"
	}
	l, err := links.Make(ctx, here, clock.Part())
	if err != nil {
		return errors.Join(err, os.RemoveAll(out))
	}
	f, err := measure(ctx, p, l, out, settings, clock)
	s, page := f.summary(p), filepath.Join(out, "report.html")
	raw, failed := os.ReadFile(filepath.Join(out, rawFile))
	switch s.Raw = string(raw); {
	case s.Measured():
		if failed == nil {
			failed = s.Save(out)
		}
		if failed == nil {
			failed = s.Write(out)
		}
		if failed != nil {
			err, page = errors.Join(err, failed), ""
		}
	case f.hung:
		err = fmt.Errorf("%w: see %s", err, out)
	case !strings.Contains(s.Raw, "\nBenchmark"): // else processes have measured, of which none counts
		err = errors.Join(err, os.RemoveAll(out))
	}
	err = errors.Join(err, l.Remove())
	said, judged := "", error(nil)
	if ctx.Err() == nil { // an interrupted run is not judged
		said, judged = o.max.judge(s, o.workloads.Chosen(), f.skipped)
	}
	// Printing comes last, since nobody may read it.
	err = errors.Join(err, printSummary(stdout, s, page, o.verbose), shell.SayAll(stdout, said))
	return with(err, judged)
}

// takes is how long the parts of a run take, about.
func takes(p plan.Plan) []time.Duration {
	looking, describing, likely := 0*time.Second, 0*time.Second, p.Likely()
	for _, w := range p.Sweep.Workloads {
		if w.Ordinary {
			looking += versus.LookTakes(w.At(likely[w.Name]))
		}
	}
	all := p.Campaign(nil, likely)
	if p.Stacks[0].Serves != "" {
		describing = 2 * explained(p.Time)
		if p.Servers == nil { // calls and handlers alone, whose slices are followed by collections, about as long
			describing += time.Duration(blocks*2*(len(p.Compared)+len(p.Also))) * 2 * slice
		}
	}
	return []time.Duration{p.Links().Takes(), looking, all.Takes(), plan.CountTakes(all), describing}
}

const (
	rawFile  = "bench.txt"      // has a row for each arm of each process, as go test -bench prints them
	hangFile = "goroutines.txt" // has what goroutines did of which a stack hung
)

// measure looks for the rates, measures, counts and describes. It keeps each process in bench.txt, and the summary so
// far, so that a run can be reported however it ends. With an error comes what was found before it.
func measure(ctx context.Context, p plan.Plan, l plan.Programs, out string, settings tcp.Settings,
	clock *shell.Clock) (f findings, err error) {
	f.linked, f.settings = l, settings
	if f.rates, f.warnings, err = lookForRates(ctx, p, l, clock.Part()); err != nil {
		return f, err
	}
	raw, err := os.Create(filepath.Join(out, rawFile))
	if err != nil {
		return f, fmt.Errorf("run: %w", err)
	}
	defer func() { err = errors.Join(err, raw.Close()) }()
	if _, err := io.WriteString(raw, heading(p, l)); err != nil {
		return f, fmt.Errorf("run: %w", err)
	}
	all := p.Campaign(l.Of, f.rates)
	f.comparisons, f.otherJSON = all.Comparisons, otherJSON(ctx, p, 20*time.Second)
	all.Show = clock.Part()
	all.Kept = func(one *versus.Comparison, r timing.Record) error {
		f.cross(one, r)
		return errors.Join(keep(raw, one, r), f.summary(p).Save(out))
	}
	all.Hung = func(what, goroutines string) error {
		f.hung = true
		return note(filepath.Join(out, hangFile), what+"\n\n"+goroutines+"\n\n")
	}
	all.Say = func(line string) error {
		_, failed := fmt.Fprintf(raw, "# %s\n", line)
		return errors.Join(failed, clock.Say(line))
	}
	for _, stack := range slices.Sorted(maps.Keys(f.otherJSON)) {
		err = errors.Join(err, all.Say(f.otherJSON[stack]))
	}
	if err == nil {
		err = all.Run(ctx)
	}
	if err == nil {
		if counting := clock.Part(); p.Servers == nil { // servers elsewhere count nothing
			f.facts = plan.Count(ctx, all, l.Of, counting)
		}
	}
	if err == nil && ctx.Err() == nil && f.summary(p).Measured() {
		err = f.describe(ctx, p, clock.Part())
	}
	return f.ended(ctx, p, all, err)
}

// note adds a text to a file.
func note(file, text string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// ended adds what of the plan there is no figure of. An interruption is the cause of all else that failed.
func (f findings) ended(ctx context.Context, p plan.Plan, all *versus.Campaign, err error) (findings, error) {
	f.skipped = all.Skipped()
	f.warnings = append(append(append(f.warnings, f.skipped...), all.Warnings...), all.Failures...)
	switch {
	case ctx.Err() != nil:
		f.warnings, err = append(f.warnings, "interrupted"), shell.ErrInterrupted
	case len(all.Failures) > 0:
		err = errors.Join(err, errors.New("run: "+strings.Join(all.Failures, "; ")))
	case err == nil && !f.summary(p).Measured():
		err = errors.New("run: nothing was measured: " +
			strings.Join(append(f.summary(p).Warnings, miscounted(all)...), "; "))
	}
	return f, err
}

// miscounted has a line for each comparison of which no process counts.
func miscounted(all *versus.Campaign) (lines []string) {
	for _, one := range all.Comparisons {
		if n := one.Answer(all.Plan).Processes.Miscounted; n > 0 && n == len(one.Found) {
			lines = append(lines, fmt.Sprintf("%s: in none of %d processes were the calls under way those of the callers: "+
				"%s; %s has what was measured", one, n, cmp.Or(throttled(environ.Machine(), n), "quiet the machine"), rawFile))
		}
	}
	return lines
}

// throttled says why calls under way may not be those of the callers in an environment with a quota of CPUs: it stops
// whole processes for most of each tenth of a second once they have used it up. It is "" where nothing was left out, or
// without a quota.
func throttled(environment []string, miscounted int) string {
	for _, line := range environment {
		if quota, is := strings.CutPrefix(line, "cpu-quota="); is && miscounted > 0 {
			return fmt.Sprintf("the quota of %s CPUs stops processes amid their calls: raise it, or plan calls with "+
				"-rate auto", quota)
		}
	}
	return ""
}

// lookForRates finds the rate of each workload at ordinary load, or warns that it is another.
func lookForRates(ctx context.Context, p plan.Plan, l plan.Programs, show shell.Show) (found map[string]float64,
	warnings []string, err error) {
	found = map[string]float64{}
	defer show("", 0)
	left := 0 * time.Second
	for _, w := range p.Sweep.Workloads {
		if w.Ordinary {
			left += versus.LookTakes(w.Workload)
		}
	}
	for _, planned := range p.Sweep.Workloads {
		if !planned.Ordinary {
			continue
		}
		w := planned.Workload
		show("looking at "+w.Title, left)
		left -= versus.LookTakes(w)
		rate, err := versus.Ordinary(ctx, versus.Run, p.Spec(w, p.Compared[0]), l.Of[p.Compared[0].Build][0])
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

// describe finds the messages and the layers of a method of one's own. Of create-user it has neither.
func (f *findings) describe(ctx context.Context, p plan.Plan, show shell.Show) (err error) {
	var warnings []string
	f.call, warnings, err = call(ctx, p)
	f.warnings = append(f.warnings, warnings...)
	if f.call != nil && err == nil && p.Servers == nil {
		f.layers, err = layersOf(ctx, p, show)
	}
	if err != nil && errors.Is(err, child.ErrNoSamples) { // told by a child: handlers wait
		f.warnings, err = append(f.warnings, "where the CPU time of a call goes is not known: "+err.Error()), nil
	}
	return err
}
