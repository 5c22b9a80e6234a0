package versus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// Comparison is a base, its copy and perhaps a contestant at a workload, with what each process has found.
type Comparison struct {
	Spec  Spec              // of the first process. Arms may end with @ and a build, which the children aren't told
	Base  []Program         // links of one source, which processes take in turn; empty means this program
	Other []Program         // as many links of the contestant's build; empty means the base's, else each arm has a process
	Found []verdict.Process // so far
	ByCPU bool              // CPU time leads where it has a figure of its own
	Left  string            // why no more processes are measured
	Cant  bool              // Left is what a stack, or the machine, can't do

	order []int // of the links
}

func (c *Comparison) String() string {
	return strings.TrimPrefix(c.Spec.Workload.Title+", "+c.Spec.Arms[len(c.Spec.Arms)-1], ", ")
}

// Answer decides what the processes so far have found.
func (c *Comparison) Answer(plan verdict.Plan) verdict.Answer {
	return verdict.Decide(c.plan(plan), c.Found)
}

// Disturbed tells whether other programs left a process too few cores.
func (c *Comparison) Disturbed(p verdict.Process) bool { return c.plan(verdict.Plan{}).Disturbed(p) }

// plan adds what the comparison's workload asks of a machine.
func (c *Comparison) plan(plan verdict.Plan) verdict.Plan {
	plan.NeedsCores = cmp.Or(c.Spec.Procs, runtime.NumCPU()) > 1 || c.Spec.Workload.Apart
	plan.OneCaller, plan.Apart = c.Spec.Workload.TellsCores() && c.Spec.Servers == nil, c.Spec.Workload.Apart
	// A server on this machine counts among other programs. Where this process may use some CPUs only, what others used
	// is of all.
	if n := runtime.NumCPU(); c.Spec.Servers == nil && n == cpu.Count() {
		plan.CPUs = n
	}
	return plan
}

// takes is how long a process takes, about.
func (c *Comparison) takes() time.Duration {
	w, start, times := c.Spec.Workload, 400*time.Millisecond, 1
	if w.Apart {
		start = time.Second // three servers
	}
	if c.Other != nil { // a process for each arm, which has two slices in a block
		start, times = 2*start, 2
	}
	return start + time.Duration(len(c.Spec.Arms)*(c.Spec.Blocks*times+1))*w.Warming() +
		time.Duration(len(c.Spec.Arms)*c.Spec.Blocks*times)*(Turn+w.Extra())
}

// Takes is how long all comparisons take, about, unless some go on.
func (c *Campaign) Takes() (all time.Duration) {
	for _, one := range c.Comparisons {
		all += time.Duration(c.Plan.Processes) * one.takes()
	}
	return all
}

// process returns what the i-th process measures, and of which program. If each arm has a process of its own, an arm
// has another link than the one before it. So the base's copy shows what a layout makes of nothing.
func (c *Comparison) process(i int) (Spec, []Program) {
	spec, links := c.Spec, [][]Program{c.Base}
	if c.Other != nil {
		links = [][]Program{c.Base, c.Base, c.Other}
	}
	spec.Seed += uint64(i)
	spec.Arms = stacks(spec.Arms)
	var programs []Program
	for arm, all := range links {
		programs = append(programs, all[c.order[(i+arm)%len(c.order)]])
	}
	return spec, programs
}

// Campaign measures comparisons in processes. Each round has a process of each comparison, in random order, so that all
// share a bad hour of the machine.
//
// What is undecided then goes on while there is time, the nearest to a verdict first. What was disturbed comes after.
// There are twice as many processes at most. study/method.md says what that does to intervals and verdicts.
type Campaign struct {
	Plan        verdict.Plan
	Comparisons []*Comparison
	Seed        uint64 // of all orders

	// Most is how long all may take: a quarter more than planned unless given.
	Most time.Duration
	// Kept is told of each process that has measured.
	Kept func(*Comparison, timing.Record) error
	// Show is told what is being done, and how much is left until nothing goes on; none is left at the end.
	Show func(what string, left time.Duration)
	// Measure is Run unless a test has another.
	Measure Measure

	Warnings, Failures []string // lines: what was measured again, and what failed
}

// Skipped has a line for each reason, with the names of the workloads that are left out for it.
func (c *Campaign) Skipped() (lines []string) {
	names := map[string][]string{}
	for _, one := range c.Comparisons {
		if name := one.Spec.Workload.Name; one.Cant && !slices.Contains(names[one.Left], name) {
			names[one.Left] = append(names[one.Left], name)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(names)) {
		lines = append(lines, fmt.Sprintf("skipped: %s: %s", strings.Join(names[why], ", "), why))
	}
	return lines
}

// Run measures. It goes on with the others after a comparison that fails. It returns an error if ctx ends or Kept
// fails; what was measured before stays.
func (c *Campaign) Run(ctx context.Context) error {
	random, all := rand.New(rand.NewPCG(c.Seed, 0)), c.Takes()
	for _, one := range c.Comparisons {
		if len(one.Base) == 0 {
			one.Base = []Program{{}}
		}
		one.order = random.Perm(len(one.Base))
	}
	if c.Show == nil {
		c.Show = func(string, time.Duration) {}
	}
	defer c.Show("", 0)
	left, began := all, time.Now()
	slower := func() float64 { // than expected, by what is done
		if left == all {
			return 1
		}
		return max(1, float64(time.Since(began))/float64(all-left))
	}
	until := func() time.Time { return began.Add(cmp.Or(c.Most, time.Duration(slower()*float64(all))*5/4)) }
	for i := range c.Plan.Processes {
		for _, j := range random.Perm(len(c.Comparisons)) {
			one := c.Comparisons[j]
			where := fmt.Sprintf("process %d of %d", i+1, c.Plan.Processes)
			c.Show(where+", "+one.String(), time.Until(until()))
			left -= one.takes()
			if one.Left != "" {
				continue
			}
			if err := c.process(ctx, one, i, one.String()+", "+where); err != nil {
				return err
			}
		}
	}
	end, pace := until(), slower()
	for one := c.next(end, pace); one != nil; one = c.next(end, pace) {
		where := fmt.Sprintf("process %d", len(one.Found)+1)
		c.Show("going on: "+where+", "+one.String(), time.Until(end))
		if err := c.process(ctx, one, len(one.Found), one.String()+", "+where); err != nil {
			return err
		}
	}
	return nil
}

// next is the comparison of which another process is likeliest to make a verdict, and ends in time. It is nil if there
// is none.
func (c *Campaign) next(until time.Time, slower float64) (next *Comparison) {
	least := 0
	for _, one := range c.Comparisons {
		answer := one.Answer(c.Plan)
		figure := answer.Leading(one.ByCPU)
		if one.Left != "" || len(one.Found) >= 2*c.Plan.Processes || !answer.Wanting(c.Plan, figure) ||
			time.Until(until) < time.Duration(slower*float64(one.takes())) {
			continue
		}
		times := figure.Reason.Times
		if answer.Busy || times == 0 {
			times = 100 // a machine that is busy all the time leaves the time to those that can be decided
		}
		if next == nil || times < least {
			next, least = one, times
		}
	}
	return next
}

// process measures the i-th process of a comparison, and once more if that fails: a machine that is busy for a moment
// then costs a process, not a comparison.
func (c *Campaign) process(ctx context.Context, one *Comparison, i int, where string) error {
	measure, again := c.Measure, ""
	if measure == nil {
		measure = Run
	}
	spec, programs := one.process(i)
	for {
		record, err := measure(ctx, spec, programs...)
		var found verdict.Process
		if err == nil {
			found, err = ProcessOf(record)
		}
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err == nil {
			if again != "" {
				c.Warnings = append(c.Warnings, "measured again: "+where+": "+again)
			}
			if one.Found = append(one.Found, found); c.Kept != nil {
				err = c.Kept(one, record)
			}
			return err
		}
		why := err.Error()
		switch {
		case errors.Is(err, errors.ErrUnsupported), errors.Is(err, timing.ErrClock):
			one.Left, one.Cant = why, true
			return nil
		case again != "", errors.Is(err, syscall.EMFILE): // which it has a second time
			one.Left = why
			c.Failures = append(c.Failures, where+": "+why)
			return nil
		}
		again = why
	}
}
