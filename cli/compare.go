package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
)

// group is a base, its copy and a contestant at a workload, with a record per process.
type group struct {
	workload.Workload
	arms    []string
	records []timing.Record
	failed  bool  // the group is left as it is
	layouts []int // by turns, in random order

	baseFacts, facts *workload.Facts // of run
}

// process returns the program of the group's i-th process, or one for each arm if their builds differ. An arm then
// has another layout than the one before it: so the base's copy shows what a layout makes of nothing.
func (c *comparison) process(g *group, i int) (programs []versus.Program) {
	for arm, name := range g.arms {
		own := c.programs[build(name)]
		programs = append(programs, own[g.layouts[(i+arm)%len(g.layouts)]])
	}
	if c.ownProcesses(g) {
		return programs
	}
	return programs[:1]
}

// kept is a line of the file of records: what was asked for, or what a process measured.
type kept struct {
	Environment []string       `json:"environment,omitempty"`
	Command     []string       `json:"command,omitempty"`
	Base        string         `json:"base,omitempty"`
	Contestant  string         `json:"contestant,omitempty"`
	Record      *timing.Record `json:"record,omitempty"`
}

// keep is told of each process that has measured, and first of nothing.
type keep = func(*group, *timing.Record) error

// measure runs the comparison, and keeps the records in its file if there is to be one.
func (c *comparison) measure(ctx context.Context, show show) ([]*group, error) {
	if c.out == "" {
		return c.run(ctx, show, func(*group, *timing.Record) error { return nil })
	}
	file, err := os.OpenFile(c.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	lines := json.NewEncoder(file)
	groups, err := c.run(ctx, show, func(g *group, r *timing.Record) error {
		if g == nil {
			return lines.Encode(kept{Environment: append(environ.List(), c.notes...), Command: asTyped(), Base: c.base})
		}
		return lines.Encode(kept{Contestant: g.arms[2], Record: r})
	})
	return groups, errors.Join(err, file.Close())
}

// asTyped is the command line as results may show it: of absolute paths, the last part alone.
func asTyped() []string {
	args := []string{"rpcbench"}
	for _, arg := range os.Args[1:] {
		if filepath.IsAbs(arg) {
			arg = filepath.Base(arg)
		}
		args = append(args, arg)
	}
	return args
}

// ownProcesses tells whether the arms of a group have a process each.
func (c *comparison) ownProcesses(g *group) bool {
	return c.apart || build(g.arms[0]) != build(g.arms[2])
}

// blocks is how many blocks each process measures.
func (c *comparison) blocks(g *group) int {
	n := int(c.time / time.Duration(c.processes) / versus.Turn)
	if c.ownProcesses(g) { // a block then has two slices of each arm
		n = max(versus.FewestBlocks, n/2)
	}
	return g.Blocks(n)
}

// takes is how long a process takes, about.
func (c *comparison) takes(g *group) time.Duration {
	arm := versus.Turn
	if c.ownProcesses(g) {
		arm *= 2
	}
	return 400*time.Millisecond + time.Duration(3*c.blocks(g))*(arm+g.Extra())
}

// run returns what was measured also when it fails.
func (c *comparison) run(ctx context.Context, show show, keep keep) (groups []*group, err error) {
	random, failed := rand.New(rand.NewPCG(c.seed, 0)), []string{}
	workloads := c.workloads
	if workloads == nil {
		workloads = []workload.Workload{{Name: workload.Small, Procs: c.procs}}
	}
	var left time.Duration
	for _, w := range workloads {
		for _, name := range c.contestants {
			g := &group{Workload: w, arms: c.arms(name), layouts: random.Perm(len(c.programs[build(name)]))}
			groups = append(groups, g)
			left += time.Duration(c.processes) * c.takes(g)
		}
	}
	defer show("", 0, 0)
	if err := keep(nil, nil); err != nil {
		return nil, err
	}
	all, began := left, time.Now()
	for i := range c.processes { // a process of each group in turn, so that a bad hour of the machine is shared
		for _, j := range random.Perm(len(groups)) {
			g := groups[j]
			slower := 1.0 // than expected, by what is done
			if done := all - left; done > 0 {
				slower = max(1, float64(time.Since(began))/float64(done))
			}
			show(fmt.Sprintf("process %d of %d, %s", i+1, c.processes, g.arms[2]),
				time.Duration(slower*float64(left)), time.Duration(slower*float64(all)))
			left -= c.takes(g)
			if g.failed {
				continue
			}
			programs := c.process(g, i)
			spec := versus.Spec{Workload: g.Name, Procs: g.Procs, Slice: versus.Slice, Blocks: c.blocks(g), Seed: c.seed + uint64(i)}
			for _, name := range g.arms {
				stack, _, _ := strings.Cut(name, "@")
				spec.Arms = append(spec.Arms, stack)
			}
			r, err := versus.Run(ctx, spec, programs...)
			switch {
			case ctx.Err() != nil:
				return groups, errInterrupted
			case err != nil:
				g.failed, failed = true, append(failed, err.Error())
			default:
				g.records = append(g.records, r)
				if err := keep(g, &r); err != nil {
					return groups, err
				}
			}
		}
	}
	if len(failed) > 0 {
		err = errors.New(strings.Join(failed, "; "))
	}
	return groups, err
}
