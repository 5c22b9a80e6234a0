package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report"
)

// answer is a run: it links, measures, counts, describes, decides, writes, tidies up and prints. A step that fails
// leaves out what needs it, and what was measured before is written. A folder in which nothing was measured goes.
func (c *comparison) answer(ctx context.Context, stdout, stderr io.Writer) error {
	ctx, clock := newClock(ctx, stderr, c.parts()...)
	defer clock.end()
	if c.gate.alone() {
		return c.countAll(ctx, stdout, clock)
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	if procs := os.Getenv("GOMAXPROCS"); procs != "" {
		c.warnings = append(c.warnings, "the variable GOMAXPROCS="+procs+" has no effect, because each workload has "+
			"its own: "+
			"-gomaxprocs sets it")
	}
	f := found{comparison: c, clock: clock}
	if f.remove, f.err = c.link(ctx, f.clock.part()); f.err == nil {
		f.err = f.prepare(ctx)
	}
	if f.err != nil {
		f.tidy()
		return f.err
	}
	f.measure(ctx)
	f.count(ctx)
	f.describe(ctx)
	f.decide(ctx)
	f.write()
	f.tidy()
	f.print(ctx, stdout)
	return f.err
}

// open makes the folder, once all servers elsewhere have answered.
func (c *comparison) open(ctx context.Context) error {
	if err := c.reach(ctx); err != nil || os.Getenv(report.Typed) != "" { // whose command has made it
		return err
	}
	return c.folder()
}

// folder makes the one that is named, or one named by day and minute: another than each run that began in that minute.
func (c *comparison) folder() (err error) {
	named, now := c.out != "", time.Now().Format("rpcbench-2006-01-02-1504")
	for n := 1; n == 1 || !named && errors.Is(err, fs.ErrExist); n++ {
		if !named {
			c.out = strings.TrimSuffix(fmt.Sprintf("%s-%d", now, n), "-1")
		}
		err = os.Mkdir(c.out, 0o755)
	}
	if err != nil {
		return fmt.Errorf("rpcbench: run: %w: -out names another folder", err)
	}
	return nil
}

// found is what a run has found so far, and all that failed.
type found struct {
	*comparison
	report.Summary
	began  report.Summary // without answers
	all    *versus.Campaign
	bench  *os.File     // bench.txt
	remove func() error // of what was linked; nil if nothing was
	clock  *clock
	err    error
}

// prepare looks for the rates, and begins bench.txt.
func (f *found) prepare(ctx context.Context) (err error) {
	if err := f.rates(ctx, f.clock.part()); err != nil {
		return err
	}
	if f.bench, err = os.Create(filepath.Join(f.out, "bench.txt")); err != nil {
		return fmt.Errorf("rpcbench: run: %w", err)
	}
	f.began = f.header()
	if _, err := io.WriteString(f.bench, f.heading()); err != nil {
		return errors.Join(fmt.Errorf("rpcbench: run: %w", err), f.bench.Close())
	}
	return nil
}

// measure keeps each process in bench.txt, and the summary so far, so that a run can be reported however it ends.
func (f *found) measure(ctx context.Context) {
	f.all = f.campaign()
	f.all.Show = f.clock.part()
	f.all.Kept = func(one *versus.Comparison, r timing.Record) error {
		return errors.Join(keep(f.bench, one, r), f.summary(f.began, f.all.Comparisons).Save(f.out))
	}
	f.err = f.all.Run(ctx)
}

// count adds bytes and allocations.
func (f *found) count(ctx context.Context) {
	if f.err == nil {
		f.look(ctx, f.all, f.clock.part())
	}
	f.Summary = f.summary(f.began, f.all.Comparisons)
}

// describe adds the messages and the layers of a method of one's own.
func (f *found) describe(ctx context.Context) {
	if ctx.Err() != nil || f.err != nil || !f.Measured() {
		return
	}
	if f.Call, f.err = f.call(ctx); f.Call != nil && f.err == nil && f.servers == nil {
		f.Layers, f.err = f.layers(ctx, f.clock.part())
	}
}

// decide says what of the plan there is no figure of. An interruption is the cause of all else that failed.
func (f *found) decide(ctx context.Context) {
	f.Warnings = slices.Concat(f.Warnings, f.all.Skipped(), f.all.Warnings, f.all.Failures)
	if len(f.all.Failures) > 0 {
		f.err = errors.Join(f.err, errors.New("rpcbench: run: "+strings.Join(f.all.Failures, "; ")))
	}
	if f.err == nil && !f.Measured() {
		f.err = errors.New("rpcbench: run: nothing was measured: " + strings.Join(f.Warnings, "; "))
	}
	if ctx.Err() != nil {
		f.Warnings, f.err = append(f.Warnings, "interrupted"), errInterrupted
	}
}

// write ends bench.txt, and makes the summary and the report.
func (f *found) write() {
	f.err = errors.Join(f.err, f.bench.Close())
	if f.Measured() {
		raw, err := os.ReadFile(f.bench.Name())
		f.Raw = string(raw)
		f.err = errors.Join(f.err, err, f.Save(f.out), f.Write(f.out))
	}
}

// tidy deletes what was linked, and the folder if nothing was measured.
func (f *found) tidy() {
	if f.remove != nil {
		f.err = errors.Join(f.err, f.remove())
	}
	if !f.Measured() {
		f.err = errors.Join(f.err, os.RemoveAll(f.out))
	}
}

// print comes last, since nobody may read what it writes. An interrupted run is not judged.
func (f *found) print(ctx context.Context, stdout io.Writer) {
	said, judged := "", error(nil)
	if ctx.Err() == nil {
		said, judged = f.judge(f.Summary, f.all)
	}
	f.err = errors.Join(f.err, printSummary(stdout, f.Summary, f.out, f.verbose))
	f.err = with(errors.Join(f.err, sayAll(stdout, said)), judged)
}

// look has a process of each build count bytes and allocations. Servers elsewhere count nothing.
func (c *comparison) look(ctx context.Context, all *versus.Campaign, show show) {
	c.facts = map[[2]string]*workload.Facts{}
	left := c.counting()
	defer show("", 0)
	for _, one := range all.Comparisons {
		w := one.Spec.Workload
		show("counting, "+one.String(), left)
		left -= counted(one)
		for _, name := range one.Spec.Arms[1:] {
			key := [2]string{w.Name, name}
			if one.Left != "" || c.servers != nil || c.facts[key] != nil || ctx.Err() != nil {
				continue
			}
			seen, err := versus.Count(ctx, versus.Spec{Arms: []string{name}, Workload: w}, c.programs[build(name)][0])
			if err == nil {
				c.facts[key] = &seen
				continue
			}
			one.Left = strings.TrimPrefix(err.Error(), "rpcbench: ")
			if one.Cant = strings.HasSuffix(one.Left, errors.ErrUnsupported.Error()); !one.Cant && ctx.Err() == nil {
				all.Failures = append(all.Failures, fmt.Sprintf("%s, counting: %s", one, one.Left))
			}
		}
	}
}
