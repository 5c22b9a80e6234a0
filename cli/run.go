package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
)

func runCommand(p program, stdout, stderr io.Writer) command {
	return command{
		name: "run", args: " [stack[@build]...]", does: "Answer gRPC or JSON for a dozen workloads, in about ten minutes",
		example: "rpcbench run -out mine",
		setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			c := comparison{program: p, fewest: 4, processes: 8, layouts: 8, time: 8 * time.Second, margin: 100 * versus.Margin, workloads: workload.All()}
			f.StringVar(&c.base, "base", "", "`stack` that the others are compared with: "+p.base()+", or the first if one names a build")
			f.StringVar(&c.out, "out", "", "new `folder` for what is measured")
			only := f.String("workloads", "", "`names`, separated by commas, of rpcbench list; all unless given")
			quick := f.Bool("quick", false, "a first answer in a minute or two: six workloads, four processes, this build alone")
			f.Uint64Var(&c.seed, "seed", rand.Uint64N(1e6), "of the order of everything, and of the layouts")
			return func(ctx context.Context, args []string) error {
				if *quick {
					c.processes, c.layouts, c.time, c.workloads = 4, 0, 2*time.Second, c.workloads[:workload.Quick]
				}
				if *only != "" {
					c.workloads = nil
					for _, name := range strings.Split(*only, ",") {
						w, err := workload.Find(name)
						if err != nil {
							return wrongUse{err}
						}
						if slices.ContainsFunc(c.workloads, func(other workload.Workload) bool { return other.Name == name }) {
							return wrong("run: %s is named twice: once is enough", name)
						}
						c.workloads = append(c.workloads, w)
					}
				}
				return c.answer(ctx, args, stdout, stderr)
			}
		},
	}
}

// answer measures every workload, and writes the files of the folder.
func (c *comparison) answer(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if err := c.names("run", args, c.program.contestants()); err != nil {
		return err
	}
	switch _, missing := os.Stat(c.out); {
	case c.out == "":
		return wrong("run: -out names the folder for what is measured")
	case missing == nil:
		return wrong("run: -out %s: it is there already: name another", c.out)
	}
	load := loadAverage()
	if err := os.MkdirAll(filepath.Dir(c.out), 0o755); err != nil {
		return fmt.Errorf("rpcbench: run: %w", err)
	}
	if err := os.Mkdir(c.out, 0o755); err != nil {
		return fmt.Errorf("rpcbench: run: %w", err)
	}
	remove, err := c.link(ctx, progress(stderr))
	if err != nil {
		return errors.Join(err, os.Remove(c.out))
	}
	file, err := os.Create(filepath.Join(c.out, "bench.txt"))
	if err != nil {
		return errors.Join(err, remove())
	}
	groups, err := c.run(ctx, minutely(stderr, progress(stderr)), c.benchmarkFormat(file))
	if ctx.Err() == nil {
		err = errors.Join(err, c.look(ctx, groups))
	}
	s := c.summary(groups, load)
	if err != nil {
		s.Warnings = append(s.Warnings, strings.TrimPrefix(err.Error(), "rpcbench: "))
	}
	text, jsonErr := json.MarshalIndent(s, "", "\t")
	err = errors.Join(err, file.Close(), jsonErr, os.WriteFile(filepath.Join(c.out, "summary.json"), append(text, '\n'), 0o644), remove())
	if s.Measured() {
		s, readErr := report.Read(c.out)
		if readErr == nil {
			readErr = s.Write(c.out)
		}
		err = errors.Join(err, readErr)
	}
	return errors.Join(err, printSummary(stdout, s)) // last: a broken pipe ends the program
}

// look counts what the calls of each group do beside taking time. Another build's calls would not be these.
func (c *comparison) look(ctx context.Context, groups []*group) error {
	bases, failed := map[string]*workload.Facts{}, []error{}
	for _, g := range groups {
		if g.failed || build(g.arms[2]) != "" || build(c.base) != "" {
			continue
		}
		both, err := c.find(c.base, g.arms[2])
		if err != nil {
			return err
		}
		for i, stack := range both {
			facts := bases[g.Name]
			if i == 1 || facts == nil {
				seen, err := g.Look(ctx, stack)
				if ctx.Err() != nil {
					return errInterrupted
				}
				if err != nil {
					failed = append(failed, fmt.Errorf("rpcbench: run: %s, %s: %w", stack.Name, g.Does, err))
					break
				}
				facts = &seen
			}
			if i == 0 {
				bases[g.Name], g.baseFacts = facts, facts
			} else {
				g.facts = facts
			}
		}
	}
	return errors.Join(failed...)
}

// minutely tells on a stream that is no terminal how long it will take, and once a minute how much is left.
func minutely(w io.Writer, terminal show) show {
	var last time.Time
	return func(what string, left, all time.Duration) {
		terminal(what, left, all)
		if file, ok := w.(*os.File); ok && left > 0 && time.Since(last) >= time.Minute && !isTerminal(file) {
			fmt.Fprintf(w, "rpcbench: %v left of about %v: %s\n", left.Round(time.Second), all.Round(time.Second), what)
			last = time.Now()
		}
	}
}

// benchmarkFormat returns what writes each process as lines that benchstat reads, one for each arm.
func (c *comparison) benchmarkFormat(w io.Writer) keep {
	return func(g *group, r *timing.Record) error {
		if g == nil {
			_, err := fmt.Fprintf(w, "# %s\n# %s\n# base=%s seed=%d processes=%d layouts=%d %s\ngoos: %s\ngoarch: %s\n", strings.Join(asTyped(), " "),
				strings.Join(environ.List(), " "), c.base, c.seed, c.processes, c.layouts, strings.Join(c.notes, " "), runtime.GOOS, runtime.GOARCH)
			return err
		}
		procs := ""
		if n := cmp.Or(g.Procs, runtime.NumCPU()); n > 1 {
			procs = fmt.Sprintf("-%d", n)
		}
		for arm, name := range []string{g.arms[0], g.arms[0] + ".again", g.arms[2]} {
			ops := 0
			for _, block := range r.Blocks {
				ops += block[arm].Ops
			}
			row := func(stack string) string { return strings.ReplaceAll(stack, "/", ":") } // a slash would begin a key
			if _, err := fmt.Fprintf(w, "BenchmarkRun/workload=%s/against=%s/stack=%s%s\t%d\t%.0f ns/op\t%.0f cpu-ns/op",
				g.Name, row(g.arms[2]), row(name), procs, ops, r.NsPerOp(arm), r.CPUNsPerOp(arm)); err != nil {
				return err
			}
			if i, err := r.Ratio(arm, 0, 0.5); err == nil {
				fmt.Fprintf(w, "\t%.4f base-ratio", i.Median)
			}
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		return nil
	}
}

func (c *comparison) summary(groups []*group, load float64) report.Summary {
	s := report.Summary{Release: report.Release, Command: strings.Join(asTyped(), " "), Environment: environ.List(), Notes: c.notes,
		Base: c.base, Seed: c.seed, Processes: c.processes, Layouts: c.layouts}
	if share := load / float64(runtime.NumCPU()); share > 0.3 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("the machine was busy at the start: a load average of %.1f on %d cores", load, runtime.NumCPU()))
	}
	moved := 0
	for _, g := range groups {
		r := c.result(g, 0.95)
		a := report.Answer{
			Workload: g.Name, Does: g.Does, Bytes: g.Bytes, GOMAXPROCS: cmp.Or(g.Procs, runtime.NumCPU()), Stack: r.name, Processes: r.processes,
			BaseNs: finite(r.base.NsPerOp), BaseCPUNs: finite(r.base.CPUNsPerOp), Ns: finite(r.arm.NsPerOp), CPUNs: finite(r.arm.CPUNsPerOp),
			Moved: r.base.Moved, Verdict: r.verdict, BaseFacts: g.baseFacts, Facts: g.facts,
		}
		for _, record := range g.records {
			a.Bases = append(a.Bases, math.Round(finite(record.NsPerOp(0))))
		}
		if i := r.arm.Ratio; min(i.Blocks, r.again.Ratio.Blocks) >= c.fewest {
			a.Ratio, a.Lo, a.Hi, a.Floor = i.Median, i.Lo, i.Hi, r.again.Ratio.Floor()
		}
		if r.base.Moved > versus.Steady {
			moved++
		}
		if g.Many() && g.Procs == 0 && runtime.NumCPU() > 1 && a.BaseCPUNs > 0 && a.BaseCPUNs < 1.15*a.BaseNs {
			s.Warnings = append(s.Warnings, fmt.Sprintf("%s: only one core was to be had (CPU time is hardly more than wall time)", g.Name))
		}
		s.Answers = append(s.Answers, a)
	}
	if moved > 0 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("the machine was not quiet: the base moved by more than %.0f %% in %d of %d comparisons, "+
			"where smaller differences than its movement are undecided", 100*versus.Steady, moved, len(groups)))
	}
	return s
}

// finite is 0 for what no process has measured.
func finite(ns float64) float64 {
	if math.IsNaN(ns) {
		return 0
	}
	return ns
}

// loadAverage is the load of the last minute, 0 where the system does not tell.
func loadAverage() (load float64) {
	text, _ := os.ReadFile("/proc/loadavg")
	_, _ = fmt.Sscan(string(text), &load)
	return load
}

func printSummary(w io.Writer, s report.Summary) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "workload\tGOMAXPROCS\t%s µs\tstack\tµs\tratio\t95 %% interval\tverdict\n", s.Base)
	for _, a := range s.Answers {
		ratio, interval := "", ""
		if a.Ratio > 0 {
			ratio, interval = fmt.Sprintf("%.2f", a.Ratio), fmt.Sprintf("%.2f–%.2f", a.Lo, a.Hi)
		}
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%s\t%.1f\t%s\t%s\t%s\n", a.Does, a.GOMAXPROCS, a.BaseNs/1000, a.Stack, a.Paired()/1000, ratio, interval, a.Said(s.Processes))
	}
	for _, warning := range s.Warnings {
		fmt.Fprintf(t, "\nWarning: %s.", warning)
	}
	fmt.Fprintln(t)
	return t.Flush()
}
