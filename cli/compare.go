package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/cli/internal/builds"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
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
	fewest      int // processes for a verdict
	layouts     int // links of each build; 0 is this program as it is
	seed        uint64
	out         string
	server      string            // value of -server
	servers     map[string]string // host:port by stack; nil: each process starts its own

	programs map[string][]versus.Program // of each build, one per layout
	notes    []string                    // on what is measured
	warnings []string                    // of every summary
}

// group is a base, its copy and a contestant at a workload, with what each process found.
type group struct {
	workload.Workload
	arms      []string
	processes []versus.Process
	failed    bool  // the group is left as it is
	layouts   []int // by turns, in random order

	baseFacts, facts *workload.Facts
}

func (g *group) String() string { return g.Title + ", " + g.arms[2] }

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
			return wrong("run: %s names no build: see rpcbench help", name)
		}
		if err := builds.Check(build); err != nil {
			return wrong("run: %w", err)
		}
	}
	stacks, err := c.find(names...)
	if err != nil {
		return err
	}
	for _, s := range stacks[1:] {
		if s.Method != stacks[0].Method {
			return wrong("run: %s serves %s, and %s %s: stacks of one method are compared",
				stacks[0].Name, cmp.Or(stacks[0].Method, "create-user"), s.Name, cmp.Or(s.Method, "create-user"))
		}
	}
	c.contestants = slices.DeleteFunc(slices.Clone(args), func(name string) bool { return name == c.base })
	for i, name := range c.contestants {
		if slices.Contains(c.contestants[:i], name) {
			return wrong("run: %s is named twice: once is enough", name)
		}
	}
	if len(c.contestants) == 0 {
		return wrong("run: nothing to compare with %s: name another stack", c.base)
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
	named := slices.ContainsFunc(all, func(build string) bool { return build != "" })
	asItIs := func(why string) (func() error, error) {
		c.notes = append(c.notes, "the intervals are of this build, not of its source: "+why)
		c.layouts, c.programs[""] = 0, []versus.Program{self()}
		return func() error { return nil }, nil
	}
	if c.layouts == 0 && !named {
		return asItIs("no layouts were linked")
	}
	seeds := c.seeds()
	folder, err := builds.Open(ctx, c.main)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, errInterrupted
	case named && err != nil:
		return nil, fmt.Errorf("rpcbench: no build can be made: %w", err)
	case err != nil:
		return asItIs(err.Error())
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

// process returns the program of the group's i-th process, or one for each arm if their builds differ. An arm then
// has another layout than the one before it: so the base's copy shows what a layout makes of nothing.
func (c *comparison) process(g *group, i int) (programs []versus.Program) {
	for arm, name := range g.arms {
		own := c.programs[build(name)]
		programs = append(programs, own[g.layouts[(i+arm)%len(g.layouts)]])
	}
	if g.ownProcesses() {
		return programs
	}
	return programs[:1]
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

// ownProcesses tells whether the arms have a process each. Each block then has two slices of each arm.
func (g *group) ownProcesses() bool { return build(g.arms[0]) != build(g.arms[2]) }

// blocks is how many blocks each process measures. Ratios of builds spread more, so these take four times as long.
func (c *comparison) blocks(g *group) int {
	n := int(c.time / time.Duration(c.processes) / versus.Turn)
	if g.ownProcesses() {
		n *= 2
	}
	return g.Blocks(max(versus.FewestBlocks, n))
}

// takes is how long a process takes, about.
func (c *comparison) takes(g *group) time.Duration {
	arm := versus.Turn
	if g.ownProcesses() {
		arm *= 2
	}
	return 400*time.Millisecond + time.Duration(3*c.blocks(g))*(arm+g.Extra())
}

// measure tells keep of each process that has measured, with all groups. It goes on after a process that fails, and
// tries it again once. With an error comes what was measured.
func (c *comparison) measure(ctx context.Context, show show,
	keep func([]*group, *group, timing.Record) error,
) (groups []*group, again, failed []string, err error) {
	random := rand.New(rand.NewPCG(c.seed, 0))
	var left time.Duration
	for _, w := range c.workloads {
		for _, name := range c.contestants {
			g := &group{Workload: w, arms: []string{c.base, c.base, name}, layouts: random.Perm(len(c.programs[build(name)]))}
			groups = append(groups, g)
			left += time.Duration(c.processes) * c.takes(g)
		}
	}
	defer show("", 0, 0)
	all, began := left, time.Now()
	for i := range c.processes { // a process of each group in turn, so that a bad hour of the machine is shared
		for _, j := range random.Perm(len(groups)) {
			g := groups[j]
			slower := 1.0 // than expected, by what is done
			if done := all - left; done > 0 {
				slower = max(1, float64(time.Since(began))/float64(done))
			}
			show(fmt.Sprintf("process %d of %d, %s", i+1, c.processes, g),
				time.Duration(slower*float64(left)), time.Duration(slower*float64(all)))
			left -= c.takes(g)
			if g.failed {
				continue
			}
			record, found, mended, err := versus.Measure(ctx, c.spec(g, i), c.process(g, i)...)
			where := fmt.Sprintf("%s, process %d of %d: ", g, i+1, c.processes)
			switch {
			case ctx.Err() != nil:
				return groups, again, failed, errInterrupted
			case err != nil:
				g.failed = true
				if why := strings.TrimPrefix(err.Error(), "rpcbench: "); strings.HasSuffix(why, errors.ErrUnsupported.Error()) {
					again = append(again, fmt.Sprintf("skipped: %s: %s", g, why))
				} else {
					failed = append(failed, where+why)
				}
				continue
			case mended != "":
				again = append(again, "measured again: "+where+mended)
			}
			g.processes = append(g.processes, found)
			if err := keep(groups, g, record); err != nil {
				return groups, again, failed, err
			}
		}
	}
	return groups, again, failed, nil
}

func (c *comparison) spec(g *group, process int) versus.Spec {
	spec := versus.Spec{Workload: g.Workload, Procs: g.Procs, Slice: versus.Slice, Blocks: c.blocks(g),
		Seed: c.seed + uint64(process), Servers: c.servers}
	for _, name := range g.arms {
		stack, _, _ := strings.Cut(name, "@")
		spec.Arms = append(spec.Arms, stack)
	}
	return spec
}

// result decides what a group found.
func (c *comparison) result(g *group) versus.Result {
	plan := versus.Plan{Processes: c.processes, Fewest: c.fewest, AllCores: cmp.Or(g.Procs, runtime.NumCPU()) > 1,
		OneCaller: g.TellsCores() && c.servers == nil}
	if c.fewest == versus.FewestQuick {
		plan.Longer = "the time, without -quick,"
	}
	return versus.Decide(plan, g.processes)
}
