package baseline

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/stacktest"
)

// BenchmarkOverhead is explained in the package comment.
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

// reportRatio reports nothing when there are too few blocks: a ratio without its interval would be believed.
func reportRatio(b *testing.B, r timing.Record, arm, base int, unit string) {
	b.Helper()
	ratio, err := r.Ratio(arm, base, level)
	if errors.Is(err, timing.ErrTooFew) {
		return
	}
	require.NoError(b, err)
	b.ReportMetric(ratio.Median, unit)
	b.ReportMetric(ratio.Lo, unit+"-lo")
	b.ReportMetric(ratio.Hi, unit+"-hi")
}
