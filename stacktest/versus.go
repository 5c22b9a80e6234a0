package stacktest

import (
	"errors"
	"flag"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// BenchmarkVersus tells how many times as long a call takes on each contestant as on base, from slices taken in turn
// inside this process (docs/method.md). One op is a block: a slice of the base, of its copy and of the contestant. So -benchtime
// is what each row is given, 1 s by default and 6 s for a verdict; -benchtime=130x is a number of blocks. There is a row per stack with
//
//	ns/op, cpu-ns/op               of a call: medians over blocks
//	B/op, allocs/op                of client and server together, from a pass of their own
//	base-ratio, base-ratio-lo, -hi the median ratio to base and its interval; those of all rows hold together at 95 %
//	noise-floor-%                  how far the interval of the base against its own copy reaches from 1: ignore smaller differences
//	seed                           of the order of the slices
//
// and one for base, with aa-ratio, aa-ratio-lo and aa-ratio-hi, the base against its copy, in place of base-ratio.
//
// Ratios are absent where -benchtime asks for too few blocks. With -server the benchmark is skipped.
func BenchmarkVersus(b *testing.B, base rpcbench.Stack, contestants ...rpcbench.Stack) {
	b.Helper()
	if placed().where != "" {
		b.Skip("rpcbench: versus: its stacks share one process: run it without -server")
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

// versusRow measures arms, the base twice first, and reports the last.
func versusRow(b *testing.B, level float64, arms ...rpcbench.Stack) {
	b.Helper()
	defer noRow(b, arms[len(arms)-1])
	Procs(b)
	g := new(versus.Group)
	defer func() {
		if err := g.Close(); err != nil {
			b.Fatal(err)
		}
	}()
	for _, stack := range arms {
		if err := g.Open(b.Context(), stack); err != nil {
			b.Fatal(err)
		}
	}
	base, last := 0, len(arms)-1
	if last == 1 {
		last = base
	}
	cost, err := g.Arms[last].Cost()
	if err != nil {
		b.Fatal(err)
	}
	seed := rand.Uint64N(1e6)
	if err := g.Start(versus.Slice, seed); errors.Is(err, timing.ErrClock) {
		b.Skip(err) // there is no ratio to be had on this platform
	} else if err != nil {
		b.Fatal(err)
	}
	block := func() {
		if err := g.Block(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		block()
	}
	_, err = g.Record().Ratio(1, base, level)
	for byTime := !strings.HasSuffix(flag.Lookup("test.benchtime").Value.String(), "x"); byTime && errors.Is(err, timing.ErrTooFew); {
		block()
		_, err = g.Record().Ratio(1, base, level)
	}
	r := g.Record()
	b.ReportMetric(r.NsPerOp(last), "ns/op")
	if ns := r.CPUNsPerOp(last); ns > 0 {
		b.ReportMetric(ns, "cpu-ns/op")
	}
	b.ReportMetric(cost.Bytes, "B/op")
	b.ReportMetric(cost.Allocs, "allocs/op")
	b.ReportMetric(float64(seed), "seed")
	if n := g.Arms[last].Reconnects; n > 0 {
		b.ReportMetric(float64(n), "reconnects")
	}
	aa, err := r.Ratio(1, base, level)
	if err != nil {
		return // a ratio without its interval would be believed
	}
	b.ReportMetric(100*aa.Floor(), "noise-floor-%")
	ratio, unit := aa, "aa-ratio"
	if last > 1 {
		unit = "base-ratio"
		if ratio, err = r.Ratio(last, base, level); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(ratio.Median, unit)
	b.ReportMetric(ratio.Lo, unit+"-lo")
	b.ReportMetric(ratio.Hi, unit+"-hi")
}
