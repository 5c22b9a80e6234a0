// Package versus opens stacks side by side in one process and measures them against each other with package timing: the base,
// the base again, each with a fixture of its own, and a contestant. More open fixtures would make each other slower.
package versus

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
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

	// Margin is the difference that verdicts of equal allow, as a fraction.
	Margin = 0.02

	copySuffix = " again" // ends the name of the base's second fixture

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

	Reconnects int64 // connections of all its fixtures beyond the one of each
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
	a.Reconnects += f.Accepted() - 1
	if allowed := Reconnects(int64(a.next)); a.Reconnects > allowed {
		_ = f.Close()
		return fmt.Errorf("rpcbench: %s: %d connections in %d calls beyond the one to be used throughout; %d are allowed", a.Name, a.Reconnects, a.next, allowed)
	}
	return f.Close()
}

// Group is the arms that are open side by side.
type Group struct {
	Arms []*Arm

	pairing *timing.Pairing
	blocks  int
	limit   time.Duration // of a block
	hang    time.Duration // that a call may take; 0 is hangLimit
}

// Open starts a fixture of stack and adds it to the group, under the stack's name, or as a copy if that is there.
func (g *Group) Open(ctx context.Context, stack rpcbench.Stack) error {
	arm := &Arm{Name: stack.Name, stack: stack, calls: make([]rpcbench.Call, users.Round)}
	for _, other := range g.Arms {
		if other.Name == arm.Name {
			arm.Name += copySuffix
		}
	}
	if err := arm.open(ctx); err != nil {
		if f := arm.fixture.Load(); f != nil {
			_ = f.Close()
		}
		return err
	}
	g.Arms = append(g.Arms, arm)
	return nil
}

// Start readies the group for Block. Its error wraps timing.ErrClock where the clock is too coarse.
func (g *Group) Start(slice time.Duration, seed uint64) (err error) {
	arms := make([]timing.Arm, len(g.Arms))
	for i, arm := range g.Arms {
		arms[i] = timing.Arm{Name: arm.Name, Op: arm.Op}
	}
	// The first block has a warm-up of every arm, and all lead in.
	g.limit = cmp.Or(g.hang, hangLimit) + 4*timing.Longest*slice*time.Duration(len(arms))
	g.pairing, err = timing.New(arms, slice, seed)
	runtime.GC() // what came before is not the slices'
	return err
}

// Block measures a slice of each arm, with new fixtures but for the first block: two fixtures of one stack may differ for as long as
// they live; with new ones that luck is noise between blocks, which the interval sees. A call that hangs for ten seconds is ended by
// closing the fixtures; a call that panics is an error.
func (g *Group) Block(ctx context.Context) (err error) {
	if g.blocks > 0 {
		for _, arm := range g.Arms {
			if err := arm.close(); err != nil {
				return err
			}
			if err := arm.open(ctx); err != nil {
				return err
			}
		}
		runtime.GC() // what starting left is not the slices'
	}
	g.blocks++
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("rpcbench: panic: %v, at %s", p, panicked())
		}
	}()
	stop := watch(g.limit, g.Arms...)
	err = g.pairing.Block(ctx)
	if inTime := stop(); err != nil && !inTime {
		err = fmt.Errorf("%w (a call hung, so the fixtures were closed)", err)
	}
	return err
}

// Record returns the blocks so far.
func (g *Group) Record() timing.Record { return g.pairing.Record() }

// Close closes the fixtures, the newest first, and returns the first error.
func (g *Group) Close() (err error) {
	for _, arm := range slices.Backward(g.Arms) {
		if e := arm.close(); err == nil {
			err = e
		}
	}
	g.Arms = nil
	return err
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
