package stacktest

import (
	"cmp"
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
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
)

// BenchmarkVersus measures how many times as long a call takes on each contestant as on base. It times short slices of
// both in turn, in several processes one after the other (docs/method.md). At a Rate the ratio is of
// CPU time, since all stacks take as long. There is a row per stack:
//   - base-ratio, base-ratio-lo, base-ratio-hi: the ratio to base and its interval over processes. The intervals of all
//     rows hold together at 95 %.
//   - aa-ratio, aa-ratio-lo, aa-ratio-hi: in the row of the base, its ratio to a copy of itself. It should be 1.
//   - cpu-ratio, cpu-ratio-lo, cpu-ratio-hi: the ratio of CPU times, where several cores take part
//   - noise-floor-%: what a difference has to exceed
//   - base-moved-%: how far the base's ns/op moved between processes
//   - processes: how many have measured and count
//   - ns/op, cpu-ns/op: means over processes
//   - B/op, allocs/op: from a pass of their own
//   - seed: decides the order of the slices
//
// A log line has the verdict, or the reason why there is none. One process gives no ratio, since that without an
// interval would be taken for a result. Nothing goes on, and nothing that was disturbed is measured again.
//
// One op is a process of at least ten blocks: slices of the base, of its copy and of the contestant. -processes says
// how many a row takes, 8 unless given, and -benchtime for how long they measure together. The row is skipped where
// -bench=. asks for everything, unless -processes is given.
func BenchmarkVersus(b *testing.B, w rpcbench.Workload, base rpcbench.Stack, contestants ...rpcbench.Stack) {
	b.Helper()
	r := row{Workload: workload.Workload(w)}
	orFail(b, "versus", r.CheckWindows())
	switch {
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
	if found.CPU != nil {
		metric(b, found.CPU.Ratio, "cpu-ratio")
		metric(b, found.CPU.Lo, "cpu-ratio-lo")
		metric(b, found.CPU.Hi, "cpu-ratio-hi")
	}
}

// measure measures a row in child processes, one after the other. A signal ends this process after the ratio so far is
// printed.
func (r row) measure(b *testing.B, contestants int, seed uint64, stacks []rpcbench.Stack) versus.Result {
	b.Helper()
	ctx, stop := signal.NotifyContext(b.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	planned := cmp.Or(current.processes, 8)
	benchtime, _ := time.ParseDuration(flag.Lookup("test.benchtime").Value.String()) // 0 if that is a number of ops
	turns := benchtime / versus.Turn / time.Duration(len(stacks)*planned)
	one := &versus.Comparison{Spec: versus.Spec{Workload: r.Workload, Slice: versus.Slice, Seed: seed,
		Procs: runtime.GOMAXPROCS(0), Blocks: r.Blocks(max(2*versus.FewestBlocks, int(turns)))}}
	for _, s := range stacks {
		one.Spec.Arms = append(one.Spec.Arms, s.Name)
	}
	loops := true
	campaign := versus.Campaign{Seed: seed, Comparisons: []*versus.Comparison{one},
		Plan: versus.Plan{Processes: planned, Contestants: contestants, Longer: "-benchtime"},
		More: func(rounds int) bool {
			loops = loops && b.Loop()
			return loops || rounds < planned
		}}
	err := campaign.Run(ctx)
	found := one.Result(campaign.Plan)
	for _, line := range campaign.Warnings {
		b.Log("rpcbench: versus: " + line)
	}
	if one.Cant { // this platform's clock is too coarse for a ratio
		b.Skip("rpcbench: versus: " + one.Left)
	}
	for _, line := range campaign.Failures {
		err = errors.New(line)
	}
	said := fmt.Sprintf("rpcbench: versus: in %d processes %s", len(one.Found), r.stack.Name)
	said = strings.Replace(said, " 1 processes ", " 1 process ", 1)
	if found.Ratio > 0 {
		said += fmt.Sprintf(" took %.4f times as long as %s, %.1f %% interval %.4f–%.4f", found.Ratio, stacks[0].Name,
			100*found.Level, found.Lo, found.Hi)
	}
	said += ": " + found.Said()
	if err != nil {
		why := strings.TrimPrefix(err.Error(), "rpcbench: ")
		if err = errors.New("rpcbench: versus: " + why); len(one.Found) > 0 {
			err = fmt.Errorf("%s; then: %s", said, why)
		}
		if ctx.Err() != nil {
			orExit(1, err)
		}
		b.Fatal(err)
	}
	if len(stacks) > 2 {
		b.Log(said)
	}
	return found
}
