package pages

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// sweep is a run at two rates and saturated, no two figures of which are alike.
func sweep(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	s := report.Summary{Release: report.Release, Base: "httpjson", Over: "calls a second", Environment: []string{
		"cpu=A Machine", "cores=2", "go=go1.26.8", "date=2026-11-23", "commit=abc", "google.golang.org/grpc@v1.85.0"}}
	figure := func(ratio float64, v verdict.Verdict) verdict.Figure {
		return verdict.Figure{Ratio: ratio, Lo: ratio * 0.99, Hi: ratio * 1.01, BaseNs: 1000, Verdict: v}
	}
	percentile := func(ratio float64) verdict.Percentile {
		return verdict.Percentile{Ratio: ratio, Lo: ratio * 0.99, Hi: ratio * 1.01, BaseNs: 1000, CopyNs: 1000, StackNs: 900}
	}
	for i, load := range []string{"2000", "10000", report.Saturated} {
		n := float64(i)
		name, time := "apart.rate."+load, verdict.Figure{}
		if load == report.Saturated {
			name, time = "apart.saturated", figure(0.8, verdict.Less)
		}
		s.Answers = append(s.Answers, report.Answer{Workload: name, Does: "calls a second: " + load, Value: load,
			Stack: "grpcprotobuf", Leads: report.ByCPU, GOMAXPROCS: 2,
			BaseFacts: &report.Counts{Connections: 100}, Facts: &report.Counts{Connections: 1},
			Answer: verdict.Answer{Processes: verdict.Counts{Planned: 8, Counted: 8}, Time: time,
				CPU:         figure(1.4-n/10, verdict.More),
				Percentiles: verdict.Percentiles{P50: percentile(1.001 - n/10), P99: percentile(1.5 - n/2.5)}}})
	}
	data, err := json.Marshal(s)
	require.NoError(t, err)
	write(t, root, "sweep/summary.json", string(data))
	write(t, root, "sweep/bench.txt", "")
	write(t, root, "go.mod", "module x\n")
	write(t, root, "study/go.mod", "module x/study\n")
	return root
}

// TestShortTable: each cell has its own quantity of its own load, with its sign, and nothing where nothing is decided.
func TestShortTable(t *testing.T) {
	require.Equal(t, `| gRPC compared with JSON | small |
|---|---:|
| CPU per call at 2,000 calls/s | +40% |
| median latency at 2,000 calls/s | no clear difference |
| p99 latency at 10,000 calls/s | +10% |
| median latency, saturated | −20% |
| p99 latency, saturated | −30% |
| calls per second, saturated | +25% |
| ↳ over all our runs of this setup | +25% (1 run) |`,
		filled(t, sweep(t), `table "short" "small" "sweep" "apart." ""`))
}

// TestTold: a sentence has the stack, the figure and the direction of the answer that it asks for.
func TestTold(t *testing.T) {
	root := sweep(t)
	for asked, want := range map[string]string{
		`"apart.rate.2000" "grpcprotobuf") "CPU"`:    "gRPC uses 40% more CPU",
		`"apart.rate.2000" "grpcprotobuf") "median"`: "gRPC shows no clear difference in median latency",
		`"apart.rate.2000" "grpcprotobuf") "p99"`:    "gRPC has a 50% higher p99 latency",
		`"apart.saturated" "grpcprotobuf") "p99"`:    "gRPC has a 30% lower p99 latency",
		`"apart.saturated" "grpcprotobuf") "calls"`:  "gRPC answers 25% more calls per second",
		`"apart.rate.2000" "grpcprotobuf") "CPU" "at a rate" (led "sweep" "apart.saturated" "grpcprotobuf") "when full"`: "" +
			"gRPC uses 40% more CPU at a rate and 20% more when full",
		`"apart.rate.2000" "grpcprotobuf") "p99" (led "sweep" "apart.saturated" "grpcprotobuf") "when full"`: "" +
			"gRPC has a 50% higher p99 latency and 30% lower when full",
		`"apart.rate.10000" "grpcprotobuf") "median" (led "sweep" "apart.rate.2000" "grpcprotobuf") "at a rate"`: "" +
			"gRPC has a 10% lower median latency and no clear difference at a rate",
	} {
		require.Equal(t, want, filled(t, root, `told (led "sweep" `+asked), asked)
	}
	for asked, why := range map[string]string{
		`"apart.rate.2000" "grpcprotobuf") "calls"`: "has no calls per second",
		`"apart.rate.2000" "grpcprotobuf") "speed"`: "no amount is called",
		`"apart.rate.2000" "grpcprotobuf") "CPU" 2`: "of words and answers, and of no int",
	} {
		_, err := fill(root, `{{told (led "sweep" `+asked+"}}")
		require.ErrorContains(t, err, why)
	}
	require.Equal(t, "shows no clear difference in median latency",
		filled(t, root, `unclear (led "sweep" "apart.rate.2000" "grpcprotobuf") "median"`))
	_, err := fill(root, `{{unclear (led "sweep" "apart.rate.2000" "grpcprotobuf") "CPU"}}`)
	require.ErrorContains(t, err, "grpcprotobuf has a clear difference in CPU")
	_, err = fill(root, `{{servers (led "sweep" "apart.rate.2000" "grpcprotobuf")}}`)
	require.ErrorContains(t, err, "apart.rate.2000 has no CPU of servers alone")
	one, other := &comparison{OfCPU: true}, &comparison{OfCPU: true}
	one.Stack, one.Ratio, other.Stack, other.Ratio = "httpjson", 1, "httpjsoniter", 1
	require.PanicsWithError(t, "a sentence about httpjson has a figure of httpjsoniter",
		func() { told(one, "CPU", other) }, "another stack's figure")
	one.BaseMeans.ServerCPUNs, one.StackMeans.ServerCPUNs = 20_000, 30_000
	require.Equal(t, "20 µs with JSON and 30 µs with JSON", servers(one))
}
