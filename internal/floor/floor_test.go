package floor

import (
	"context"
	"errors"
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/pbnative"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/users"
	"github.com/rpcbench/rpcbench/rawtcp"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func TestPartsShareOneProcess(t *testing.T) {
	require.NoError(t, flag.Set("server", "process"))
	defer func() { require.NoError(t, flag.Set("server", "")) }()
	skipped := false
	testing.Benchmark(func(b *testing.B) {
		defer func() { skipped = b.Skipped() }()
		Benchmark(b)
	})
	require.True(t, skipped, "its rows would stand below a key that is not theirs")
}

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

// BenchmarkRawTCPBound compares a call of rawtcp with the sum of its parts: bytes, service, codecs. What bound-ratio is
// above 1 is rawtcp's own buffers, deadlines and lock. One op of package testing is a block of all arms, so its own ns/op
// is left out; bound-ratio is absent when the time is too short for an interval. Run it with one P, where wall time is
// CPU time:
//
//	go test ./internal/floor -run '^$' -bench RawTCPBound -benchtime 10s -cpu 1
func BenchmarkRawTCPBound(b *testing.B) {
	arms := []timing.Arm{{Name: "rawtcp", Op: calls(b)}}
	for _, p := range bound() {
		arms = append(arms, timing.Arm{Name: p.name, Op: p.start(b)})
	}
	pairing, err := timing.New(arms, 25*time.Millisecond, 1)
	require.NoError(b, err)
	for b.Loop() {
		if err := pairing.Block(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op") // which leaves it out
	r := pairing.Record()
	for i, arm := range r.Arms {
		b.ReportMetric(r.NsPerOp(i), arm+"-ns/op")
	}
	ratio, err := sumOfParts(r).Ratio(0, 1, 0.95)
	if errors.Is(err, timing.ErrTooFew) {
		return
	}
	require.NoError(b, err)
	b.ReportMetric(ratio.Median, "bound-ratio")
	b.ReportMetric(ratio.Lo, "bound-ratio-lo")
	b.ReportMetric(ratio.Hi, "bound-ratio-hi")
}

// bound are the parts of a rawtcp call.
func bound() []part { return []part{{"tcp", tcp}, {"service", service}, {"codecs", codecs}} }

// calls go round the users.
func calls(tb testing.TB) func() error {
	f := stacktest.Start(tb, rawtcp.New(), rpcbench.Config{})
	round := make([]rpcbench.Call, users.Round)
	for i := range round {
		var err error
		round[i], err = f.Client.Prepare(users.Sample(i, 0))
		require.NoError(tb, err)
	}
	i := 0
	return func() error {
		i = (i + 1) % users.Round
		return round[i](context.Background())
	}
}

// sumOfParts keeps the first arm, and puts one in place of the others whose op is one of each.
func sumOfParts(r timing.Record) timing.Record {
	const ops = 1e6 // so many that rounding to nanoseconds doesn't matter
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

func TestSumOfParts(t *testing.T) {
	block := []timing.Slice{{Ops: 10, Wall: 90}, {Ops: 10, Wall: 40}, {Ops: 3, Wall: 4}, {Ops: 6, Wall: 4}}
	r := timing.Record{Arms: []string{"whole", "a", "b", "c"}, Blocks: slices.Repeat([][]timing.Slice{block}, 9)}
	ratio, err := sumOfParts(r).Ratio(0, 1, 0.95)
	require.NoError(t, err)
	require.InDelta(t, 9.0/(4+4.0/3+4.0/6), ratio.Median, 1e-6)
}

// The bare ping-pong carries as many bytes as a call: a frame's header and the message, both ways.
func TestFrames(t *testing.T) {
	asked := generated()[0]
	reply, err := pbnative.API().NewService()(t.Context(), generated()[0])
	require.NoError(t, err)
	sent, received := frames(t)
	require.Equal(t, 5+proto.Size(asked), sent)
	require.Equal(t, 5+proto.Size(reply), received)
}
