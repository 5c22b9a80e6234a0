package stacktest

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
)

// BenchmarkVersus measures how many times as long a call takes on each contestant as on base. It times short slices of
// both in turn, in several processes one after the other (docs/method.md). A workload with a Rate is refused, since all
// stacks take as long then. There is a row per stack:
//   - base-ratio, base-ratio-lo, base-ratio-hi: the ratio to base and its interval over processes. The intervals of all
//     rows hold together at 95 %.
//   - aa-ratio, aa-ratio-lo, aa-ratio-hi: in the row of the base, its ratio to a copy of itself. It should be 1.
//   - noise-floor-%: what a difference has to exceed
//   - base-moved-%: how far the base's ns/op moved between processes
//   - processes: how many have measured and count
//   - ns/op, cpu-ns/op: means over processes
//   - B/op, allocs/op: from a pass of their own
//   - seed: decides the order of the slices
//
// A log line has the verdict, or the reason why there is none. Fewer than four processes give no ratio, since one
// without an interval would be taken for a result.
//
// One op is a process of at least ten blocks: slices of the base, of its copy and of the contestant. -processes says
// how many a row takes, 8 unless given, and -benchtime for how long they measure together. The row is skipped where
// -bench=. asks for everything, unless -processes is given.
func BenchmarkVersus(b *testing.B, w rpcbench.Workload, base rpcbench.Stack, contestants ...rpcbench.Stack) {
	b.Helper()
	r := row{Workload: workload.Workload(w)}
	orFail(b, "versus", r.Check())
	switch {
	case w.Rate != 0:
		b.Fatal("rpcbench: versus: at a rate all stacks take as long: compare the cpu-ns/op of Benchmark")
	case current.processes == 0 && !askedFor(b):
		b.Skip("rpcbench: versus: -bench asks for everything")
	case len(contestants) == 0:
		b.Fatalf("rpcbench: versus: nothing to compare with %s: name another stack", base.Name)
	}
	for _, s := range contestants {
		if s.Method != base.Method {
			b.Fatalf("rpcbench: versus: %s serves %q, and %s %q: stacks of one method are compared", base.Name, base.Method,
				s.Name, s.Method)
		}
	}
	b.Run("stack="+base.Name, func(b *testing.B) { r.versus(b, len(contestants), base, base) })
	for _, stack := range contestants {
		b.Run("stack="+stack.Name, func(b *testing.B) { r.versus(b, len(contestants), base, base, stack) })
	}
}

// askedFor tells whether -bench asks for this benchmark, and not for everything. If not, a line says how to.
func askedFor(b *testing.B) bool {
	b.Helper()
	first, _, _ := strings.Cut(flag.Lookup("test.bench").Value.String(), "/")
	all, err := regexp.MatchString(first, "x")
	if all && err == nil {
		name, _, _ := strings.Cut(strings.TrimPrefix(b.Name(), "Benchmark"), "/")
		remark("%s takes several processes for each row: name it, as in -bench %[1]s", name)
	}
	return !all
}

// versus measures stacks, which begin with the base twice, and reports the last one.
func (r row) versus(b *testing.B, contestants int, stacks ...rpcbench.Stack) {
	b.Helper()
	r.stack = stacks[len(stacks)-1]
	defer noRow(b, r.stack)
	Procs(b)
	r.procs(b)
	counted := r.Workload
	counted.Procs = runtime.GOMAXPROCS(0)
	cost, err := counted.Look(b.Context(), r.stack, 1000) // in a pass of its own
	skipOrFail(b, r.stack, err)
	seed := rand.Uint64N(1e6)
	found := r.measure(b, contestants, seed, stacks)
	metric(b, found.Ns, "ns/op")
	if found.CPUNs > 0 {
		metric(b, found.CPUNs, "cpu-ns/op")
	}
	metric(b, cost.AllocBytes, "B/op")
	metric(b, cost.Allocs, "allocs/op")
	metric(b, float64(seed), "seed")
	metric(b, float64(found.Processes), "processes")
	if found.Ratio == 0 {
		return
	}
	unit := "base-ratio"
	if len(stacks) == 2 {
		unit = "aa-ratio"
	}
	metric(b, 100*found.NoiseFloor(), "noise-floor-%")
	metric(b, 100*found.Moved, "base-moved-%")
	metric(b, found.Ratio, unit)
	metric(b, found.Lo, unit+"-lo")
	metric(b, found.Hi, unit+"-hi")
}

// benchtime returns the value of -benchtime, or 0 if that is a number of ops.
func benchtime() time.Duration {
	d, _ := time.ParseDuration(flag.Lookup("test.benchtime").Value.String())
	return d
}

// measure measures a row in child processes, one after the other. A signal ends this process after the ratio so far is
// printed.
func (r row) measure(b *testing.B, contestants int, seed uint64, stacks []rpcbench.Stack) versus.Result {
	b.Helper()
	ctx, stop := signal.NotifyContext(b.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	path, err := os.Executable()
	orFail(b, "versus", err)
	planned := current.processes
	if planned == 0 {
		planned = 8
	}
	last := len(stacks) - 1
	turns := benchtime() / versus.Turn / time.Duration(len(stacks)*planned)
	spec := versus.Spec{Workload: r.Workload, Slice: versus.Slice, Seed: seed, Procs: runtime.GOMAXPROCS(0),
		Blocks: r.Blocks(max(versus.FewestBlocks, int(turns)))}
	for _, s := range stacks {
		spec.Arms = append(spec.Arms, s.Name)
	}
	var all []versus.Process
	result := func() versus.Result {
		return versus.Decide(versus.Plan{Processes: planned, Contestants: contestants, AllCores: spec.Procs > 1,
			OneCaller: r.TellsCores(), Longer: "-benchtime"}, all)
	}
	said := func(r versus.Result) string {
		said := fmt.Sprintf("rpcbench: versus: in %d processes %s", len(all), spec.Arms[last])
		if len(all) == 1 {
			said = "rpcbench: versus: in 1 process " + spec.Arms[last]
		}
		if r.Ratio > 0 {
			said += fmt.Sprintf(" took %.4f times as long as %s, %.1f %% interval %.4f–%.4f", r.Ratio, spec.Arms[0], 100*r.Level,
				r.Lo, r.Hi)
		}
		return said + ": " + r.Said()
	}
	process := func() {
		_, p, mended, err := versus.Measure(ctx, spec, versus.Program{Path: path})
		if ctx.Err() != nil {
			err = errors.New("rpcbench: versus: interrupted")
		}
		if err != nil && strings.Contains(err.Error(), timing.ErrClock.Error()) {
			b.Skip(err) // this platform's clock is too coarse for a ratio
		}
		if err != nil && len(all) > 0 {
			err = fmt.Errorf("%s; then: %s", said(result()), strings.TrimPrefix(err.Error(), "rpcbench: "))
		}
		if ctx.Err() != nil {
			orExit(1, err)
		}
		orFail(b, "versus", err)
		if mended != "" {
			b.Logf("rpcbench: versus: process %d was measured again: %s", len(all)+1, mended)
		}
		all = append(all, p)
		spec.Seed++
	}
	for b.Loop() {
		process()
	}
	for len(all) < planned {
		process()
	}
	found := result()
	if last > 1 {
		b.Log(said(found))
	}
	return found
}
