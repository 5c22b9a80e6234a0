package stacktest

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
)

// BenchmarkVersus measures how many times as long a call takes on each contestant as on base. It times short slices of
// both in turn, inside one process (docs/method.md). There is a row per stack:
//   - base-ratio, base-ratio-lo, base-ratio-hi: the median ratio to base and its interval. The intervals of all rows
//     hold together at 95 %.
//   - aa-ratio, aa-ratio-lo, aa-ratio-hi: in the row of the base, its ratio to a copy of itself. It should be 1.
//   - noise-floor-%: how far the interval of aa-ratio reaches from 1. Ignore smaller differences.
//   - ns/op, cpu-ns/op: medians over blocks
//   - B/op, allocs/op: from a pass of their own
//   - seed: decides the order of the slices
//
// One op is a block: a slice of the base, of its copy and of the contestant. -benchtime is the time for each row: 1 s
// by default, 6 s for a verdict. -benchtime=130x asks for 130 blocks. With too few blocks the ratios are absent.
//
// With -processes 16 each row is measured in 16 processes, one after the other. Its interval is made of one ratio per
// process, so another run's ratio should lie within. One op is then a process of at least ten blocks. base-moved-% is
// how far the base's ns/op moved between processes, and a log line has the verdict.
//
// With -server the benchmark is skipped.
func BenchmarkVersus(b *testing.B, base rpcbench.Stack, contestants ...rpcbench.Stack) {
	b.Helper()
	placed().note(serverFlag)
	placed().note(processesFlag)
	if placed().where != "" {
		b.Skip("rpcbench: versus: the stacks share one process: run without -server")
	}
	if len(contestants) == 0 {
		b.Fatalf("rpcbench: versus: nothing to compare with %s: name another stack", base.Name)
	}
	level := versus.Level(len(contestants))
	b.Run("stack="+base.Name, func(b *testing.B) { versusRow(b, level, base, base) })
	for _, stack := range contestants {
		b.Run("stack="+stack.Name, func(b *testing.B) { versusRow(b, level, base, base, stack) })
	}
}

// versusRow measures stacks, which begin with the base twice, and reports the last one.
func versusRow(b *testing.B, level float64, stacks ...rpcbench.Stack) {
	b.Helper()
	defer noRow(b, stacks[len(stacks)-1])
	Procs(b)
	seed := rand.Uint64N(1e6)
	small, err := workload.Find(workload.Small)
	orFail(b, "versus", err)
	g, err := versus.Open(b.Context(), small, versus.Slice, seed, stacks...)
	if errors.Is(err, timing.ErrClock) {
		b.Skip(err) // this platform's clock is too coarse for a ratio
	}
	orFail(b, "versus", err)
	defer func() { orFail(b, "versus", g.Close()) }()
	bytes, allocs, err := g.Cost()
	orFail(b, "versus", err)
	var again, arm versus.Figures
	if placed().processes > 0 {
		orFail(b, "versus", g.Close())
		again, arm = measureApart(b, level, seed, stacks)
	} else {
		again, arm = measureHere(b, level, g)
	}
	metric(b, arm.NsPerOp, "ns/op")
	if arm.CPUNsPerOp > 0 {
		metric(b, arm.CPUNsPerOp, "cpu-ns/op")
	}
	metric(b, bytes, "B/op")
	metric(b, allocs, "allocs/op")
	metric(b, float64(seed), "seed")
	if more := g.Arms[len(stacks)-1].Reconnects; more > 0 {
		metric(b, float64(more), "reconnects")
	}
	if again.Ratio.Blocks == 0 {
		return // a ratio without an interval would be taken for a result
	}
	unit := "base-ratio"
	if len(stacks) == 2 {
		unit = "aa-ratio"
	}
	metric(b, 100*again.Ratio.Floor(), "noise-floor-%")
	metric(b, arm.Ratio.Median, unit)
	metric(b, arm.Ratio.Lo, unit+"-lo")
	metric(b, arm.Ratio.Hi, unit+"-hi")
}

func measureHere(b *testing.B, level float64, g *versus.Group) (again, arm versus.Figures) {
	b.Helper()
	for b.Loop() {
		orFail(b, "versus", g.Block(b.Context()))
	}
	aa, err := g.Record().Ratio(1, 0, level)
	for benchtime() > 0 && errors.Is(err, timing.ErrTooFew) {
		orFail(b, "versus", g.Block(b.Context()))
		aa, err = g.Record().Ratio(1, 0, level)
	}
	r, last := g.Record(), len(g.Arms)-1
	ratio, _ := r.Ratio(last, 0, level) // there is one if there is an aa
	return versus.Figures{Ratio: aa}, versus.Figures{NsPerOp: r.NsPerOp(last), CPUNsPerOp: r.CPUNsPerOp(last), Ratio: ratio}
}

// benchtime returns the value of -benchtime, or 0 if that is a number of ops.
func benchtime() time.Duration {
	d, _ := time.ParseDuration(flag.Lookup("test.benchtime").Value.String())
	return d
}

// measureApart measures a row in child processes, one after the other. A signal ends this process after the ratio so
// far is printed.
func measureApart(b *testing.B, level float64, seed uint64, stacks []rpcbench.Stack) (again, arm versus.Figures) {
	b.Helper()
	ctx, stop := signal.NotifyContext(b.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	path, err := os.Executable()
	orFail(b, "versus", err)
	last := len(stacks) - 1
	turns := benchtime() / versus.Turn / time.Duration(len(stacks)*placed().processes)
	spec := versus.Spec{Slice: versus.Slice, Seed: seed, Procs: runtime.GOMAXPROCS(0), Blocks: max(versus.FewestBlocks, int(turns))}
	for _, s := range stacks {
		spec.Arms = append(spec.Arms, s.Name)
	}
	var records []timing.Record
	said := func() string {
		i := versus.Read(records, last, level).Ratio
		said := fmt.Sprintf("rpcbench: versus: in %d processes %s took %.4f times as long as %s",
			len(records), spec.Arms[last], i.Median, spec.Arms[0])
		if len(records) >= versus.Fewest {
			said += fmt.Sprintf(", %.1f %% interval %.4f–%.4f", 100*level, i.Lo, i.Hi)
		}
		return said
	}
	process := func() {
		record, err := versus.Run(ctx, spec, versus.Program{Path: path})
		if ctx.Err() != nil {
			err = errors.New("rpcbench: versus: interrupted")
		}
		if err != nil && len(records) > 0 {
			err = fmt.Errorf("%s; then: %w", said(), err)
		}
		if ctx.Err() != nil {
			orExit(1, err)
		}
		orFail(b, "versus", err)
		records = append(records, record)
		spec.Seed++
	}
	for b.Loop() {
		process()
	}
	for len(records) < placed().processes {
		process()
	}
	base := versus.Read(records, 0, level)
	again, arm = versus.Read(records, 1, level), versus.Read(records, last, level)
	metric(b, 100*base.Moved, "base-moved-%")
	metric(b, float64(len(records)), "processes")
	if last > 1 {
		b.Log(said()+":", versus.Verdict(base, again, arm, versus.Margin, versus.Fewest))
	}
	return again, arm
}
