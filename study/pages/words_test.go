package pages

import (
	"encoding/json"
	"os"
	"path/filepath"
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
| ↳ over all our runs of this setup | +40% (1 run) |
| median latency at 2,000 calls/s | no clear difference |
| p99 latency at 10,000 calls/s | +10% |
| median latency, saturated | −20% |
| p99 latency, saturated | −30% |
| calls per second, saturated | +25% |
| ↳ over all our runs of this setup | +25% (1 run) |`,
		filled(t, sweep(t), `table "short" "small" "sweep" "apart." "" ""`))
}

// TestRangesOfRuns: where recorded runs asked the same, a sentence has the range of their figures.
func TestRangesOfRuns(t *testing.T) {
	to := func(f *verdict.Figure, ratio float64) { f.Ratio, f.Lo, f.Hi = ratio, ratio*0.99, ratio*1.01 }
	again := func(t *testing.T, change func(a *report.Answer)) (root string) {
		root = sweep(t)
		data, err := os.ReadFile(filepath.Join(root, "sweep/summary.json"))
		require.NoError(t, err)
		var s report.Summary
		require.NoError(t, json.Unmarshal(data, &s))
		for i := range s.Answers {
			change(&s.Answers[i])
		}
		data, err = json.Marshal(s)
		require.NoError(t, err)
		write(t, root, "again/summary.json", string(data))
		write(t, root, "again/bench.txt", "")
		return root
	}
	const rate, full = `(led "sweep" "apart.rate.2000" "grpcprotobuf")`, `(led "sweep" "apart.saturated" "grpcprotobuf")`
	root := again(t, func(a *report.Answer) {
		p99 := &a.Percentiles.P99
		p99.Ratio, p99.Lo, p99.Hi = 0.8, 0.79, 0.81
		if to(&a.CPU, 1.534); a.Time.Ratio > 0 {
			to(&a.Time, 0.88)
		}
	})
	require.Equal(t, "gRPC uses 40 to 53% more CPU", filled(t, root, `told `+rate+` "CPU"`))
	require.Equal(t, "12 to 20%", filled(t, root, `saved `+full+` "time"`))
	require.Equal(t, "gRPC answers 14 to 25% more calls per second", filled(t, root, `told `+full+` "calls"`))
	require.Equal(t, "20% lower to 50% higher", filled(t, root, `short `+rate+` "p99"`), "no direction is left out")
	require.Equal(t, "+40%", filled(t, root, `signed `+rate+` "CPU"`), "a cell has one run's, beside the range")
	require.Contains(t, filled(t, root, `table "short" "small" "sweep" "apart." "" ""`),
		"| ↳ over all our runs of this setup | +40% to +53% (2 runs) |")
	require.Equal(t, "gRPC uses 40 to 53% more CPU",
		filled(t, root, `told (alike "sweep" "grpcprotobuf" 2000 100 1 "apart.rate.2000").One "CPU"`))

	root = again(t, func(a *report.Answer) { to(&a.CPU, 0.95); a.CPU.Verdict = verdict.Undecided })
	require.Equal(t, "gRPC uses 5% less to 40% more CPU",
		filled(t, root, `told (alike "sweep" "grpcprotobuf" 2000 100 1 "apart.rate.2000").One "CPU"`))
	root = again(t, func(a *report.Answer) { to(&a.CPU, 1.401) })
	require.Equal(t, "40% more", filled(t, root, `short `+rate+` "CPU"`), "ranges of one percentage are that")
	root = again(t, func(a *report.Answer) { to(&a.CPU, 3); a.Others = 0.5 })
	require.Equal(t, "40% more", filled(t, root, `short `+rate+` "CPU"`), "a disturbed run doesn't count")
	root = again(t, func(a *report.Answer) {
		if a.Time.Ratio > 0 {
			to(&a.Time, 1.3)
		}
	})
	_, err := fill(root, `{{saved `+full+` "time"}}`)
	require.ErrorContains(t, err, "grpcprotobuf doesn't always save time")
}

// TestHeads: what stands below a head is what the head says, of an answer no two figures of which are alike.
func TestHeads(t *testing.T) {
	figure := func(ratio, base float64, v verdict.Verdict) verdict.Figure {
		return verdict.Figure{Ratio: ratio, Lo: ratio - 0.01, Hi: ratio + 0.01, BaseNs: base, Verdict: v}
	}
	percentile := func(ratio float64) verdict.Percentile {
		return verdict.Percentile{Ratio: ratio, Lo: ratio - 0.02, Hi: ratio + 0.02, BaseNs: 5000, CopyNs: 5000, StackNs: 900}
	}
	a := report.Answer{Stack: "grpcprotobuf", Leads: report.ByCPU, GOMAXPROCS: 2,
		Wired:     report.Wired{Apart: true, Callers: 100},
		BaseFacts: &report.Counts{Writes: 11, Connections: 100}, Facts: &report.Counts{Writes: 12, Connections: 1},
		Answer: verdict.Answer{Processes: verdict.Counts{Planned: 8, Counted: 8},
			Time: figure(0.5, 20_000, verdict.Less), CPU: figure(1.4, 30_000, verdict.More),
			BaseLoad: verdict.Load{Switches: 7}, StackLoad: verdict.Load{Switches: 9},
			Percentiles: verdict.Percentiles{P50: percentile(0.8), P99: percentile(0.3)}}}
	want := map[string][2]string{
		"JSON":             {"JSON, µs", "30.0"},
		"CPU":              {"CPU, gRPC / JSON (95% CI)", "1.40 (1.39–1.41)"},
		"time":             {"time, gRPC / JSON (95% CI)", "0.50 (0.49–0.51)"},
		"p50":              {"p50, gRPC / JSON", "0.80"},
		"p99":              {"p99, gRPC / JSON", "0.30"},
		"median":           {"median latency, gRPC / JSON (95% CI)", "0.80 (0.78–0.82)"},
		"calls":            {"calls/s, gRPC / JSON", "2.00"},
		"calls of JSON":    {"calls/s: JSON", "50,000"},
		"calls of gRPC":    {"calls/s: gRPC", "100,000"},
		"switches of JSON": {"switches: JSON", "7.0"},
		"switches of gRPC": {"switches: gRPC", "9.0"},
		"writes of gRPC":   {"writes: gRPC", "12.00"},
	}
	require.Len(t, heads, len(want), "nobody has read one of them")
	for name, q := range heads {
		require.Equal(t, want[name], [2]string{q.head, q.cell(comparisonOf(a.Led()))}, name)
	}
	for name, want := range map[string]string{"CPU": "1.40 (1.39–1.41)", "median": "0.80 (0.78–0.82)",
		"writes": "12.00", "switches": "9.00"} {
		require.Equal(t, want, quantities[name](comparisonOf(a.Led())), name)
	}
	planned := a
	planned.Time = verdict.Figure{}
	for _, name := range []string{"calls", "calls of JSON", "calls of gRPC"} {
		require.Empty(t, heads[name].cell(comparisonOf(planned.Led())), "a planned rate is the same for both")
	}
	alone := a
	alone.Apart, alone.GOMAXPROCS = false, 1
	require.Empty(t, heads["p99"].cell(comparisonOf(alone.Led())), "nobody waits on one core for the side that calls")
}

// TestWords: words come with their figure: the stack, the direction and what it is of, as the answer has them.
func TestWords(t *testing.T) {
	root := sweep(t)
	for asked, want := range map[string]string{
		`told (led "sweep" "apart.rate.2000" "grpcprotobuf") "CPU"`:    "gRPC uses 40% more CPU",
		`told (led "sweep" "apart.rate.2000" "grpcprotobuf") "median"`: "gRPC shows no clear difference in median latency",
		`told (led "sweep" "apart.rate.2000" "grpcprotobuf") "p99"`:    "gRPC has a 50% higher p99 latency",
		`told (led "sweep" "apart.saturated" "grpcprotobuf") "p99"`:    "gRPC has a 30% lower p99 latency",
		`told (led "sweep" "apart.saturated" "grpcprotobuf") "calls"`:  "gRPC answers 25% more calls per second",
		`told (led "sweep" "apart.saturated" "grpcprotobuf") "time"`:   "gRPC takes 20% less time",

		`change (led "sweep" "apart.rate.2000" "grpcprotobuf") "CPU"`:    "40% more CPU",
		`change (led "sweep" "apart.saturated" "grpcprotobuf") "median"`: "20% lower median latency",
		`short (led "sweep" "apart.saturated" "grpcprotobuf") "median"`:  "20% lower",
		`short (led "sweep" "apart.rate.2000" "grpcprotobuf") "p99"`:     "50% higher",
		`short (led "sweep" "apart.saturated" "grpcprotobuf") "calls"`:   "25% more",
		`saved (led "sweep" "apart.saturated" "grpcprotobuf") "time"`:    "20%",
		`ci (led "sweep" "apart.saturated" "grpcprotobuf") "time"`:       "0.80 (0.79–0.81)",
		`ci (led "sweep" "apart.saturated" "grpcprotobuf") "CPU"`:        "1.20 (1.19–1.21)",

		`short (answer "sweep" "apart.saturated" "grpcprotobuf") "calls of JSON"`: "20% fewer",
		`predicate (led "sweep" "apart.rate.2000" "grpcprotobuf") "CPU"`:          "uses 40% more CPU",
		`signed (led "sweep" "apart.saturated" "grpcprotobuf") "median"`:          "−20%",
		`told (led "sweep" "apart.rate.2000" "grpcprotobuf") "CPU" "at a rate" (led "sweep" "apart.saturated" "grpcprotobuf") "when full"`: "" +
			"gRPC uses 40% more CPU at a rate and 20% more when full",
		`told (led "sweep" "apart.rate.2000" "grpcprotobuf") "p99" (led "sweep" "apart.saturated" "grpcprotobuf") "when full"`: "" +
			"gRPC has a 50% higher p99 latency and 30% lower when full",
		`told (led "sweep" "apart.rate.10000" "grpcprotobuf") "median" (led "sweep" "apart.rate.2000" "grpcprotobuf") "at a rate"`: "" +
			"gRPC has a 10% lower median latency and no clear difference at a rate",
	} {
		require.Equal(t, want, filled(t, root, asked), asked)
	}
	for asked, why := range map[string]string{
		`told (led "sweep" "apart.rate.2000" "grpcprotobuf") "calls"`:    "has no calls per second",
		`told (led "sweep" "apart.rate.2000" "grpcprotobuf") "speed"`:    "no amount is called",
		`change (led "sweep" "apart.rate.2000" "grpcprotobuf") "time"`:   "has no time",
		`change (led "sweep" "apart.rate.2000" "grpcprotobuf") "median"`: "the median latency of grpcprotobuf is not decided",
		`saved (led "sweep" "apart.saturated" "grpcprotobuf") "CPU"`:     "grpcprotobuf saves no CPU",
		`told (led "sweep" "apart.rate.2000" "grpcprotobuf") "CPU" 2`:    "of words and answers, and of no int",
	} {
		_, err := fill(root, "{{"+asked+"}}")
		require.ErrorContains(t, err, why, asked)
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
