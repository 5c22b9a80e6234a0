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
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/replicate"
	"github.com/rpcbench/rpcbench/internal/roster"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// comparison is what versus was asked for.
type comparison struct {
	base        string
	contestants []string
	time        time.Duration
	processes   int
	procs       int
	margin      float64
	seed        uint64
}

func versusCommand(stdout, stderr io.Writer) command {
	return command{
		name: "versus", args: " [stack...]", does: "Compare stacks with a base, slice by slice in several processes",
		example: "rpcbench versus -time 10s grpcprotobuf",
		setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			var c comparison
			f.StringVar(&c.base, "base", "httpjson", "`stack` that the others are compared with")
			f.DurationVar(&c.time, "time", 20*time.Second, "for each stack, about, over all processes")
			f.IntVar(&c.processes, "processes", 16, fmt.Sprintf("for each comparison, at least %d", replicate.Fewest))
			f.IntVar(&c.procs, "gomaxprocs", 1, "GOMAXPROCS of the measuring processes: 1 is CPU work only, 0 all cores")
			f.Float64Var(&c.margin, "margin", 100*versus.Margin, "difference in `percent` that counts as equal")
			f.Uint64Var(&c.seed, "seed", rand.Uint64N(1e6), "of the order of the slices")
			return func(ctx context.Context, args []string) error {
				c.contestants = args
				if len(args) == 0 {
					for _, s := range roster.Main() {
						c.contestants = append(c.contestants, s.Name)
					}
				}
				if err := c.check(); err != nil {
					return wrongUse{err}
				}
				children, err := self()
				if err != nil {
					return err
				}
				show, done := progress(stderr)
				groups, err := c.run(ctx, children, show)
				done()
				if e := c.print(stdout, groups); err == nil {
					err = e
				}
				return err
			}
		},
	}
}

// coverage is what the calibration found the intervals to be worth: docs/method.md has the figures.
func coverage(procs int) string {
	const noisy = "; on a noisy machine 29 of 30 repeats were undecided"
	if procs == 1 {
		return "in quiet hours, intervals of 16 processes at GOMAXPROCS=1 held the mean of the other repeats in 57 of 59 repeats" + noisy
	}
	return "in quiet hours, intervals of 16 processes at the default GOMAXPROCS held the mean of the other repeats in 15 of 16 repeats" + noisy
}

// group is a base, its copy and a contestant, with a record per process.
type group struct {
	arms    []string
	records []timing.Record
	err     error         // of the process that failed; the group is then left as it is
	cut     timing.Record // the blocks of that process
}

func (c *comparison) check() error {
	if _, err := roster.Find(append([]string{c.base}, c.contestants...)...); err != nil {
		return err
	}
	c.contestants = slices.DeleteFunc(slices.Clone(c.contestants), func(name string) bool { return name == c.base })
	for i, name := range c.contestants {
		if slices.Contains(c.contestants[:i], name) {
			return fmt.Errorf("rpcbench: versus: %s is named twice: once is enough", name)
		}
	}
	slice := c.time / time.Duration(max(c.processes, 1))
	switch {
	case len(c.contestants) == 0:
		return fmt.Errorf("rpcbench: versus: nothing to compare with %s: name another stack", c.base)
	case c.processes < replicate.Fewest:
		return fmt.Errorf("rpcbench: versus: %d processes are too few for an interval: -processes %d or more", c.processes, replicate.Fewest)
	case c.procs < 0 || c.procs > runtime.NumCPU():
		return fmt.Errorf("rpcbench: versus: -gomaxprocs %d on a machine of %d cores: use 1, or 0 for the default", c.procs, runtime.NumCPU())
	case !(c.margin > 0):
		return fmt.Errorf("rpcbench: versus: a margin of %v %% leaves nothing equal: use 2 or so", c.margin)
	case slice < blocksAtLeast*versus.Turn:
		return fmt.Errorf("rpcbench: versus: %v over %d processes leave less than %d turns of %v in each: give -time %v or more",
			c.time, c.processes, blocksAtLeast, versus.Turn, blocksAtLeast*versus.Turn*time.Duration(c.processes))
	}
	return nil
}

const blocksAtLeast = 10 // per process: its median is then worth a place among the others

// run returns what was measured also when it fails.
func (c *comparison) run(ctx context.Context, children replicate.Command, show func(string, time.Duration, time.Duration)) ([]group, error) {
	var groups []group
	for _, name := range c.contestants {
		groups = append(groups, group{arms: []string{c.base, c.base, name}})
	}
	var total, over time.Duration
	for _, g := range groups {
		total += time.Duration(len(g.arms)) * c.time
	}
	random := rand.New(rand.NewPCG(c.seed, 0))
	for i := range c.processes { // a process of each group in turn, so that a bad hour of the machine is shared
		for _, j := range random.Perm(len(groups)) {
			g := &groups[j]
			share := time.Duration(len(g.arms)) * c.time / time.Duration(c.processes)
			if g.err == nil {
				show(fmt.Sprintf("process %d of %d, %s", i+1, c.processes, g.arms[2]), over, total)
				var record timing.Record
				record, g.err = children.Run(ctx, replicate.Spec{
					Arms: g.arms, Procs: c.procs, Slice: versus.Slice, Blocks: int(c.time / versus.Turn / time.Duration(c.processes)),
					Seed: c.seed + uint64(i),
				})
				if ctx.Err() != nil {
					return groups, errors.New("rpcbench: versus: interrupted")
				}
				if g.err == nil {
					g.records = append(g.records, record)
				} else {
					g.cut = record
				}
			}
			over += share
		}
	}
	var failed []string
	for _, g := range groups {
		if g.err != nil {
			failed = append(failed, g.err.Error())
		}
	}
	if failed != nil {
		return groups, errors.New(strings.Join(failed, "; "))
	}
	return groups, nil
}

// print writes a line per stack. A group that too few processes have measured has no interval, and says so.
func (c *comparison) print(w io.Writer, groups []group) error {
	if len(groups) == 0 {
		return nil
	}
	level := versus.Level(len(c.contestants))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "#", strings.Join(environ.List(), " "))
	procs := "default"
	if c.procs > 0 {
		procs = strconv.Itoa(c.procs)
	}
	fmt.Fprintf(t, "# GOMAXPROCS=%s processes=%d time=%v seed=%d slices=%v\n", procs, c.processes, c.time, c.seed, versus.Slice)
	fmt.Fprintln(t, "#", coverage(c.procs))
	fmt.Fprintf(t, "stack\tns/op\tcpu-ns/op\tratio\t%.1f %% interval\tverdict\n", 100*level)
	moved := 0.0 // of the group that is being printed
	row := func(name string, g group, arm int, verdict func(timing.Interval) string) {
		records := g.records
		if len(records) == 0 && len(g.cut.Blocks) > 0 {
			records = []timing.Record{g.cut}
		}
		if len(records) == 0 {
			fmt.Fprintf(t, "%s\t\t\t\t\tnot measured\n", name)
			return
		}
		cpu := 0.0
		var ns, ratios []float64
		for _, r := range records {
			ns = append(ns, r.NsPerOp(arm))
			cpu += r.CPUNsPerOp(arm) / float64(len(records))
			if i, err := r.Ratio(arm, 0, 0.5); err == nil { // only its median; none for the base itself
				ratios = append(ratios, i.Median)
			}
		}
		var ratio, interval string
		var said []string
		whole := len(ratios)
		switch {
		case arm == 0:
			moved = replicate.Moved(ns)
			ratio, said, whole = "1", []string{fmt.Sprintf("base, moved by %.0f %%", 100*moved)}, len(records)
		case whole >= replicate.Fewest:
			i := replicate.Interval(ratios, level)
			ratio, interval, said = fmt.Sprintf("%.4f", i.Median), fmt.Sprintf("%.4f–%.4f", i.Lo, i.Hi), []string{verdict(i)}
		}
		switch {
		case len(g.records) == 0:
			said = append(said, fmt.Sprintf("incomplete: %d blocks of one process", len(g.cut.Blocks)))
		case whole < c.processes:
			said = append(said, fmt.Sprintf("incomplete: %d of %d processes", whole, c.processes))
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%s\t%s\t%s\n", name, stat.Mean(ns, nil), cpu, ratio, interval, strings.Join(said, ", "))
	}
	for _, g := range groups {
		floor := 0.0
		row(c.base, g, 0, nil)
		row(c.base+" again", g, 1, func(i timing.Interval) string {
			floor = i.Floor()
			return fmt.Sprintf("noise floor %.2f %%", 100*floor)
		})
		row(g.arms[2], g, 2, func(i timing.Interval) string {
			if moved > replicate.Steady {
				return fmt.Sprintf("%s: the base moved by %.0f %%", timing.Undecided, 100*moved)
			}
			return string(i.Verdict(floor, c.margin/100))
		})
	}
	return t.Flush()
}
