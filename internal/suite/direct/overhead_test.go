// Package direct answers what this library's own layers cost.
//
// A direct form is a stack's call written by hand from the documentation of net/http, grpc-go or connect-go, without
// Stack, Client or Call. TestSameMessages holds a direct form to the stack's own bytes: a form that did less would make
// the stack look slow, and one that did more would hide what the stack costs. TestAllocationsAtMostDirect fails when a
// stack's call allocates more than the direct form's, on any machine.
package direct

import (
	"math"
	"testing"
	"time"

	"github.com/aclements/go-moremath/stats"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/stacktest"
)

// BenchmarkOverhead measures the time, in pairs (package timing). Run it with one P, where wall time is CPU time:
//
//	go test ./internal/suite/direct -run '^$' -bench Overhead -benchtime 60s -cpu 1
//
// ns/op is the stack's time and direct-ns/op the direct form's, each a median over blocks. direct-ratio is the stack's
// time divided by the direct form's, with its 95 % interval beside it. aa-ratio compares the direct form with a second
// fixture of the same: what its interval holds beside 1 is noise. Ratios are absent when the time is too short for an
// interval. One op is one block of all arms, so B/op and allocs/op of -benchmem mean nothing here. An interval speaks
// for one process: run several.
func BenchmarkOverhead(b *testing.B) {
	for _, f := range forms() {
		b.Run("stack="+f.name, func(b *testing.B) {
			overhead(b, inTurn(b, f.direct(b, bare(), sample())), inTurn(b, f.viaStack(b, nil, sample())))
		})
	}
}

const (
	slice = 25 * time.Millisecond
	level = 0.95
)

// The arms, as timing counts them.
const (
	direct = iota
	directAgain
	ours
)

// overhead compares two ways to make a call.
func overhead(b *testing.B, directOp, op func() error) {
	b.Helper()
	stacktest.Procs(b)
	arms := []timing.Arm{
		direct:      {Name: "direct", Op: directOp},
		directAgain: {Name: "direct again", Op: directOp},
		ours:        {Name: "ours", Op: op},
	}
	pairing, err := timing.New(arms, slice, 1)
	require.NoError(b, err)
	for b.Loop() {
		if err := pairing.Block(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	r := pairing.Record()
	b.ReportMetric(r.NsPerOp(ours), "ns/op")
	b.ReportMetric(r.NsPerOp(direct), "direct-ns/op")
	reportRatio(b, r, ours, direct, "direct-ratio")
	reportRatio(b, r, directAgain, direct, "aa-ratio")
}

// reportRatio reports nothing when there are too few blocks: a ratio without its interval would be believed. The
// interval is Student's over blocks: it holds for this process alone.
func reportRatio(b *testing.B, r timing.Record, arm, base int, unit string) {
	b.Helper()
	ratios, err := r.Ratios(arm, base)
	require.NoError(b, err)
	if len(ratios) < 6 {
		return
	}
	for i, ratio := range ratios {
		ratios[i] = math.Log(ratio)
	}
	mean, lo, hi := stats.MeanCI(ratios, level)
	b.ReportMetric(math.Exp(mean), unit)
	b.ReportMetric(math.Exp(lo), unit+"-lo")
	b.ReportMetric(math.Exp(hi), unit+"-hi")
}
