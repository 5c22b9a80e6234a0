// Package arms measures stacks against each other in one process, with package timing. A [Group] holds the base, the
// base again and a contestant, each with a fixture of its own: more open fixtures would make each other slower.
package arms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/measure/loop"
	"github.com/rpcbench/rpcbench/internal/measure/network"
	"github.com/rpcbench/rpcbench/internal/measure/tcp"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
)

const copySuffix = " again" // ends the name of the base's second fixture

// Reconnects is how many connections more than declared n calls may open: one, or one in a thousand calls. net/http
// gives a connection up if one of its goroutines has not run for 50 ms, which happens on a busy machine. A stack that
// dials on purpose does so far more often.
func Reconnects(n int64) int64 { return max(1, n/1000) }

// Late is how often goroutines of this process have waited 50 ms or longer until they ran. The runtime keeps this
// figure anyway, of one wait in eight. A ticker would wake up amid the timed calls.
func Late() (waits int64) {
	const sampled = 8
	scheduler := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(scheduler)
	if h := scheduler[0].Value; h.Kind() == metrics.KindFloat64Histogram {
		for i, n := range h.Float64Histogram().Counts {
			if h.Float64Histogram().Buckets[i] >= 0.05 {
				waits += sampled * int64(n)
			}
		}
	}
	return waits
}

// Spec is what the arms of a group have in common.
type Spec struct {
	Workload workload.Workload
	Slice    time.Duration // its length
	Seed     uint64
	Servers  map[string]string // host:port by stack, of servers that run already
	Network  *network.Network  // of a workload whose link is routed

	// Hangs is told of a stack that doesn't even return when its fixtures are closed. Neither does the group then.
	Hangs func(*child.Hang)
}

// Arm is a stack that takes part.
type Arm struct {
	Name       string
	Reconnects int64 // connections of all its fixtures beyond the one of each

	stack    rpcbench.Stack
	workload workload.Workload
	setup    workload.Setup                // of its next fixture; its figures are of all slices
	took     time.Duration                 // by a call, as the group's first look found
	phase    float64                       // how far into a long call the window opens, as a share
	server   atomic.Pointer[child.Server]  // of a workload that is apart
	hang     time.Duration                 // the group's
	doing    atomic.Pointer[string]        // what it is doing beside calls
	open     atomic.Pointer[workload.Open] // the watchdog closes it from another goroutine
	alone    *loop.OneCaller               // the loop of open, if that is one caller's
	calls    int64                         // made so far, by fixtures that are closed
	late     int64                         // Late before the first call
	tcp      tcp.Counters                  // of its windows, over a network
}

// call makes the next call of a single caller.
func (a *Arm) call() error { return a.alone.Call() }

// start opens the workload and makes calls until it is warm. A slice's lead-in does the rest.
func (a *Arm) start(ctx context.Context) error {
	if a.calls == 0 {
		a.late = Late()
	}
	defer a.does("its start")()
	limit := a.hang + a.workload.Starting(a.stack.Traits)
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	goroutines := make(chan string, 1) // before the start is given up
	late := time.AfterFunc(limit*9/10, func() { goroutines <- child.Goroutines() })
	o, err := a.workload.Open(bounded, a.stack, a.setup)
	intime := late.Stop()
	if err != nil && !intime && bounded.Err() != nil && ctx.Err() == nil && !errors.Is(err, syscall.EMFILE) {
		return &child.Hang{Stack: a.stack.Name, Said: fmt.Sprintf("no call had returned %v after its start (%v)", limit,
			err), Goroutines: <-goroutines}
	}
	if err != nil {
		return err
	}
	a.alone, _ = o.Loop.(*loop.OneCaller)
	a.open.Store(o)
	if err := o.Start(o.Warm); err != nil {
		return fmt.Errorf("%s: %w", a.Name, err)
	}
	return nil
}

// serve starts the server of a workload that is apart. It lives as long as the group: services are not started anew for
// each window.
func (a *Arm) serve(ctx context.Context) (err error) {
	if a.server.Load() != nil {
		return nil
	}
	defer a.does("the start of its server")()
	s, err := a.workload.Serve(ctx, a.stack, &a.setup)
	a.server.Store(s)
	return err
}

// does notes what the arm does until the end.
func (a *Arm) does(what string) (end func()) {
	a.doing.Store(&what)
	return func() { a.doing.Store(nil) }
}

// switches are those of this process, and of the arm's server if that is another.
func (a *Arm) switches() int64 {
	n := cpu.Switches(os.Getpid())
	if s := a.server.Load(); s != nil {
		n += s.Switches()
	}
	return n
}

// timed lets the calls of a slice be timed one by one.
func (a *Arm) timed(on bool) { a.alone.Timed(on) }

// window makes the calls of callers with a fixture of their own, which is closed before the next arm has its turn: its
// idle connections would stand in the other's heap.
func (a *Arm) window(ctx context.Context, edge func(open bool)) (calls int, wall time.Duration, err error) {
	before := a.setup.Figures.Latency.Count()
	if err := a.start(ctx); err != nil {
		return 0, 0, err
	}
	runtime.GC() // what starting left is not the callers', nor is what the arm before left
	lead, length := a.workload.Window(a.took)
	lead += time.Duration(a.phase * float64(a.setup.Spread))
	var counting error
	wall, err = a.open.Load().Loop.During(ctx, lead, length, func(open bool) {
		edge(open)
		counting = cmp.Or(counting, a.counts(open))
	})
	err = cmp.Or(err, counting)
	return int(a.setup.Figures.Latency.Count() - before), wall, cmp.Or(err, a.close())
}

// counts counts what TCP does in a window, which opens or closes.
func (a *Arm) counts(open bool) error {
	if a.setup.Network == nil {
		return nil
	}
	c, err := a.setup.Network.Counters()
	if open {
		a.tcp.Sub(c)
	} else {
		a.tcp.Add(c)
	}
	return err
}

// used is the CPU time of the arm's server so far, and of the router that is between it and its client.
func (a *Arm) used() (time.Duration, bool) {
	used, told := a.server.Load().Used()
	if a.setup.Network != nil {
		routed, known := a.setup.Network.Used()
		used, told = used+routed, told && known
	}
	return used, told
}

// close reports connections that the arm should not have needed. As many more are allowed as goroutines were late:
// net/http drops a connection if a goroutine has not run for 50 ms, which is the machine's doing.
func (a *Arm) close() error {
	o := a.open.Swap(nil)
	if o == nil {
		return nil
	}
	defer a.does("Close")()
	a.Reconnects += o.Beyond()
	a.calls += o.Loop.Begun()
	calls := a.calls
	err := o.Close()
	if allowed := Reconnects(calls); a.Reconnects > allowed+Late()-a.late {
		return fmt.Errorf("%s: connections were opened again %d times in %d calls, and %d are allowed: "+
			"a stack that does so by design declares Traits.Reconnects", a.Name, a.Reconnects, calls, allowed)
	}
	return err
}

// Group is the arms that are open side by side.
type Group struct {
	Arms []*Arm

	pairing *timing.Pairing
	spec    Spec
	hang    time.Duration // that a call may take
	blocks  uint64        // so far
}

// Open opens the workload of spec for stacks, which are its arms; that of a name that is there already is a copy. The
// seed decides the order of the slices. The error wraps timing.ErrClock where the clock is too coarse.
func Open(ctx context.Context, spec Spec, stacks ...rpcbench.Stack) (*Group, error) {
	g := &Group{spec: spec, hang: child.Patience}
	w, ops := spec.Workload, []timing.Arm(nil)
	for _, stack := range stacks {
		arm := &Arm{Name: stack.Name, stack: stack, workload: w, hang: g.hang}
		arm.setup.Remote, arm.setup.Figures = spec.Servers[arm.Name], loop.NewFigures(true)
		arm.setup.Network = spec.Network
		if w.Rate > 0 {
			lead, length := w.Window(0)
			arm.setup.Starts = int(2 * w.Rate * (lead + length).Seconds()) // twice as many as the window needs, about
		}
		for _, other := range g.Arms {
			if other.Name == arm.Name {
				arm.Name += copySuffix
			}
		}
		g.Arms = append(g.Arms, arm)
		op := timing.Arm{Name: arm.Name, Op: arm.call, Timed: arm.timed}
		if w.Windowed() {
			op = timing.Arm{Name: arm.Name, Window: arm.window, Switches: arm.switches}
		}
		if w.Apart && arm.setup.Remote == "" {
			op.Server = arm.used
		}
		ops = append(ops, op)
	}
	var err error
	if g.pairing, err = timing.New(ops, spec.Slice, spec.Seed); err == nil {
		err = g.watched(func() error { return g.open(ctx) })
	}
	if err != nil {
		_ = g.Close()
	}
	return g, err
}

// open gives each arm a new fixture. Where a slice brings its own, it sees that they open, and how long their windows
// have to be: as long for each arm of this process.
func (g *Group) open(ctx context.Context) error {
	took := 0 * time.Second
	for _, arm := range g.Arms {
		if err := arm.close(); err != nil {
			return err
		}
		if err := arm.serve(ctx); err != nil {
			return err
		}
		if err := arm.start(ctx); err != nil {
			return err
		}
		if !g.spec.Workload.Windowed() {
			continue
		}
		loop := arm.open.Load().Loop
		if took = max(took, loop.Warmed()); took > workload.MostCall {
			return cmp.Or(loop.Finish(), fmt.Errorf("%s: a call takes %v, and windows are of ten calls of %v at most: "+
				"give fewer callers, a smaller message or a quicker link", arm.Name, took.Round(time.Millisecond),
				workload.MostCall))
		}
		if err := cmp.Or(loop.Finish(), arm.close()); err != nil {
			return err
		}
	}
	for _, arm := range g.Arms {
		arm.setup.InTurn = g.spec.Workload.InTurn(took)
	}
	_, shortest := g.spec.Workload.Window(0)
	if _, length := g.spec.Workload.Window(took); length > shortest || g.spec.Workload.Slow() { // callers may be in step
		for _, arm := range g.Arms {
			arm.took, arm.setup.Spread = took, took
		}
	}
	runtime.GC() // what starting left is not the slices'
	return nil
}

// Block measures a slice of each arm, with new fixtures: two fixtures of one stack may differ for as long as they
// live; with new ones that luck is noise between blocks, which the interval sees. A call that hangs is ended by
// closing the fixtures.
func (g *Group) Block(ctx context.Context) error {
	return g.watched(func() (err error) {
		if g.blocks > 0 && !g.spec.Workload.Windowed() {
			err = g.open(ctx)
		}
		for _, arm := range g.Arms { // which share the plan of a block
			arm.setup.Seed = g.spec.Seed<<16 + g.blocks
			arm.phase = rand.New(rand.NewPCG(arm.setup.Seed, 2)).Float64()
		}
		if g.blocks++; err == nil {
			err = g.pairing.Block(ctx)
		}
		return err
	})
}

// watched gives do as long as a block takes, and then as long as a call may hang.
func (g *Group) watched(do func() error) error {
	// The first block has a warm-up of every arm, and all lead in. A call over a slow link takes most of a second.
	limit := g.hang + 4*timing.Longest*g.spec.Slice
	if w := g.spec.Workload; w.Windowed() {
		took, starting := 0*time.Second, 0*time.Second
		for _, arm := range g.Arms {
			took = max(took, arm.took, w.Likely(arm.stack.Traits))
			starting = max(starting, w.Starting(arm.stack.Traits))
		}
		lead, length := w.Window(took)
		limit += starting + lead + length
	}
	return g.within(limit*time.Duration(len(g.Arms)), do)
}

// Record returns the blocks and the latencies so far.
func (g *Group) Record() timing.Record {
	r := g.pairing.Record()
	for _, arm := range g.Arms {
		found := arm.setup.Figures
		l := timing.Latency{Calls: found.Latency.Count(), Sum: found.Latency.Sum(), Planned: found.Planned,
			Skipped: found.Skipped, Most: found.Most.Load()}
		l.Late, _ = found.Lateness.Quantile(0.99)
		l.P50, _ = found.Latency.Quantile(0.50)
		l.P95, _ = found.Latency.Quantile(0.95)
		l.P99, _ = found.Latency.Quantile(0.99)
		l.P999, _ = found.Latency.Quantile(0.999)
		r.Latencies = append(r.Latencies, l)
	}
	return r
}

// Routed adds to a record what the network did so far, if there is one.
func (g *Group) Routed(r timing.Record) (timing.Record, error) {
	if g.spec.Network == nil {
		return r, nil
	}
	for _, arm := range g.Arms {
		r.TCP = append(r.TCP, arm.tcp)
	}
	router, err := g.spec.Network.Router()
	r.Router = &router
	return r, err
}

// Close closes the fixtures, the newest first, and returns the first error.
func (g *Group) Close() error { return g.within(4*g.hang, g.close) }

func (g *Group) close() (err error) {
	for _, arm := range slices.Backward(g.Arms) {
		err = cmp.Or(err, arm.close())
	}
	ended, errs := sync.WaitGroup{}, make([]error, len(g.Arms))
	for i, arm := range g.Arms {
		if s := arm.server.Load(); s != nil {
			ended.Go(func() { errs[i] = s.Close() })
		}
	}
	ended.Wait()
	return cmp.Or(err, cmp.Or(errs...))
}
