package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
)

func runCommand(p program, stdout, stderr io.Writer) command {
	var messages []string
	if p.make != nil {
		messages = []string{"Messages of yours: " + ownFlags}
	}
	return command{
		name: "run", tidies: true, args: " [stack[@build]...]",
		does:    "Compare stacks, or builds of them, with a base at each workload: about half an hour",
		example: "rpcbench run -out mine",
		groups: append([]string{
			"What is called: base workloads message payload stream headers",
			"How: rate callers conns new-connections tls unix apart link server gomaxprocs",
			"How long: quick time processes seed",
			"What is decided: equal max max-counts prove",
			"Where to: out",
		}, messages...),
		setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			c, m := comparison{program: p}, Messages{}
			m.flags(f)
			f.StringVar(&c.base, "base", "", "`stack` that the others are compared with: "+p.base()+
				", or the first if one names a build")
			f.StringVar(&c.out, "out", "", "new `folder` for what is measured")
			f.DurationVar(&c.time, "time", 8*time.Second,
				"for each stack at each workload, about, over all processes; builds take four times as long")
			f.IntVar(&c.processes, "processes", 8, fmt.Sprintf("for each comparison, at least %d", versus.Fewest))
			only := f.String("workloads", "", "`names`, separated by commas, of rpcbench list; all unless given")
			quick := f.Bool("quick", false,
				"a first answer in two minutes or so: five workloads, two seconds of each stack, this build alone")
			made := workloadFlags(f)
			f.StringVar(&c.server, "server", "",
				"`stack=host:port,...` of servers that run already, as rpcbench serve prints them")
			f.Float64Var(&c.equal, "equal", 100*versus.Margin, "`percent` by which stacks may differ that are called equal")
			f.Float64Var(&c.gate.max, "max", 0, "exit status 3 if a stack takes more than so many `times` as long: 1.05")
			f.Float64Var(&c.gate.counts, "max-counts", 0, "exit status 3 if it allocates, sends, receives or writes more than "+
				"so many `times`\nas much: 1.02; without -max no time is measured")
			f.BoolVar(&c.gate.prove, "prove", false, "see whether -max finds twice its excess: one stack is compared with "+
				"itself, slowed")
			f.Uint64Var(&c.seed, "seed", rand.Uint64N(1e6), "of the order of everything, and of the layouts")
			return func(ctx context.Context, args []string) error {
				typed := map[string]bool{}
				f.Visit(func(f *flag.Flag) { typed[f.Name] = true })
				own := slices.ContainsFunc(strings.Fields(ownFlags), func(name string) bool { return typed[name] })
				if own {
					if err := p.checkOwn(m); err != nil {
						return wrong("run: %w", err)
					}
					c.program = program{stacks: moduleStacks()}
				}
				var err error
				if c.sweep, err = made(); err == nil {
					err = c.take(args, *only, *quick, typed)
				}
				switch {
				case err != nil:
					return err
				case own:
					return p.runModule(ctx, m, f, c.out, stdout, stderr)
				}
				return c.answer(ctx, stdout, stderr)
			}
		},
	}
}

// take carries the command line over, or says what is wrong with it.
func (c *comparison) take(args []string, only string, quick bool, typed map[string]bool) error {
	own := c.sweep.workloads
	c.workloads, c.layouts = c.program.workloads(), min(8, c.processes)
	if quick {
		if typed["time"] || typed["processes"] {
			return wrong("run: -quick says how long: leave -time and -processes out")
		}
		few := workload.Quick
		if c.stacks[0].Method != "" {
			few = workload.QuickOwn
		}
		c.workloads, c.layouts = c.workloads[:min(few, len(c.workloads))], 0
		c.time, c.most = 2*time.Second, 150*time.Second
	}
	switch {
	case own != nil && typed["workloads"]:
		return wrong("run: -workloads names workloads, and the flags make one, %s: leave one of the two out", own[0].Name)
	case own != nil:
		c.workloads = own
	case typed["workloads"]:
		c.workloads = nil
		for name := range strings.SplitSeq(only, ",") {
			w, err := workload.In(c.program.workloads(), name)
			if err != nil {
				return wrongUse{err}
			}
			if slices.ContainsFunc(c.workloads, func(other workload.Workload) bool { return other.Name == name }) {
				return wrong("run: %s is named twice: once is enough", name)
			}
			c.workloads = append(c.workloads, w)
		}
	}
	if err := c.names(args); err != nil {
		return err
	}
	c.also = map[string][]string{}
	for name, at := range workload.Also() {
		_, unknown := c.find(name)
		if unknown == nil && len(args) == 0 && c.base == "httpjson" && !c.gate.prove && !typed["server"] &&
			(!quick || c.stacks[0].Method != "") {
			c.also[name] = at
		}
	}
	if typed["server"] {
		if err := c.elsewhere(c.server, typed["workloads"] || own != nil); err != nil {
			return err
		}
	}
	if err := c.gated(typed); err != nil || c.gate.alone() {
		return err
	}
	least := versus.FewestBlocks * versus.Turn * time.Duration(c.processes)
	switch {
	case c.out == "":
		return wrong("run: -out names the folder for what is measured")
	case c.processes < versus.Fewest:
		return wrong("run: %d processes are too few for a verdict: -processes %d or more", c.processes, versus.Fewest)
	case c.time < least:
		return wrong("run: %v over %d processes leave less than %d turns of %v in each: give -time %v or more",
			c.time, c.processes, versus.FewestBlocks, versus.Turn, least)
	}
	c.out = filepath.Clean(c.out)
	if _, missing := os.Lstat(c.out); missing == nil {
		return wrong("run: -out %s: it is there already: name another", c.out)
	}
	return nil
}

// answer measures every workload, and writes the files of the folder. A folder in which nothing was measured goes.
func (c *comparison) answer(ctx context.Context, stdout, stderr io.Writer) (err error) {
	if c.gate.alone() {
		return c.countAll(ctx, stdout, stderr)
	}
	if err := c.reach(ctx); err != nil {
		return err
	}
	if err := cmp.Or(os.MkdirAll(filepath.Dir(c.out), 0o755), os.Mkdir(c.out, 0o755)); err != nil {
		return fmt.Errorf("rpcbench: run: %w", err)
	}
	s := report.Summary{}
	defer func() {
		if !s.Measured() {
			err = errors.Join(err, os.RemoveAll(c.out))
		}
	}()
	remove, err := c.link(ctx, progress(stderr))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if err := c.rates(ctx, progress(stderr)); err != nil {
		return err
	}
	if err := c.slow(ctx); err != nil {
		return err
	}
	name := filepath.Join(c.out, "bench.txt")
	file, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("rpcbench: run: %w", err)
	}
	began := c.header()
	began.Costs = environ.Costs()
	if _, err := io.WriteString(file, c.heading(began.Costs)); err != nil {
		return errors.Join(fmt.Errorf("rpcbench: run: %w", err), file.Close())
	}
	all := c.campaign()
	all.Show = minutely(stderr, progress(stderr))
	all.Kept = func(one *versus.Comparison, r timing.Record) error {
		// so that a run can be reported however it ends
		return errors.Join(keep(file, one, r), c.summary(began, all.Comparisons).Save(c.out))
	}
	err = all.Run(ctx)
	if err == nil {
		c.look(ctx, all)
	}
	s = c.summary(began, all.Comparisons)
	if ctx.Err() == nil && err == nil && s.Measured() {
		if s.Call, err = c.call(ctx); s.Call != nil && err == nil && c.servers == nil {
			s.Layers, err = c.layers(ctx, progress(stderr))
		}
	}
	s.Warnings = append(append(s.Warnings, all.Warnings...), all.Failures...)
	if len(all.Failures) > 0 {
		err = errors.Join(err, errors.New("rpcbench: run: "+strings.Join(all.Failures, "; ")))
	}
	if err == nil && !s.Measured() {
		err = errors.New("rpcbench: run: nothing was measured: " + strings.Join(all.Warnings, "; "))
	}
	if ctx.Err() != nil {
		s.Warnings, err = append(s.Warnings, "interrupted"), errInterrupted
	}
	err = errors.Join(err, file.Close())
	if s.Measured() {
		raw, rawErr := os.ReadFile(name)
		s.Raw = string(raw)
		err = errors.Join(err, rawErr, s.Save(c.out), s.Write(c.out))
	}
	said := ""
	if ctx.Err() == nil {
		var judged error
		said, judged = c.judge(s)
		err = errors.Join(err, judged)
	}
	err = errors.Join(err, printSummary(stdout, s)) // last: a broken pipe ends the program
	_, failed := io.WriteString(stdout, said)
	return errors.Join(err, failed)
}

// look has a process of each build count bytes and allocations. Servers elsewhere count nothing.
func (c *comparison) look(ctx context.Context, all *versus.Campaign) {
	c.facts = map[[2]string]*workload.Facts{}
	for _, one := range all.Comparisons {
		w := one.Spec.Workload
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
			if said := fmt.Sprintf("%s, counting: %s", one, one.Left); strings.HasSuffix(said, errors.ErrUnsupported.Error()) {
				all.Warnings = append(all.Warnings, "skipped: "+said)
			} else if ctx.Err() == nil {
				all.Failures = append(all.Failures, said)
			}
		}
	}
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

// heading begins bench.txt.
func (c *comparison) heading(costs string) string {
	keys := "" // an address is none: it changes from run to run
	if c.servers != nil {
		keys = "server: remote\nproved: no\n"
	}
	return keys + fmt.Sprintf("# %s\n# %s\n# %s\n# base=%s seed=%d processes=%d layouts=%d %s\ngoos: %s\ngoarch: %s\n",
		strings.Join(asTyped(), " "), strings.Join(environ.List(), " "), costs, c.base, c.seed, c.processes, c.layouts,
		strings.Join(c.notes, " "), runtime.GOOS, runtime.GOARCH)
}

// keep writes a process as rows that benchstat reads, one for each arm.
func keep(w io.Writer, one *versus.Comparison, r timing.Record) error {
	p, arms, procs := one.Found[len(one.Found)-1], one.Spec.Arms, ""
	if n := cmp.Or(one.Spec.Procs, runtime.NumCPU()); n > 1 {
		procs = fmt.Sprintf("-%d", n)
	}
	named := func(stack string) string { return strings.ReplaceAll(stack, "/", ":") } // a slash would begin a key
	disturbed := 0.0
	if one.Disturbed(p) {
		disturbed = 1
	}
	var lines strings.Builder
	for arm, name := range []string{arms[0], arms[0] + ".again", arms[2]} {
		ops := 0
		for _, block := range r.Blocks {
			ops += block[arm].Ops
		}
		fmt.Fprintf(&lines, "BenchmarkRun/workload=%s/against=%s/stack=%s%s\t%d\t%.0f ns/op\t%.0f cpu-ns/op",
			one.Spec.Workload.Name, named(arms[2]), named(name), procs, ops, p.Ns[arm], p.CPUNs[arm])
		for _, metric := range []struct {
			value float64
			unit  string
		}{
			{[]float64{0, p.Copy, p.Ratio}[arm], "base-ratio"}, {[]float64{0, 0, p.ToCopy}[arm], "copy-ratio"},
			{[]float64{0, p.CPU.Copy, p.CPU.Ratio}[arm], "cpu-ratio"}, {[]float64{0, 0, p.CPU.ToCopy}[arm], "cpu-copy-ratio"},
			{p.ServerNs[arm], "server-cpu-ns/op"},
			{float64(p.Latencies[arm].P50), "p50-ns"}, {float64(p.Latencies[arm].P95), "p95-ns"},
			{float64(p.Latencies[arm].P99), "p99-ns"}, {float64(p.Latencies[arm].P999), "p999-ns"},
			{p.InFlight[arm], "in-flight"}, {float64(p.Layout), "layout"}, {100 * p.Others, "others-%"},
			{100 * p.Loads[arm].Free, "free-%"}, {p.Loads[arm].Switches, "switches/op"},
			{100 * p.Loads[arm].Reached, "reached-%"}, {100 * p.Loads[arm].Dropped, "dropped-%"},
			{p.Loads[arm].LateNs, "late-ns"}, {disturbed, "disturbed"},
		} {
			if metric.value > 0 {
				fmt.Fprintf(&lines, "\t%.6g %s", metric.value, metric.unit)
			}
		}
		lines.WriteString("\n")
	}
	if _, err := io.WriteString(w, lines.String()); err != nil {
		return fmt.Errorf("rpcbench: run: %w", err)
	}
	return nil
}

// header is the summary of what is to be measured.
func (c *comparison) header() report.Summary {
	return report.Summary{Release: report.Release, Command: strings.Join(asTyped(), " "), Environment: environ.List(),
		Notes: c.notes, Base: c.base, Estimator: versus.Estimator, Seed: c.seed, Processes: c.processes, Layouts: c.layouts,
		Warnings: slices.Clip(c.warnings), Remote: c.servers != nil, Over: lists[c.sweep.over]}
}

// summary adds what was found.
func (c *comparison) summary(s report.Summary, all []*versus.Comparison) report.Summary {
	others, n, told := 0.0, 0.0, false // whether Hour tells of others
	for _, one := range all {
		for _, p := range one.Found {
			others, n = others+p.Others, n+1
		}
		w, contestant := one.Spec.Workload, one.Spec.Arms[2]
		a := report.Answer{Workload: w.Name, Does: w.Title, Stack: contestant,
			GOMAXPROCS: cmp.Or(w.Procs, runtime.NumCPU()), Result: one.Result(c.plan())}
		if a.Facts = c.facts[[2]string{w.Name, contestant}]; a.Facts != nil {
			a.BaseFacts = c.facts[[2]string{w.Name, c.base}]
		}
		if c.sweep.over != "" {
			i := slices.IndexFunc(c.sweep.workloads, func(o workload.Workload) bool { return o.Name == w.Name })
			a.Value = c.sweep.values[i]
		}
		if c.asksCPU(w) {
			a.Leads = report.ByCPU
		}
		a.IdleNs, a.Rate = c.idle[w.Name], c.found[w.Name]
		s.Answers, told = append(s.Answers, a), told || a.Others > versus.BusyMachine
		if w.Callers > 1 && w.Procs == 0 && runtime.NumCPU() == 1 {
			s.Warnings = append(s.Warnings, w.Title+": the machine has one core, so callers take turns")
		}
	}
	if others > n*versus.BusyMachine && !told {
		s.Warnings = append(s.Warnings, fmt.Sprintf("other programs used %.0f %% of the machine meanwhile", 100*others/n))
	}
	return s
}

// asksCPU says whether an answer leads by CPU time. All of a sweep do if one does, or its ratios were of two things.
func (c *comparison) asksCPU(w workload.Workload) bool {
	asks := w.AsksCPU()
	if c.sweep.over != "" {
		asks = slices.ContainsFunc(c.sweep.workloads, workload.Workload.AsksCPU)
	}
	return asks && c.servers == nil
}

func printSummary(w io.Writer, s report.Summary) error {
	if hour := s.Hour(); hour != "" {
		fmt.Fprintln(w, hour)
	}
	err := s.Results().Text(w)
	if loads := s.Loads(); loads != nil {
		fmt.Fprintln(w)
		err = errors.Join(err, loads.Text(w))
	}
	for _, warning := range s.Warnings {
		fmt.Fprintf(w, "\nWarning: %s.", warning)
	}
	_, failed := fmt.Fprintln(w)
	return errors.Join(err, failed)
}
