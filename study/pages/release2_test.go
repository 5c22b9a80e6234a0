package pages

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

var update = flag.Bool("update", false, "write the pages of testdata anew")

// TestRelease2: recorded runs of release 2 have the pages that it made of them, which testdata has, but for the
// sentences above the table. Written again, they are read as they were.
func TestRelease2(t *testing.T) {
	var pages bytes.Buffer
	for _, run := range []string{"2026-11-24-epyc-2vcpu-afternoon/agree/small", "2026-11-25-xeon-2vcpu/own/cel"} {
		s, err := read(filepath.Join("../results", run))
		require.NoError(t, err)
		require.NoError(t, s.Markdown(&pages))
		dir := t.TempDir()
		require.NoError(t, s.Save(dir))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bench.txt"), []byte(s.Raw), 0o600))
		again, err := read(dir)
		require.NoError(t, err)
		require.Equal(t, s, again)
		text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
		require.NoError(t, err)
		require.Contains(t, string(text), "\n\t\"release\": 3,\n")
	}
	const golden = "testdata/release2.txt"
	if *update {
		require.NoError(t, os.WriteFile(golden, pages.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), pages.String())
}

// TestNamesOfRelease2: each figure of release 2 has its present name, and what it had besides is left out.
func TestNamesOfRelease2(t *testing.T) {
	const figures = `"ratio":1.1,"lo":1.05,"hi":1.2,"level":0.95,"on_one_side":7,"copy_floor":0.02,"moved":0.3,
		"margin":0.03,"base_ns":100,"ns":110,"bases":[99,101],`
	const others = `"planned":9,"processes":8,"one_core":1,"no_second_core":2,"disturbed":3,"busy":true,"others":0.25,
		"unchecked":["the weather"],"base_cpu_ns":50,"cpu_ns":55,"base_server_cpu_ns":20,"server_cpu_ns":21,"base_calls":1.5,
		"calls_in_flight":1.6,"load":{"free":0.2,"switches":3,"reached":%s,"dropped":0.01,"late_ns":700},
		"percentiles":{"P50":{"base":1,"copy":2,"ns":3,"ratio":4,"lo":5,"hi":6},"P95":{"base":7,"ns":7},
		"P99":{"base":8,"ns":8},"P999":{"base":9,"ns":9}},"idle_ns":12,`
	figure := func(is verdict.Verdict, reason verdict.Kind) verdict.Figure {
		return verdict.Figure{Verdict: is, Reason: verdict.Reason{Kind: reason}, Ratio: 1.1, Lo: 1.05, Hi: 1.2, Level: 0.95,
			OnOneSide: 7, Margin: 0.03, NoiseFloor: verdict.Floor(0.02, 0.3), CopyDiffers: 0.02, BaseVaried: 0.3, BaseNs: 100,
			StackNs: 110, BasesNs: []float64{99, 101}}
	}
	answer := verdict.Answer{
		Processes: verdict.Counts{Planned: 9, Counted: 8, OneCore: 1, NoSecond: 2, Disturbed: 3}, Busy: true, Others: 0.25,
		Unchecked:  []verdict.Unchecked{"the weather"},
		BaseMeans:  verdict.Means{CPUNs: 50, ServerCPUNs: 20, InFlight: 1.5},
		StackMeans: verdict.Means{CPUNs: 55, ServerCPUNs: 21, InFlight: 1.6},
		StackLoad:  verdict.Load{Idle: 0.2, Switches: 3, Skipped: 0.01, LateNs: 700},
		Percentiles: verdict.Percentiles{P50: verdict.Percentile{BaseNs: 1, CopyNs: 2, StackNs: 3, Ratio: 4, Lo: 5, Hi: 6},
			P95: verdict.Percentile{BaseNs: 7, StackNs: 7}, P99: verdict.Percentile{BaseNs: 8, StackNs: 8},
			P999: verdict.Percentile{BaseNs: 9, StackNs: 9}},
	}
	byTime, byCPU, atRate := answer, answer, answer
	byTime.Time = figure(verdict.Undecided, "the interval includes 1")
	byCPU.Time, byCPU.CPU = figure(verdict.Less, ""), figure(verdict.More, "")
	atRate.CPU, atRate.BaseLoad.Completed, atRate.StackLoad.Completed = figure(verdict.Same, ""), 0.99, 0.98
	counts := &report.Counts{Calls: 1, Sent: 2, Received: 3, Writes: 4, Reads: 5, Allocs: 6, AllocBytes: 7, Connections: 8,
		ServerAllocs: 9, ServerAllocBytes: 10}
	for reason, c := range map[string]struct {
		result string
		want   report.Answer
	}{
		"of time": {figures + others + `"verdict":"undecided","reason":"the interval includes 1"`,
			report.Answer{Leads: report.ByTime, Answer: byTime}},
		"of time and CPU": {figures + others + `"verdict":"faster","leads":"CPU","cpu":{` + figures +
			`"verdict":"slower","base_cpu_ns":1}`, report.Answer{Leads: report.ByCPU, Answer: byCPU}},
		"at a rate": {figures + others + `"verdict":"equal","base_load":{"reached":0.99}`,
			report.Answer{Leads: report.ByCPU, Answer: atRate}},
	} {
		completed := "0"
		if c.want.BaseLoad.Completed > 0 {
			completed = "0.98"
		}
		text := `{"release":2,"command":"rpcbench run","environment":["cpu=X"],"base":"httpjson","seed":18446744073709551615,
			"processes":9,"layouts":4,"costs":"wake=1µs","answers":[{"workload":"small","does":"a small call","value":"5",
			"gomaxprocs":2,"stack":"x","rate":500,"facts":{"calls":1,"sent":2,"received":3,"writes":4,"reads":5,"allocs":6,
			"alloc_bytes":7,"connections":8,"server_allocs":9,"server_alloc_bytes":10},` +
			string(bytes.ReplaceAll([]byte(c.result), []byte("%s"), []byte(completed))) + `}],"call":{"method":"a.B/C","made":"m",
			"bodies":[{"stack":"s","format":"f","codec":"c","request":1,"reply":2,"gzip_request":3,"gzip_reply":4,
			"encode":{"ns":5,"lo":6,"hi":7},"decode":{"ns":8,"lo":9,"hi":10}}]}}`
		c.want.Workload, c.want.Does, c.want.Value, c.want.GOMAXPROCS = "small", "a small call", "5", 2
		c.want.Stack, c.want.Rate, c.want.Facts = "x", 500, counts
		c.want.Callers, c.want.Apart = 100, true
		if c.want.BaseLoad.Completed == 0 {
			c.want.Callers = 1
		}
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "summary.json"), []byte(text), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bench.txt"), nil, 0o600))
		s, err := read(dir)
		require.NoError(t, err, reason)
		require.Equal(t, report.Summary{Release: 3, Command: "rpcbench run", Environment: []string{"cpu=X"}, Base: "httpjson",
			Plan: report.Plan{Processes: 9, Layouts: 4, Seed: 1<<64 - 1}, Answers: []report.Answer{c.want},
			Call: &report.Call{Method: "a.B/C", Made: "m",
				Bodies: []report.Body{{Stack: "s", Format: "f", Codec: "c", Request: 1, Reply: 2, GzipRequest: 3, GzipReply: 4,
					Encode: report.Span{Ns: 5, Lo: 6, Hi: 7}, Decode: report.Span{Ns: 8, Lo: 9, Hi: 10}}}}}, s, reason)
	}
	for _, text := range []string{`{"release":2,"answers":7}`, `{"release":2,"answers":[7],"call":8}`,
		`{"release":2,"answers":[{"cpu":7,"percentiles":[],"base_load":"x","verdict":{}}],"call":{"bodies":[1]}}`} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "summary.json"), []byte(text), 0o600))
		_, err := read(dir)
		require.ErrorContains(t, err, dir, text)
	}
}
