// Package versus measures stacks against a base in several processes. A process is one sample of memory layout and of
// luck, so a [Program] measures the same arms in each, and package verdict makes one answer of what they found.
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

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
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

	Ordinary bool // the run chose the rate

	order  []int         // of the links
	tried  int           // processes at this rate, before anything went on
	enough bool          // a first look decided it, so there are no more processes
	halved bool          // the rate, since calls were not completed
	ran    int           // processes, at any rate
	spent  time.Duration // by them
}

func (c *Comparison) String() string {
	return strings.TrimPrefix(c.Spec.Workload.Title+", "+c.Spec.Arms[len(c.Spec.Arms)-1], ", ")
}

// Answer decides what the processes so far have found. Of a first look that decided they are all that were planned.
func (c *Comparison) Answer(plan verdict.Plan) verdict.Answer {
	if c.enough {
		plan.Processes = len(c.Found)
	}
	return verdict.Decide(c.plan(plan), c.Found)
}

// Disturbed tells whether other programs left a process too few cores.
func (c *Comparison) Disturbed(p verdict.Process) bool { return c.plan(verdict.Plan{}).Disturbed(p) }

// plan adds what the comparison's workload asks of a machine.
func (c *Comparison) plan(plan verdict.Plan) verdict.Plan {
	plan.NeedsCores = cmp.Or(c.Spec.Procs, environ.Procs()) > 1 || c.Spec.Workload.Apart
	plan.OneCaller, plan.Apart = c.Spec.Workload.TellsCores() && c.Spec.Servers == nil, c.Spec.Workload.Apart
	plan.Routed = c.Spec.Workload.Routed()
	plan.Callers, plan.AtRate, plan.Chosen = c.Spec.Workload.AtOnce(), c.Spec.Workload.Rate > 0, c.Ordinary
	// A server on this machine counts among other programs. Where this process may use some CPUs only, or some of their
	// time, what others used is of all.
	if n := runtime.NumCPU(); c.Spec.Servers == nil && n == cpu.Count() && environ.Cores() == float64(n) {
		plan.CPUs = n
	}
	return plan
}

// takes is how long a process takes on an idle machine, about.
func (c *Comparison) takes() time.Duration {
	w, start, turn, times := c.Spec.Workload, 300*time.Millisecond, Turn, 1
	if w.Windowed() { // whose lead and length Extra has
		start, turn = 50*time.Millisecond, 5*time.Millisecond
	}
	if w.Apart {
		start += 50 * time.Millisecond // three servers
	}
	if c.Other != nil { // a process for each arm, which has two slices in a block
		start, times = 2*start, 2
	}
	return start + time.Duration(len(c.Spec.Arms)*(c.Spec.Blocks*times+1))*w.Warming(c.Spec.Traits...) +
		time.Duration(len(c.Spec.Arms)*c.Spec.Blocks*times)*(turn+w.Extra(c.Spec.Traits...))
}

// Takes is how long all comparisons take, about, if a first look decides them, or if there is none.
func (c *Campaign) Takes() time.Duration { return c.takes(cmp.Or(c.Plan.First, c.Plan.Processes)) }

// Whole is how long all comparisons take, about, with all planned processes, unless some go on.
func (c *Campaign) Whole() time.Duration { return c.takes(c.Plan.Processes) }

func (c *Campaign) takes(processes int) (all time.Duration) {
	for _, one := range c.Comparisons {
		all += time.Duration(processes) * one.takes()
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
// share a bad hour of the machine. Where the plan has a first look, what it decides needs no further process.
//
// What is undecided then goes on while there is time, the nearest to a verdict first. What was disturbed comes after.
// There are twice as many processes at most. docs/method.md says what that does to intervals and verdicts.
type Campaign struct {
	Plan        verdict.Plan
	Comparisons []*Comparison
	Seed        uint64 // of all orders

	// Most is how long all may take, with what goes on: a quarter more than planned unless given. After a first look,
	// what goes on takes a quarter of what was before it. If planned processes take longer than Most, nothing goes on.
	Most time.Duration
	// Kept is told of each process that has measured.
	Kept func(*Comparison, timing.Record) error
	// Show is told what is being done, and how much is left: of the planned processes, and then until nothing goes on.
	// None is left at the end.
	Show func(what string, left time.Duration)
	// Hung is told which stack hangs, with the stacks of goroutines.
	Hung func(what, goroutines string) error
	// Say is told in a line of what will be measured otherwise than planned.
	Say func(line string) error
	// Measure is Run unless a test has another.
	Measure Measure

	Warnings, Failures []string // lines: what was measured again, and what failed

	end time.Time // until when what is undecided may go on
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
	random, began := rand.New(rand.NewPCG(c.Seed, 0)), time.Now()
	c.end = time.Now().Add(cmp.Or(c.Most, c.Whole()*5/4))
	for _, one := range c.Comparisons {
		if len(one.Base) == 0 {
			one.Base = []Program{{}}
		}
		one.order = random.Perm(len(one.Base))
	}
	if c.Show == nil {
		c.Show = func(string, time.Duration) {}
	}
	if c.Say == nil {
		c.Say = func(string) error { return nil }
	}
	defer c.Show("", 0)
	for slices.ContainsFunc(c.Comparisons, c.wants) {
		for _, j := range random.Perm(len(c.Comparisons)) {
			one := c.Comparisons[j]
			if !c.wants(one) {
				continue
			}
			where := fmt.Sprintf("process %d of %d", one.tried+1, c.Plan.Processes)
			c.Show(where+", "+one.String(), c.left())
			if err := c.process(ctx, one, one.tried, one.String()+", "+where); err != nil {
				return err
			}
			if one.tried++; one.TooFast() >= 2 {
				if err := c.lighten(one); err != nil {
					return err
				}
			}
			one.enough = c.Plan.Enough(one.Answer(c.Plan), one.ByCPU)
		}
	}
	if end := time.Now().Add(time.Since(began) / 4); c.Plan.First > 0 && end.Before(c.end) {
		c.end = end
	}
	for one := c.next(); one != nil; one = c.next() {
		where := fmt.Sprintf("process %d", len(one.Found)+1)
		c.Show("going on: "+where+", "+one.String(), time.Until(c.end))
		if err := c.process(ctx, one, len(one.Found), one.String()+", "+where); err != nil {
			return err
		}
	}
	return nil
}

// wants tells whether a comparison lacks planned processes.
func (c *Campaign) wants(one *Comparison) bool {
	return one.Left == "" && !one.enough && one.tried < c.Plan.Processes
}

// left is how long the planned processes still take, about, by what processes took so far, if the first look decides.
func (c *Campaign) left() (planned time.Duration) {
	for _, one := range c.Comparisons {
		if c.wants(one) {
			until := c.Plan.Processes
			if one.tried < c.Plan.First {
				until = c.Plan.First
			}
			planned += time.Duration(until-one.tried) * c.expects(one)
		}
	}
	return planned
}

// expects is how long a process of a comparison takes, by what its processes took so far, or else those of others did.
func (c *Campaign) expects(one *Comparison) time.Duration {
	if one.ran > 0 {
		return one.spent / time.Duration(one.ran)
	}
	spent, expected := 0*time.Second, 0*time.Second
	for _, other := range c.Comparisons {
		spent, expected = spent+other.spent, expected+time.Duration(other.ran)*other.takes()
	}
	if expected == 0 {
		return one.takes()
	}
	return time.Duration(float64(one.takes()) * max(1, float64(spent)/float64(expected)))
}

const few = 0.9 // of the planned calls: where fewer are completed, the rate is too fast

// TooFast is in how many processes far fewer calls were completed than planned.
func (c *Comparison) TooFast() (processes int) {
	for _, p := range c.Found {
		if least := min(p.Loads[0].Completed, p.Loads[1].Completed, p.Loads[2].Completed); 0 < least && least < few {
			processes++
		}
	}
	return processes
}

// Halved is whether the rate is half of the one that the run chose at first.
func (c *Comparison) Halved() bool { return c.halved }

// lighten goes on at half the rate, where the run chose it, with all comparisons of the workload: their figures would
// else be of two rates. What was measured at the whole rate counts no longer. Another rate, and a half that is as much
// too fast, ends the workload.
func (c *Campaign) lighten(slow *Comparison) error {
	w := slow.Spec.Workload
	ends, before, after := !slow.Ordinary || slow.halved || w.Rate/2 < workload.LeastRate, 0*time.Second, 0*time.Second
	var same []*Comparison
	for _, one := range c.Comparisons {
		if one.Spec.Workload.Name == w.Name && one.Left == "" {
			same, before = append(same, one), before+time.Duration(c.Plan.Processes-one.tried)*c.expects(one)
		}
	}
	for _, one := range same {
		if ends {
			one.Left = fmt.Sprintf("of %v planned calls a second too few were completed in two processes", w.Rate)
			continue
		}
		one.Spec.Workload.Rate, one.Found, one.tried, one.ran, one.spent = w.Rate/2, nil, 0, 0, 0
		one.halved, one.enough = true, false
		after += time.Duration(c.Plan.Processes) * c.expects(one)
	}
	if ends {
		return nil
	}
	c.end = c.end.Add(after - before)
	line := fmt.Sprintf("%s: of %v planned calls a second too few were completed in two processes, so %v are planned "+
		"from here on, which takes %v more", w.Title, w.Rate, w.Rate/2, (after - before).Round(time.Second))
	c.Warnings = append(c.Warnings, line)
	return c.Say(line)
}

// next is the comparison of which another process is likeliest to make a verdict, and ends in time. It is nil if there
// is none.
func (c *Campaign) next() (next *Comparison) {
	least := 0
	for _, one := range c.Comparisons {
		answer := one.Answer(c.Plan)
		figure := answer.Leading(one.ByCPU)
		if one.Left != "" || len(one.Found) >= 2*c.Plan.Processes || !answer.Wanting(c.Plan, figure) ||
			time.Until(c.end) < c.expects(one) {
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
	defer func(began time.Time) { one.ran, one.spent = one.ran+1, one.spent+time.Since(began) }(time.Now())
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
		hang, hangs := errors.AsType[*child.Hang](err)
		switch {
		case hangs:
			c.hung(one, where, hang)
			return nil
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

// hung leaves a comparison of which a stack hangs. That takes long and happens again, so nothing is tried twice, and a
// base is not tried again beside other contestants.
func (c *Campaign) hung(one *Comparison, where string, hang *child.Hang) {
	arms, told := one.Spec.Arms, ""
	switch {
	case hang.Arm >= 0: // with its build, which the child was not told
		hang.Stack = arms[hang.Arm]
	case hang.Stack == "":
		hang.Stack = arms[0] + " or " + arms[2]
	}
	what := where + ": " + hang.Error()
	switch {
	case hang.Goroutines == "":
		told = "its process could not tell what its goroutines did"
	case c.Hung != nil:
		told = "goroutines.txt has what its goroutines did"
		if err := c.Hung(what, hang.Goroutines); err != nil {
			told = err.Error()
		}
	}
	c.Failures = append(c.Failures, strings.TrimSuffix(fmt.Sprintf("%s (%s)", what, told), " ()"))
	for _, other := range c.Comparisons {
		base := hang.Stack == arms[0] && other.Spec.Arms[0] == arms[0] && other.Left == "" &&
			other.Spec.Workload.Name == one.Spec.Workload.Name
		if other == one || base {
			other.Left = hang.Error()
		}
	}
}
