package floor

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/users"
	"github.com/rpcbench/rpcbench/rawtcp"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func TestEveryPartRuns(t *testing.T) {
	for _, p := range parts() {
		t.Run(p.name, func(t *testing.T) {
			op := p.start(t)
			for range 2 * users.Round {
				require.NoError(t, op())
			}
		})
	}
}

func BenchmarkFloor(b *testing.B) { Benchmark(b) }

// BenchmarkRawTCPBound compares a call of rawtcp with the sum of its parts: bytes, service, codecs. What bound-ratio is
// above 1 is rawtcp's own framing, buffers and locks. One op of package testing is a block of all arms. Run it with one
// P, where wall time is CPU time:
//
//	go test ./internal/floor -run '^$' -bench RawTCPBound -benchtime 10s -cpu 1
func BenchmarkRawTCPBound(b *testing.B) {
	f := stacktest.Start(b, rawtcp.New(), rpcbench.Config{})
	calls := make([]rpcbench.Call, users.Round)
	for i := range calls {
		var err error
		calls[i], err = f.Client.Prepare(users.Sample(i, 0))
		require.NoError(b, err)
	}
	n := 0
	arms := []timing.Arm{{Name: "rawtcp", Op: func() error {
		n = (n + 1) % len(calls)
		return calls[n](context.Background())
	}}}
	for _, p := range parts()[:3] {
		arms = append(arms, timing.Arm{Name: p.name, Op: p.start(b)})
	}
	pairing, err := timing.New(arms, 25*time.Millisecond, 1)
	require.NoError(b, err)
	for b.Loop() {
		if err := pairing.Block(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	r := pairing.Record()
	for i, arm := range r.Arms {
		b.ReportMetric(r.NsPerOp(i), arm+"-ns/op")
	}
	bound, err := sumOfParts(r).Ratio(0, 1, 0.95)
	if errors.Is(err, timing.ErrTooFew) {
		return
	}
	require.NoError(b, err)
	b.ReportMetric(bound.Median, "bound-ratio")
	b.ReportMetric(bound.Lo, "bound-ratio-lo")
	b.ReportMetric(bound.Hi, "bound-ratio-hi")
}

// sumOfParts has the first arm, and in place of the others one op made of one of each.
func sumOfParts(r timing.Record) timing.Record {
	const ops = 1e6 // that rounding to nanoseconds does not matter
	sum := timing.Record{Arms: []string{r.Arms[0], "sum"}, Length: r.Length, Seed: r.Seed}
	for _, block := range r.Blocks {
		var wall time.Duration
		for _, s := range block[1:] {
			wall += s.Wall * ops / time.Duration(s.Ops)
		}
		sum.Blocks = append(sum.Blocks, []timing.Slice{block[0], {Ops: ops, Wall: wall}})
	}
	return sum
}
