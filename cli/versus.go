package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rpcbench/rpcbench/cli/internal/builds"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
)

var errInterrupted = errors.New("rpcbench: interrupted")

// comparison is what versus was asked for. A contestant is stack[@build].
type comparison struct {
	program
	base                      string
	contestants               []string
	time                      time.Duration
	processes, layouts, procs int
	margin                    float64
	seed                      uint64
	out                       string // a file for the records

	workloads []workload.Workload // none: a small call, with procs
	fewest    int                 // processes or layouts for a verdict
	wanted    bool                // layouts were asked for by name
	apart     bool                // each arm has a process of its own, also where builds are the same

	programs map[string][]versus.Program // of each build, one per layout
	notes    []string                    // on what is measured
}

func versusCommand(p program, stdout, stderr io.Writer) command {
	return command{
		name: "versus", args: " [stack[@build]...]", does: "Compare stacks, or builds of them, with a base, slice by slice in several processes",
		example: "rpcbench versus -time 10s grpcprotobuf",
		setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			c := comparison{program: p, fewest: versus.Fewest}
			f.StringVar(&c.base, "base", "", "`stack` that the others are compared with: "+p.base()+", or the first if one names a build")
			f.DurationVar(&c.time, "time", 20*time.Second, "for each stack, about, over all processes")
			f.IntVar(&c.processes, "processes", 16, fmt.Sprintf("for each comparison, at least %d", versus.Fewest))
			f.IntVar(&c.layouts, "layouts", 8, "links of each build that the processes are spread over; 0 measures this program as it is")
			f.IntVar(&c.procs, "gomaxprocs", 1, "GOMAXPROCS of the measuring processes: 1 is CPU work only, 0 all cores")
			f.Float64Var(&c.margin, "margin", 100*versus.Margin, "difference in `percent` that counts as equal")
			f.Uint64Var(&c.seed, "seed", rand.Uint64N(1e6), "of the order of the slices, and of the layouts")
			f.StringVar(&c.out, "o", "", "new `file` for what each process measures, as lines of JSON")
			return func(ctx context.Context, args []string) error {
				f.Visit(func(typed *flag.Flag) { c.wanted = c.wanted || typed.Name == "layouts" && c.layouts > 0 })
				if err := c.check(args); err != nil {
					return err
				}
				remove, err := c.link(ctx, progress(stderr))
				if err != nil {
					return err
				}
				groups, err := c.measure(ctx, progress(stderr))
				return errors.Join(err, c.print(stdout, groups), remove())
			}
		},
	}
}

// build is the part of a contestant's name after the stack's.
func build(contestant string) string {
	_, build, _ := strings.Cut(contestant, "@")
	return build
}

// arms are the base, its copy and a contestant.
func (c *comparison) arms(contestant string) []string { return []string{c.base, c.base, contestant} }

// names takes the base and the contestants from the arguments, or the contestants from otherwise.
func (c *comparison) names(command string, args, otherwise []string) error {
	switch {
	case c.base != "":
	case slices.ContainsFunc(args, func(name string) bool { return strings.Contains(name, "@") }):
		c.base, args = args[0], args[1:]
	default:
		c.base = c.program.base()
	}
	if len(args) == 0 && build(c.base) == "" {
		args = otherwise
	}
	var names []string
	for _, name := range append([]string{c.base}, args...) {
		stack, build, named := strings.Cut(name, "@")
		if names = append(names, stack); named && build == "" {
			return wrong("%s: %s names no build: see rpcbench help", command, name)
		}
		if err := builds.Check(build); err != nil {
			return wrong("%s: %w", command, err)
		}
	}
	if _, err := c.find(names...); err != nil {
		return err
	}
	c.contestants = slices.DeleteFunc(slices.Clone(args), func(name string) bool { return name == c.base })
	for i, name := range c.contestants {
		if slices.Contains(c.contestants[:i], name) {
			return wrong("%s: %s is named twice: once is enough", command, name)
		}
	}
	if len(c.contestants) == 0 {
		return wrong("%s: nothing to compare with %s: name another stack", command, c.base)
	}
	return nil
}

func (c *comparison) check(args []string) error {
	variant := func(name string) bool { return strings.Contains(name, ".") }
	if err := c.names("versus", args, slices.DeleteFunc(c.program.names(), variant)); err != nil {
		return err
	}
	_, missing := os.Stat(c.out)
	switch least := versus.FewestBlocks * versus.Turn * time.Duration(c.processes); {
	case missing == nil:
		return wrong("versus: -o %s: there is such a file already: name another", c.out)
	case c.processes < versus.Fewest:
		return wrong("versus: %d processes are too few for an interval: -processes %d or more", c.processes, versus.Fewest)
	case c.layouts != 0 && (c.layouts < versus.Fewest || c.layouts > c.processes):
		return wrong("versus: %d layouts for %d processes: give 0, or -layouts from %d to %[2]d", c.layouts, c.processes, versus.Fewest)
	case c.procs < 0 || c.procs > runtime.NumCPU():
		return wrong("versus: -gomaxprocs %d on a machine of %d cores: use 1, or 0 for the default", c.procs, runtime.NumCPU())
	case !(c.margin > 0):
		return wrong("versus: a margin of %v %% leaves nothing equal: use 2 or so", c.margin)
	case c.time < least:
		return wrong("versus: %v over %d processes leave less than %d turns of %v in each: give -time %v or more",
			c.time, c.processes, versus.FewestBlocks, versus.Turn, least)
	}
	return nil
}

// link makes all programs before anything is measured. remove deletes them.
func (c *comparison) link(ctx context.Context, show show) (remove func() error, err error) {
	c.programs = map[string][]versus.Program{}
	var all []string
	for _, name := range append([]string{c.base}, c.contestants...) {
		if !slices.Contains(all, build(name)) {
			all = append(all, build(name))
		}
	}
	seeds, random := make([]uint64, max(1, c.layouts)), rand.New(rand.NewPCG(c.seed, 1))
	for i := range seeds {
		if c.layouts > 0 {
			seeds[i] = 1 + random.Uint64N(1e9)
		}
	}
	named := slices.ContainsFunc(all, func(build string) bool { return build != "" })
	folder, err := builds.Open(ctx, c.main)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, errInterrupted
	case named && err != nil:
		return nil, fmt.Errorf("rpcbench: no build can be made: %w", err)
	case c.wanted && err != nil:
		return nil, fmt.Errorf("rpcbench: no layouts can be linked, which -layouts 0 does without: %w", err)
	case err != nil:
		c.notes = append(c.notes, "the intervals are of this build, not of its source: "+err.Error())
	case c.layouts == 0 && !named:
		c.notes = append(c.notes, "the intervals are of this build, not of its source: no layouts were linked")
		err = folder.Remove()
	}
	if len(c.notes) > 0 {
		c.layouts, c.programs[""] = 0, []versus.Program{self()}
		return func() error { return nil }, nil
	}
	defer show("", 0, 0)
	here := environ.List()
	for i, build := range all {
		each := time.Duration(len(seeds)) * time.Second
		show("linking "+build, each*time.Duration(len(all)-i), each*time.Duration(len(all)))
		var versions []string
		if c.programs[build], versions, err = folder.Link(ctx, build, seeds...); err != nil {
			if ctx.Err() != nil {
				err = errInterrupted
			}
			return nil, errors.Join(err, folder.Remove())
		}
		others := slices.DeleteFunc(versions, func(v string) bool { return slices.Contains(here, v) })
		if len(others) > 0 {
			c.notes = append(c.notes, strings.TrimSpace("linked "+build)+": "+strings.Join(others, " "))
		}
	}
	return folder.Remove, nil
}

// coverage is what the calibration found the intervals of one build to be worth: docs/method.md has the figures.
func coverage(procs int) string {
	held := "the default GOMAXPROCS held the mean of the other repeats in 15 of 16 repeats"
	if procs == 1 {
		held = "GOMAXPROCS=1 held the mean of the other repeats in 57 of 59 repeats"
	}
	return "in quiet hours, intervals of 16 processes of one build at " + held + "; on a noisy machine 29 of 30 repeats were undecided"
}

// result is what a group found of its contestant.
type result struct {
	name             string
	base, again, arm versus.Figures
	processes        int // that measured
	verdict          timing.Verdict
}

// result reads a group. level is the confidence of its intervals.
func (c *comparison) result(g *group, level float64) result {
	r := result{name: g.arms[2], processes: len(g.records)}
	r.base, r.again, r.arm = versus.Read(g.records, 0, level), versus.Read(g.records, 1, level), versus.Read(g.records, 2, level)
	r.verdict = versus.Verdict(r.base, r.again, r.arm, c.margin/100, c.fewest)
	return r
}

// results come in the order of their ratios, those without one last. Their intervals hold together.
func (c *comparison) results(groups []*group) (all []result) {
	for _, g := range groups {
		all = append(all, c.result(g, versus.Level(len(c.contestants))))
	}
	slices.SortStableFunc(all, func(a, b result) int {
		return cmp.Or(-cmp.Compare(min(a.arm.Ratio.Blocks, 1), min(b.arm.Ratio.Blocks, 1)), cmp.Compare(a.arm.Ratio.Median, b.arm.Ratio.Median))
	})
	return all
}

// print writes a line per stack, and a sentence for each that was compared. A contestant that too few processes have
// measured has no interval, and says so.
func (c *comparison) print(w io.Writer, groups []*group) error {
	all := c.results(groups)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "#", strings.Join(environ.List(), " "))
	fmt.Fprintf(t, "# GOMAXPROCS=%s processes=%d layouts=%d time=%v seed=%d slices=%v\n",
		versus.Procs(c.procs), c.processes, c.layouts, c.time, c.seed, versus.Slice)
	notes := append(slices.Clone(c.notes), coverage(c.procs))
	if c.layouts > 0 {
		notes = append(notes, "intervals over layouts have been calibrated on a noisy machine only: see docs/method.md")
	}
	for _, note := range notes {
		fmt.Fprintln(t, "#", note)
	}
	fmt.Fprintf(t, "stack\tns/op\tcpu-ns/op\tratio\t%.1f %% interval\tnoise floor\tverdict\n", 100*versus.Level(len(c.contestants)))
	var ns, cpu, moved float64 // of the base, beside every contestant
	measured := 0.0
	for _, r := range all {
		if r.processes > 0 {
			ns, cpu, measured, moved = ns+r.base.NsPerOp, cpu+r.base.CPUNsPerOp, measured+1, max(moved, r.base.Moved)
		}
	}
	if measured > 0 {
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t1\t\t\tbase, moved by %.0f %%\n", c.base, ns/measured, cpu/measured, 100*moved)
	}
	for _, r := range all {
		fmt.Fprintln(t, r.row(c.processes, c.fewest))
	}
	fmt.Fprintln(t)
	for _, r := range all {
		if said := c.sentence(r); said != "" {
			fmt.Fprintln(t, said)
		}
	}
	return t.Flush()
}

func (r result) row(processes, fewest int) string {
	if r.processes == 0 {
		return r.name + "\t\t\t\t\t\tnot measured"
	}
	ratio, interval, floor, said := "", "", "", ""
	if i := r.arm.Ratio; i.Blocks >= fewest {
		ratio, interval = fmt.Sprintf("%.4f", i.Median), fmt.Sprintf("%.4f–%.4f", i.Lo, i.Hi)
		floor, said = fmt.Sprintf("%.2f %%", 100*r.again.Ratio.Floor()), string(r.verdict)
	}
	if r.arm.Between+r.arm.Within > 0 {
		said += fmt.Sprintf("; SD %.2f %% between layouts", 100*r.arm.Between)
	}
	if r.arm.Within > 0 {
		said += fmt.Sprintf(", %.2f %% between processes of one", 100*r.arm.Within)
	}
	if r.processes < processes {
		said = strings.TrimPrefix(fmt.Sprintf("%s, incomplete: %d of %d processes", said, r.processes, processes), ", ")
	}
	return fmt.Sprintf("%s\t%.0f\t%.0f\t%s\t%s\t%s\t%s", r.name, r.arm.NsPerOp, r.arm.CPUNsPerOp, ratio, interval, floor, said)
}

// sentence says a result in words, with the difference per call.
func (c *comparison) sentence(r result) string {
	i := r.arm.Ratio
	if i.Blocks < c.fewest {
		return ""
	}
	what, direction := "", "more"
	if c.procs == 1 {
		what = " CPU"
	}
	if i.Median < 1 {
		direction = "less"
	}
	times := fmt.Sprintf("%.2f times as long as %s (%.2f–%.2f)", i.Median, c.base, i.Lo, i.Hi)
	switch {
	case r.verdict != timing.Undecided:
		micro := r.base.NsPerOp * math.Abs(i.Median-1) / 1000
		return fmt.Sprintf("%s takes %s: %.1f µs %s%s per call.", r.name, times, micro, direction, what)
	case r.base.Moved > versus.Steady:
		return fmt.Sprintf("%s is undecided: it takes %s, and the base moved by %.0f %% meanwhile. Try again on a quiet machine.",
			r.name, times, 100*r.base.Moved)
	}
	return fmt.Sprintf("%s is undecided: it takes %s, and the noise floor is %.2f %%.", r.name, times, 100*r.again.Ratio.Floor())
}
