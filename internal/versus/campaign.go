package versus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/timing"
)

// Comparison is a base, its copy and perhaps a contestant at a workload, with what each process has found.
type Comparison struct {
	Spec  Spec      // of the first process. Arms may end with @ and a build, which the children aren't told
	Base  []Program // links of one source, which processes take in turn; none is this program
	Other []Program // as many links of the contestant's build, if that is another: each arm then has its own process
	Found []Process // so far
	Left  string    // why no more processes are measured

	order []int // of the links
}

func (c *Comparison) String() string {
	return strings.TrimPrefix(c.Spec.Workload.Title+", "+c.Spec.Arms[len(c.Spec.Arms)-1], ", ")
}

// Result decides what the processes so far have found.
func (c *Comparison) Result(plan Plan) Result {
	plan.AllCores = cmp.Or(c.Spec.Procs, runtime.NumCPU()) > 1 || c.Spec.Workload.Apart
	plan.OneCaller = c.Spec.Workload.TellsCores() && c.Spec.Servers == nil
	return Decide(plan, c.Found)
}

// takes is how long a process takes, about.
func (c *Comparison) takes() time.Duration {
	turn := Turn
	if c.Other != nil {
		turn *= 2
	}
	return 400*time.Millisecond + time.Duration(len(c.Spec.Arms)*c.Spec.Blocks)*(turn+c.Spec.Workload.Extra())
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
type Campaign struct {
	Plan        Plan
	Comparisons []*Comparison
	Seed        uint64 // of all orders

	// More tells whether another round follows so many. If nil, as many as planned do.
	More func(rounds int) bool
	// Kept is told of each process that has measured.
	Kept func(*Comparison, timing.Record) error
	// Show is told what is being done, and how much is left of how long it all takes.
	Show func(what string, left, all time.Duration)
	// Measure is Run unless a test has another.
	Measure Measure

	Warnings, Failures []string // lines: what was skipped or measured again, and what failed
}

// Run measures. It goes on with the others after a comparison that fails. It returns an error if ctx ends or Kept
// fails; what was measured before stays.
func (c *Campaign) Run(ctx context.Context) error {
	random := rand.New(rand.NewPCG(c.Seed, 0))
	var all time.Duration
	for _, one := range c.Comparisons {
		if len(one.Base) == 0 {
			one.Base = []Program{{}}
		}
		one.order = random.Perm(len(one.Base))
		all += time.Duration(c.Plan.Processes) * one.takes()
	}
	if c.Show == nil {
		c.Show = func(string, time.Duration, time.Duration) {}
	}
	defer c.Show("", 0, 0)
	left, began := all, time.Now()
	for i := 0; c.more(i); i++ {
		for _, j := range random.Perm(len(c.Comparisons)) {
			one, slower := c.Comparisons[j], 1.0 // than expected, by what is done
			if done := all - left; done > 0 {
				slower = max(1, float64(time.Since(began))/float64(done))
			}
			where := fmt.Sprintf("process %d of %d", i+1, max(i+1, c.Plan.Processes))
			c.Show(where+", "+one.String(), time.Duration(slower*float64(left)), time.Duration(slower*float64(all)))
			left -= one.takes()
			if one.Left != "" {
				continue
			}
			if err := c.process(ctx, one, i, one.String()+", "+where); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Campaign) more(rounds int) bool {
	for _, one := range c.Comparisons {
		if one.Left == "" {
			return c.More == nil && rounds < c.Plan.Processes || c.More != nil && c.More(rounds)
		}
	}
	return false
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
		var found Process
		if err == nil {
			found, err = ProcessOf(record)
		}
		if ctx.Err() != nil {
			return errors.New("rpcbench: interrupted")
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
		why := strings.TrimPrefix(err.Error(), "rpcbench: ")
		switch {
		case strings.HasSuffix(why, errors.ErrUnsupported.Error()), strings.Contains(why, timing.ErrClock.Error()):
			one.Left = why
			c.Warnings = append(c.Warnings, fmt.Sprintf("skipped: %s: %s", one, why))
			return nil
		case again != "":
			one.Left = why
			c.Failures = append(c.Failures, where+": "+why)
			return nil
		}
		again = why
	}
}
