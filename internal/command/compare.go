package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/compare/builds"
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report"
)

var errInterrupted = errors.New("rpcbench: interrupted")

// comparison is what run was asked for. A contestant is stack[@build].
type comparison struct {
	program
	base        string
	contestants []string
	workloads   []workload.Workload
	time        time.Duration // for each arm of each comparison, over all processes
	processes   int
	layouts     int // links of each build; 0 is this program as it is
	seed        uint64
	out         string
	verbose     bool
	sweep       made                // what the workloads are the values of
	also        map[string][]string // stacks that have rows of their own, and at which workloads
	gate        gate
	equal       float64           // percent; 0 is versus.Margin
	server      string            // value of -server
	servers     map[string]string // host:port by stack; nil: each process starts its own

	programs map[string][]versus.Program   // of each build, one per layout
	notes    []string                      // on what is measured
	warnings []string                      // of every summary
	facts    map[[2]string]*workload.Facts // of a workload and a stack
	found    map[string]float64            // rates of ordinary load, by workload
}

// build is the part of a contestant's name after the stack's.
func build(contestant string) string {
	_, build, _ := strings.Cut(contestant, "@")
	return build
}

// names takes the base and the contestants from the arguments.
func (c *comparison) names(args []string) error {
	switch {
	case c.base != "":
	case slices.ContainsFunc(args, func(name string) bool { return strings.Contains(name, "@") }):
		c.base, args = args[0], args[1:]
	default:
		c.base = c.program.base()
	}
	if len(args) == 0 && build(c.base) == "" {
		args = c.program.contestants()
	}
	var names []string
	for _, name := range append([]string{c.base}, args...) {
		stack, build, named := strings.Cut(name, "@")
		if names = append(names, stack); named && build == "" {
			return wrong("run: %s names no build after the @: give a git revision, a Go release, module@version or "+
				"KEY=VALUE, such as %[1]sHEAD~1", name)
		}
		if err := builds.Check(build); err != nil {
			return wrong("run: %w", err)
		}
	}
	stacks, err := c.find(names...)
	if err != nil {
		return err
	}
	for _, s := range stacks {
		if unseen := workload.Unseen(s); unseen != "" && !slices.Contains(c.warnings, unseen) {
			c.warnings = append(c.warnings, unseen)
		}
		if s.Method != stacks[0].Method {
			return wrong("run: %s serves %s, and %s %s: stacks of one method are compared",
				stacks[0].Name, cmp.Or(stacks[0].Method, "create-user"), s.Name, cmp.Or(s.Method, "create-user"))
		}
	}
	if own := c.sweep.workloads; own != nil {
		switch own := own[0]; {
		case stacks[0].Method != "" && (own.Payload > 0 || own.Message != ""):
			return wrong("run: -payload and -message are for create-user: leave them out")
		case own.Stream && !slices.ContainsFunc(stacks, streams):
			return wrong("run: -stream: none of %s has streams: leave it out", strings.Join(names, ", "))
		}
	}
	c.contestants = slices.DeleteFunc(slices.Clone(args), func(name string) bool { return name == c.base })
	for i, name := range c.contestants {
		if slices.Contains(c.contestants[:i], name) {
			return wrong("run: %s is named twice: name it once", name)
		}
	}
	if len(c.contestants) == 0 {
		return wrong("run: nothing to compare with %s: name another stack", c.base)
	}
	return nil
}

// streams says whether a stack has streams, which its client tells. Of a method of one's own none has.
func streams(s rpcbench.Stack) bool {
	if s.Method != "" {
		return false
	}
	f, err := rpcbench.Start(context.Background(), s, rpcbench.Config{})
	if err != nil {
		return true // what is wrong with it, measuring says
	}
	defer f.Close()
	_, ok := f.Client.(rpcbench.Streamer)
	return ok
}

// builds are those of the base and of the contestants, each once. "" is the source as it lies.
func (c *comparison) builds() (all []string) {
	for _, name := range append([]string{c.base}, c.contestants...) {
		if !slices.Contains(all, build(name)) {
			all = append(all, build(name))
		}
	}
	return all
}

// named tells whether a build is.
func (c *comparison) named() bool {
	return slices.ContainsFunc(c.builds(), func(build string) bool { return build != "" })
}

// link makes all programs before anything is measured. remove deletes them.
func (c *comparison) link(ctx context.Context, show show) (remove func() error, err error) {
	c.programs = map[string][]versus.Program{}
	all := c.builds()
	asItIs := func(why string) (func() error, error) {
		c.notes = append(c.notes, "the intervals are of this build, not of its source: "+why)
		c.layouts, c.programs[""] = 0, []versus.Program{{}}
		return func() error { return nil }, nil
	}
	if c.layouts == 0 && !c.named() {
		return asItIs("no layouts were linked")
	}
	seeds := c.seeds()
	folder, err := builds.Open(ctx, c.main)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, errInterrupted
	case c.named() && err != nil:
		return nil, fmt.Errorf("rpcbench: no build can be made: %w", err)
	case err != nil && c.gate.max > 0:
		return nil, fmt.Errorf("rpcbench: run: -max judges layouts, and none can be linked: %w: mend that, "+
			"or leave -max out", err)
	case err != nil:
		c.warnings = append(c.warnings, fmt.Sprintf("one build was measured, and not %d layouts: %s", c.layouts, err))
		return asItIs(err.Error())
	}
	defer show("", 0)
	here, done, first := environ.List(), 0, time.Time{}
	for _, build := range all {
		tell := func() {
			pace, total := aLink, len(all)*len(seeds)
			if done > 1 { // the first was compiled too
				pace = time.Since(first) / time.Duration(done-1)
			}
			show("linking "+cmp.Or(build, "this source"), pace*time.Duration(total-done))
		}
		folder.Linked = func() {
			if done++; done == 1 {
				first = time.Now()
			}
			tell()
		}
		tell()
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

// seeds are those of the layouts: each another one, or 0 for the linker's own order.
func (c *comparison) seeds() []uint64 {
	seeds, random := make([]uint64, max(1, c.layouts)), rand.New(rand.NewPCG(c.seed, 1))
	for i := range seeds {
		if c.layouts > 0 {
			seeds[i] = 1 + random.Uint64N(1e9)
		}
	}
	return seeds
}

// asTyped is the command line as results may show it: of absolute paths, the last part alone.
func asTyped() []string {
	args := append([]string{"rpcbench"}, os.Args[1:]...)
	if typed := os.Getenv(report.Typed); typed != "" {
		args = strings.Split(typed, "\n")
	}
	for i, arg := range args {
		name, value, whole := strings.Cut(arg, "=")
		if whole && filepath.IsAbs(value) {
			args[i] = name + "=" + filepath.Base(value)
		} else if filepath.IsAbs(arg) {
			args[i] = filepath.Base(arg)
		}
	}
	return args
}

// campaign has a comparison for each workload and contestant.
func (c *comparison) campaign() *versus.Campaign {
	all := versus.Campaign{Plan: c.plan(), Seed: c.seed}
	for _, w := range c.workloads {
		names := c.contestants
		for _, name := range slices.Sorted(maps.Keys(c.also)) {
			if slices.Contains(c.also[name], w.Name) {
				names = append(slices.Clip(names), name)
			}
		}
		for _, name := range names {
			one := &versus.Comparison{Spec: c.spec(w, name), Base: c.programs[build(c.base)], ByCPU: c.asksCPU(w)}
			if c.apart(name) {
				one.Other = append([]versus.Program{}, c.programs[build(name)]...) // not nil before they are linked
			}
			all.Comparisons = append(all.Comparisons, one)
		}
	}
	return &all
}

// rates finds the rate of each workload at ordinary load.
func (c *comparison) rates(ctx context.Context, show show) error {
	c.found = map[string]float64{}
	defer show("", 0)
	left := c.looking()
	for i := range c.workloads {
		w := &c.workloads[i]
		if w.Rate != workload.Auto {
			continue
		}
		show("looking at "+w.Title, left)
		left -= versus.LookTakes(*w)
		var err error
		w.Rate, err = versus.Ordinary(ctx, versus.Run, c.spec(*w, c.base), c.programs[build(c.base)][0])
		switch {
		case ctx.Err() != nil:
			return errInterrupted
		case err != nil:
			w.Rate = 1000
			c.warnings = append(c.warnings, fmt.Sprintf("%s: no ordinary load was found, so it is 1000 calls a second: %s",
				w.Title, strings.TrimPrefix(err.Error(), "rpcbench: ")))
		default:
			c.found[w.Name] = w.Rate
		}
	}
	return nil
}

// spec is what the first process of a comparison measures. Ratios of builds spread more, so these take four times as
// long: each block has two slices of each arm, and there are twice as many.
func (c *comparison) spec(w workload.Workload, contestant string) versus.Spec {
	n := int(c.time / time.Duration(c.processes) / versus.Turn)
	if c.apart(contestant) {
		n *= 2
	}
	return versus.Spec{Arms: []string{c.base, c.base, contestant}, Workload: w, Procs: w.Procs, Slice: versus.Slice,
		Blocks: w.Blocks(max(versus.FewestBlocks, n)), Seed: c.seed,
		Servers: c.servers}
}

// apart tells whether each arm has a process of its own.
func (c *comparison) apart(contestant string) bool {
	return build(c.base) != build(contestant)
}

func (c *comparison) plan() versus.Plan {
	return versus.Plan{Processes: c.processes, Margin: c.equal / 100}
}
