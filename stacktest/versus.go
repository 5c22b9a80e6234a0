package stacktest

import (
	"errors"
	"flag"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// BenchmarkVersus tells how many times as long a call takes on each contestant as on base, from slices taken in turn
// inside this process (docs/method.md). -benchtime is what each contestant is given, 1 s by default and 6 s for a
// verdict; -benchtime=130x is a number of blocks. There is a row per stack with
//
//	ns/op, cpu-ns/op               medians over blocks
//	B/op, allocs/op                of client and server together, from a pass of their own
//	base-ratio, base-ratio-lo, -hi the median ratio to base and its interval; those of a run hold together at 95 %
//
// and one for base, which takes part twice, with
//
//	aa-ratio, aa-ratio-lo, -hi     base against itself
//	noise-floor-%                  the end of that interval farther from 1, of the group of contestants where it is
//	                               farthest: no difference below it is to be believed
//	seed                           of the order of the slices
//
// Ratios are absent where there were too few blocks for an interval. If a call fails, the benchmark does, and the rows of
// the stacks that were being measured have the figures so far and incomplete=1.
//
// The first row of a run (of -count and -cpu) measures for all, outside its timer, and the others only report: the number
// of iterations means nothing. With -server it is skipped.
func BenchmarkVersus(b *testing.B, base rpcbench.Stack, contestants ...rpcbench.Stack) {
	b.Helper()
	if placed().where != "" {
		b.Skip("rpcbench: versus: its stacks share one process: run it without -server")
	}
	if len(contestants) == 0 {
		b.Fatalf("rpcbench: versus: nothing to compare with %s: name another stack", base.Name)
	}
	level := versus.Level(len(contestants))
	runs := map[versusKey]*versusRun{}
	var failed error
	row := func(stack rpcbench.Stack, report func(*testing.B, *versusRun)) {
		rounds := map[int]int{}
		b.Run("stack="+stack.Name, func(b *testing.B) {
			Procs(b)
			procs := runtime.GOMAXPROCS(0)
			if b.N == 1 { // package testing tries each row of a -count once, and goes on with more unless told otherwise
				rounds[procs]++
				if budget().Blocks != 1 {
					return
				}
			}
			key := versusKey{procs, rounds[procs]}
			if runs[key] == nil {
				b.StopTimer()
				run := &versusRun{seed: rand.Uint64N(1e6)}
				run.results, run.err = versus.Tournament(b.Context(), base, contestants, versus.Slice, budget(), run.seed, nil)
				runs[key] = run
				if errors.Is(run.err, timing.ErrClock) {
					b.Skip(run.err) // there is no ratio to be had on this platform
				}
				if failed == nil {
					failed = run.err
				}
				b.StartTimer()
			}
			report(b, runs[key])
		})
	}
	row(base, func(b *testing.B, run *versusRun) {
		aa, floor, ok := versus.Base(run.results, level)
		versusRow(b, aa, 0)
		reportRatio(b, aa.Record, 1, "aa-ratio", level)
		if ok {
			b.ReportMetric(100*floor, "noise-floor-%")
		}
		b.ReportMetric(float64(run.seed), "seed")
	})
	for _, stack := range contestants {
		row(stack, func(b *testing.B, run *versusRun) {
			for _, r := range run.results {
				if arm := slices.Index(r.Arms, stack.Name); arm >= 0 {
					versusRow(b, r, arm)
					reportRatio(b, r.Record, arm, "base-ratio", level)
					return
				}
			}
			b.Fatal("not measured")
		})
	}
	if failed != nil {
		b.Fatal(failed)
	}
}

// versusKey tells the runs of one benchmark apart.
type versusKey struct{ procs, round int }

type versusRun struct {
	seed    uint64
	results []versus.Result
	err     error
}

// versusRow reports an arm's own figures; there is no row without any.
func versusRow(b *testing.B, r versus.Result, arm int) {
	b.Helper()
	if len(r.Blocks) == 0 {
		b.Fatal("not measured")
	}
	b.ReportMetric(r.NsPerOp(arm), "ns/op")
	if ns := r.CPUNsPerOp(arm); ns > 0 {
		b.ReportMetric(ns, "cpu-ns/op")
	}
	b.ReportMetric(r.Costs[arm].Bytes, "B/op")
	b.ReportMetric(r.Costs[arm].Allocs, "allocs/op")
	if n := r.Reconnects[arm]; n > 0 {
		b.ReportMetric(float64(n), "reconnects")
	}
	if r.Incomplete {
		b.ReportMetric(1, "incomplete")
	}
}

// reportRatio reports nothing when there are too few blocks: a ratio without its interval would be believed.
func reportRatio(b *testing.B, r timing.Record, arm int, unit string, level float64) {
	b.Helper()
	if ratio, err := r.Ratio(arm, 0, level); err == nil {
		b.ReportMetric(ratio.Median, unit)
		b.ReportMetric(ratio.Lo, unit+"-lo")
		b.ReportMetric(ratio.Hi, unit+"-hi")
	}
}

// budget reads -benchtime, which package testing has checked.
func budget() versus.Budget {
	value := flag.Lookup("test.benchtime").Value.String()
	if count, ok := strings.CutSuffix(value, "x"); ok {
		blocks, _ := strconv.Atoi(count)
		return versus.Budget{Blocks: blocks}
	}
	limit, _ := time.ParseDuration(value)
	return versus.Budget{Time: limit}
}
