// Package versus opens stacks side by side in one process and measures them against a base with package timing.
//
// The base takes part twice, each time with a fixture of its own, and one to three contestants beside it: many open
// fixtures make each other slower. More contestants are taken in groups, and each group meets the base anew.
package versus

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/users"
)

const (
	// Slice is the length of a slice, Turn about what it takes with all around it. docs/method.md has the measurements that it
	// was chosen by.
	Slice = 25 * time.Millisecond
	Turn  = 45 * time.Millisecond

	// Together is how many contestants are open beside the base and its copy.
	Together = 3

	// Margin is the difference that verdicts of equal allow, as a fraction.
	Margin = 0.02

	// Again is what the name of the base's second fixture ends in.
	Again = " again"

	warmRounds = 4                // of all users, through the measured calls; a slice's lead-in does the rest
	hangLimit  = 10 * time.Second // that a call may take
	costCalls  = 64 * users.Round // of the pass that counts allocations
)

// Level is the confidence of each of m intervals if that of all of them together is to be 95 % (Bonferroni's inequality).
func Level(m int) float64 { return 1 - 0.05/float64(max(m, 1)) }

// Arm is a stack that takes part.
type Arm struct {
	Name    string
	stack   rpcbench.Stack
	fixture atomic.Pointer[rpcbench.Fixture] // never nil once open
	calls   []rpcbench.Call
	next    int // calls made so far

	reconnects int64 // connections of all its fixtures beyond the one of each
}

// Reconnects is how many connections more than declared n calls may open: one, or one in ten thousand calls.
func Reconnects(n int64) int64 { return max(1, n/10_000) }

// Op makes the next of the arm's calls.
func (a *Arm) Op() error {
	err := a.calls[a.next%users.Round](context.Background()) // a deadline or a cancellation would cost one stack more than another
	a.next++
	return err
}

// open starts a fixture and calls it until it is warm.
func (a *Arm) open(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, hangLimit)
	defer cancel()
	f, err := rpcbench.Start(bounded, a.stack, rpcbench.Config{})
	if err != nil {
		return err
	}
	a.fixture.Store(f)
	defer watch(hangLimit, a)()
	for i := range a.calls {
		if a.calls[i], err = f.Client.Prepare(users.Sample(i, 0)); err != nil {
			return err
		}
	}
	for range warmRounds * users.Round {
		if err := a.Op(); err != nil {
			return fmt.Errorf("rpcbench: %s: warm-up: %w", a.Name, err)
		}
	}
	return nil
}

// watch closes the fixtures of arms unless what it returns is called within limit: a call that hangs then fails.
func watch(limit time.Duration, arms ...*Arm) (stop func() bool) {
	return time.AfterFunc(limit, func() {
		for _, a := range arms {
			_ = a.fixture.Load().Close()
		}
	}).Stop
}

// close reports connections that the arm should not have needed.
func (a *Arm) close() error {
	f := a.fixture.Load()
	a.reconnects += f.Accepted() - 1
	if allowed := Reconnects(int64(a.next)); a.reconnects > allowed {
		_ = f.Close()
		return fmt.Errorf("rpcbench: %s: %d connections in %d calls beyond the one to be used throughout; %d are allowed", a.Name, a.reconnects, a.next, allowed)
	}
	return f.Close()
}

// Group is the arms that are open side by side.
type Group struct {
	Arms    []*Arm
	ByClock bool // as in timing.Pairing
	Keep    bool // the fixtures throughout, for better or worse: to see what replacing them does

	hang time.Duration // that a call may take; 0 is hangLimit
}

// Open starts a fixture of stack and adds it to the group under a name of its own.
func (g *Group) Open(ctx context.Context, name string, stack rpcbench.Stack) error {
	arm := &Arm{Name: name, stack: stack, calls: make([]rpcbench.Call, users.Round)}
	if err := arm.open(ctx); err != nil {
		if f := arm.fixture.Load(); f != nil {
			_ = f.Close()
		}
		return err
	}
	g.Arms = append(g.Arms, arm)
	return nil
}

// renew replaces every fixture by a new one. Two fixtures of one stack may differ for as long as they live; with
// new ones for each block that is noise, which the interval sees.
func (g *Group) renew(ctx context.Context) error {
	for _, arm := range g.Arms {
		if err := arm.close(); err != nil {
			return err
		}
		if err := arm.open(ctx); err != nil {
			return err
		}
	}
	runtime.GC() // what starting left is not the slices'
	return nil
}

// Close closes the fixtures after the first keep of them, the newest first, and returns the first error.
func (g *Group) Close(keep int) (err error) {
	for i := len(g.Arms) - 1; i >= keep; i-- {
		if e := g.Arms[i].close(); err == nil {
			err = e
		}
	}
	g.Arms = g.Arms[:keep]
	return err
}

// Budget is how long a group is measured. Blocks, if not 0, decides; else Time, which each arm is given on average.
type Budget struct {
	Blocks int
	Time   time.Duration
}

func (budget Budget) spent(blocks, arms int, start time.Time) bool {
	if budget.Blocks > 0 {
		return blocks >= budget.Blocks
	}
	return blocks > 0 && time.Since(start) >= budget.Time*time.Duration(arms)
}

// Run measures the group. A failed call ends it: the record then has the blocks before it, beside an error that names
// the arm and the block. A call that hangs for ten seconds is ended by closing the fixtures, one that
// panics ends the group as an error does. progress, unless nil, is called after each block.
func (g *Group) Run(ctx context.Context, slice time.Duration, budget Budget, seed uint64, progress func()) (record timing.Record, err error) {
	arms := make([]timing.Arm, len(g.Arms))
	for i, arm := range g.Arms {
		arms[i] = timing.Arm{Name: arm.Name, Op: arm.Op}
	}
	pairing, err := timing.New(arms, slice, seed)
	if err != nil {
		return timing.Record{}, err
	}
	pairing.ByClock = g.ByClock
	defer func() {
		if p := recover(); p != nil {
			record, err = pairing.Record(), fmt.Errorf("rpcbench: panic: %v, at %s", p, panicked())
		}
	}()
	hang := g.hang
	if hang == 0 {
		hang = hangLimit
	}
	limit := hang + 4*timing.Longest*slice*time.Duration(len(arms)) // the first block has a warm-up of every arm, and all lead in
	for start, blocks := time.Now(), 0; !budget.spent(blocks, len(arms), start); blocks++ {
		if !g.Keep && blocks > 0 {
			if err := g.renew(ctx); err != nil {
				return pairing.Record(), err
			}
		}
		stop := watch(limit, g.Arms...)
		err := pairing.Block(ctx)
		if inTime := stop(); err != nil {
			if !inTime {
				err = fmt.Errorf("%w (a call hung, so the fixtures were closed)", err)
			}
			return pairing.Record(), err
		}
		if progress != nil {
			progress()
		}
	}
	return pairing.Record(), nil
}

// panicked is where: the first line outside of the runtime, for a deferred function that has recovered.
func panicked() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)]) // without Callers, this function and the deferred one
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "runtime.") || !more {
			return fmt.Sprintf("%s:%d", frame.File, frame.Line)
		}
	}
}

// Cost is what a call allocates, client and server together.
type Cost struct{ Bytes, Allocs float64 }

// Cost counts an arm's allocations in a pass of its own.
func (a *Arm) Cost() (Cost, error) {
	defer watch(hangLimit, a)()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range costCalls {
		if err := a.Op(); err != nil {
			return Cost{}, fmt.Errorf("rpcbench: %s: counting allocations: %w", a.Name, err)
		}
	}
	runtime.ReadMemStats(&after)
	return Cost{
		Bytes:  float64(after.TotalAlloc-before.TotalAlloc) / costCalls,
		Allocs: float64(after.Mallocs-before.Mallocs) / costCalls,
	}, nil
}

// Result is one group's: its arms are the base, the base again, and the contestants.
type Result struct {
	timing.Record
	Costs      []Cost  // per arm
	Reconnects []int64 // per arm, up to its last block: connections that were given up and opened again
	Incomplete bool    // since an arm failed
}

// Tournament measures the contestants against base, a few at a time. With an error come the results
// before it; the last of them may be incomplete. progress, unless nil, is called after each block.
func Tournament(ctx context.Context, base rpcbench.Stack, contestants []rpcbench.Stack, slice time.Duration, budget Budget, seed uint64,
	progress func()) (results []Result, err error) {
	const pair = 2
	g := &Group{}
	defer func() {
		if e := g.Close(0); err == nil {
			err = e
		}
	}()
	for _, name := range []string{base.Name, base.Name + Again} {
		if err := g.Open(ctx, name, base); err != nil {
			return nil, err
		}
	}
	for i := 0; i < max(1, len(contestants)); i += Together {
		for _, stack := range contestants[i:min(i+Together, len(contestants))] {
			if err := g.Open(ctx, stack.Name, stack); err != nil {
				return results, err
			}
		}
		costs, err := g.costs()
		if err != nil {
			return results, err
		}
		runtime.GC() // what came before is not the slices'
		record, err := g.Run(ctx, slice, budget, seed+uint64(i), progress)
		reconnects := make([]int64, len(g.Arms))
		for i, arm := range g.Arms {
			reconnects[i] = arm.reconnects
		}
		results = append(results, Result{record, costs, reconnects, err != nil})
		if err != nil {
			return results, err
		}
		if err := g.Close(pair); err != nil {
			return results, err
		}
	}
	return results, nil
}

func (g *Group) costs() ([]Cost, error) {
	costs := make([]Cost, len(g.Arms))
	for i, arm := range g.Arms {
		var err error
		if costs[i], err = arm.Cost(); err != nil {
			return nil, err
		}
	}
	return costs, nil
}

// Base returns the blocks of base and its copy of all groups, what the base allocates, and the greatest of the groups'
// noise floors as a fraction, false if a group is too short for one.
func Base(results []Result, level float64) (base Result, floor float64, ok bool) {
	short := false
	for i, r := range results {
		if i == 0 {
			base = Result{Record: timing.Record{Arms: r.Arms[:2], Length: r.Length, Seed: r.Seed}, Costs: r.Costs[:2]}
		}
		for _, block := range r.Blocks {
			base.Blocks = append(base.Blocks, block[:2])
		}
		base.Reconnects = r.Reconnects[:2]
		base.Incomplete = base.Incomplete || r.Incomplete
		aa, err := r.Ratio(1, 0, level)
		short = short || err != nil
		floor = max(floor, aa.Floor())
	}
	return base, floor, !short && len(results) > 0
}
