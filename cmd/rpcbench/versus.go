package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/roster"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// comparison is what versus was asked for.
type comparison struct {
	base             string
	contestants      []string
	time             time.Duration
	processes, procs int
	margin           float64
	seed             uint64
}

func versusCommand(stdout, stderr io.Writer) command {
	return command{
		name: "versus", args: " [stack...]", does: "Compare stacks with a base, slice by slice in several processes",
		example: "rpcbench versus -time 10s grpcprotobuf",
		setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			var c comparison
			f.StringVar(&c.base, "base", "httpjson", "`stack` that the others are compared with")
			f.DurationVar(&c.time, "time", 20*time.Second, "for each stack, about, over all processes")
			f.IntVar(&c.processes, "processes", 16, fmt.Sprintf("for each comparison, at least %d", versus.Fewest))
			f.IntVar(&c.procs, "gomaxprocs", 1, "GOMAXPROCS of the measuring processes: 1 is CPU work only, 0 all cores")
			f.Float64Var(&c.margin, "margin", 100*versus.Margin, "difference in `percent` that counts as equal")
			f.Uint64Var(&c.seed, "seed", rand.Uint64N(1e6), "of the order of the slices")
			return func(ctx context.Context, args []string) error {
				if err := c.check(args); err != nil {
					return err
				}
				groups, err := c.run(ctx, self(), progress(stderr))
				return errors.Join(err, c.print(stdout, groups))
			}
		},
	}
}

func (c *comparison) check(args []string) error {
	if _, err := roster.Find(append([]string{c.base}, args...)...); err != nil {
		return wrongUse{err}
	}
	if len(args) == 0 {
		for _, s := range roster.Main() {
			args = append(args, s.Name)
		}
	}
	c.contestants = slices.DeleteFunc(slices.Clone(args), func(name string) bool { return name == c.base })
	for i, name := range c.contestants {
		if slices.Contains(c.contestants[:i], name) {
			return wrong("versus: %s is named twice: once is enough", name)
		}
	}
	switch least := versus.FewestBlocks * versus.Turn * time.Duration(c.processes); {
	case len(c.contestants) == 0:
		return wrong("versus: nothing to compare with %s: name another stack", c.base)
	case c.processes < versus.Fewest:
		return wrong("versus: %d processes are too few for an interval: -processes %d or more", c.processes, versus.Fewest)
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

// group is a base, its copy and a contestant, with a record per process.
type group struct {
	arms    []string
	records []timing.Record
	failed  bool // the group is left as it is
}

// run returns what was measured also when it fails.
func (c *comparison) run(ctx context.Context, children versus.Program, show show) (groups []group, err error) {
	for _, name := range c.contestants {
		groups = append(groups, group{arms: []string{c.base, c.base, name}})
	}
	defer show("", 0, 0, 0)
	share, over := c.time/time.Duration(c.processes), 0
	random, failed := rand.New(rand.NewPCG(c.seed, 0)), []string{}
	for i := range c.processes { // a process of each group in turn, so that a bad hour of the machine is shared
		for _, j := range random.Perm(len(groups)) {
			g := &groups[j]
			over++
			if g.failed {
				continue
			}
			show(fmt.Sprintf("process %d of %d, %s", i+1, c.processes, g.arms[2]), over-1, c.processes*len(groups), 3*share)
			r, err := children.Run(ctx, versus.Spec{
				Arms: g.arms, Procs: c.procs, Slice: versus.Slice, Blocks: int(share / versus.Turn), Seed: c.seed + uint64(i),
			})
			switch {
			case ctx.Err() != nil:
				return groups, errors.New("rpcbench: versus: interrupted")
			case err != nil:
				g.failed, failed = true, append(failed, err.Error())
			default:
				g.records = append(g.records, r)
			}
		}
	}
	if len(failed) > 0 {
		err = errors.New(strings.Join(failed, "; "))
	}
	return groups, err
}

// coverage is what the calibration found the intervals to be worth: docs/method.md has the figures.
func coverage(procs int) string {
	held := "the default GOMAXPROCS held the mean of the other repeats in 15 of 16 repeats"
	if procs == 1 {
		held = "GOMAXPROCS=1 held the mean of the other repeats in 57 of 59 repeats"
	}
	return "in quiet hours, intervals of 16 processes at " + held + "; on a noisy machine 29 of 30 repeats were undecided"
}

// print writes a line per stack. A group that too few processes have measured has no interval, and says so.
func (c *comparison) print(w io.Writer, groups []group) error {
	level := versus.Level(len(c.contestants))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "#", strings.Join(environ.List(), " "))
	fmt.Fprintf(t, "# GOMAXPROCS=%s processes=%d time=%v seed=%d slices=%v\n", versus.Procs(c.procs), c.processes, c.time, c.seed, versus.Slice)
	fmt.Fprintln(t, "#", coverage(c.procs))
	fmt.Fprintf(t, "stack\tns/op\tcpu-ns/op\tratio\t%.1f %% interval\tverdict\n", 100*level)
	for _, g := range groups {
		base, again, arm := versus.Read(g.records, 0, level), versus.Read(g.records, 1, level), versus.Read(g.records, 2, level)
		moved := fmt.Sprintf("moved by %.0f %%", 100*base.Moved)
		verdict := string(versus.Verdict(base, again, arm, c.margin/100))
		if base.Moved > versus.Steady {
			verdict += ": the base " + moved
		}
		row := func(name string, f versus.Figures, said string) {
			ratio, interval, n := "1", "", len(g.records)
			switch {
			case n == 0:
				fmt.Fprintf(t, "%s\t\t\t\t\tnot measured\n", name)
				return
			case name == c.base:
			case n < versus.Fewest:
				ratio, said = "", ""
			default:
				ratio, interval = fmt.Sprintf("%.4f", f.Ratio.Median), fmt.Sprintf("%.4f–%.4f", f.Ratio.Lo, f.Ratio.Hi)
			}
			if n < c.processes {
				said = strings.TrimPrefix(fmt.Sprintf("%s, incomplete: %d of %d processes", said, n, c.processes), ", ")
			}
			fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%s\t%s\t%s\n", name, f.NsPerOp, f.CPUNsPerOp, ratio, interval, said)
		}
		row(c.base, base, "base, "+moved)
		row(c.base+" again", again, fmt.Sprintf("noise floor %.2f %%", 100*again.Ratio.Floor()))
		row(g.arms[2], arm, verdict)
	}
	return t.Flush()
}
