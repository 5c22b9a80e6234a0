package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"html"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/verdict"
)

var update = flag.Bool("update", false, "write the pages of testdata anew")

// docs/summary.md has each name of summary.json.
func TestNamesAreDescribed(t *testing.T) {
	page, err := os.ReadFile("../../docs/summary.md")
	require.NoError(t, err)
	said := string(page)
	var described func(reflect.Type)
	described = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Slice, reflect.Pointer:
			described(of.Elem())
		case reflect.Struct:
			for i := range of.NumField() {
				field := of.Field(i)
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				require.True(t, name == "" || name == "-" || strings.Contains(said, "`"+name+"`"), "%s: %s", of, name)
				described(field.Type)
			}
		}
	}
	described(reflect.TypeFor[Summary]())
}

// found is a run with an answer of each kind. Base and stack differ in every figure.
func found() Summary {
	percentile := func(us float64) verdict.Percentile {
		return verdict.Percentile{BaseNs: us * 1000, CopyNs: us * 1010, StackNs: us * 1500, Ratio: 1.5, Lo: 1.4, Hi: 1.6}
	}
	floored := func(f verdict.Figure) verdict.Figure {
		f.NoiseFloor = verdict.Floor(f.CopyDiffers, f.BaseVaried)
		return f
	}
	eight := verdict.Counts{Planned: 8, Counted: 8}
	return Summary{Release: Release, Command: "rpcbench run -out <mine>", Environment: []string{"cpu=X"}, Base: "httpjson",
		Plan: Plan{Processes: 8, Layouts: 8}, Warnings: []string{"a warning"}, Raw: "BenchmarkRun/<raw>",
		Answers: []Answer{
			{Workload: "small", Does: "a small call, one core", GOMAXPROCS: 1, Stack: "grpcprotobuf", Leads: ByCPU,
				Answer: verdict.Answer{Processes: eight, Time: floored(verdict.Figure{OnOneSide: 7, BaseNs: 40_000,
					StackNs: 42_500, Ratio: 1.05, Lo: 1.04, Hi: 1.06, Level: 0.95, CopyDiffers: 0.01, BaseVaried: 0.04,
					Verdict: verdict.More, BasesNs: []float64{1, 3, 2}}),
					BaseMeans:  verdict.Means{CPUNs: 40_100, InFlight: 0.99},
					StackMeans: verdict.Means{CPUNs: 42_600, InFlight: 0.98},
					Percentiles: verdict.Percentiles{P50: percentile(39), P95: percentile(59), P99: percentile(99),
						P999: percentile(999)}},
				BaseFacts: &Counts{Calls: 1000, Sent: 197, Received: 225, Writes: 1, Reads: 1.5,
					Allocs: 116, AllocBytes: 9070, Connections: 1},
				Facts: &Counts{Calls: 2000, Sent: 113, Received: 137, Allocs: 165, AllocBytes: 10_070, Connections: 2}},
			{Workload: "bytes-1kB", Does: "1 kB of bytes", GOMAXPROCS: 1, Stack: "grpcprotobuf", Leads: ByTime,
				Answer: verdict.Answer{Processes: eight, Time: floored(verdict.Figure{OnOneSide: 8, BaseNs: 80_000,
					StackNs: 64_000, Ratio: 0.8, Lo: 0.78, Hi: 0.82, CopyDiffers: 0.02, BaseVaried: 0.37, Verdict: verdict.Less})}},
			{Workload: "small-50-callers", Does: "mixed fields, 50 callers", GOMAXPROCS: 2, Stack: "grpcprotobuf", Leads: ByTime,
				Wired: Wired{Callers: 50},
				Answer: verdict.Answer{Processes: verdict.Counts{Planned: 8, Counted: 7}, Others: 0.2,
					Unchecked: []verdict.Unchecked{"the weather"}, Time: floored(verdict.Figure{OnOneSide: 5, BaseNs: 80_000,
						Ratio: 1.001, Lo: 0.99, Hi: 1.01, BaseVaried: 0.3, CopyDiffers: 0.01, Verdict: verdict.Undecided,
						Reason: verdict.Reason{Kind: verdict.IncludesOne}}),
					BaseMeans: verdict.Means{InFlight: 41}, StackMeans: verdict.Means{InFlight: 43.5},
					Percentiles: verdict.Percentiles{P50: percentile(400), P95: percentile(900), P99: percentile(2000)}}},
			{Workload: "cold", Does: "a new connection", Stack: "grpcprotobuf", Leads: ByTime,
				Answer: verdict.Answer{Processes: verdict.Counts{Planned: 8},
					Time: verdict.Figure{Verdict: verdict.Undecided, Reason: verdict.Reason{Kind: "0 of 8"}}}},
		}}
}

// Beside a ratio of stacks that send other JSON stands how it differs, on a terminal and on pages.
func TestOtherJSON(t *testing.T) {
	s := found()
	const differs = "httpjsoniter sends other JSON than httpjson: request.left is 0, and httpjson leaves it out"
	s.Answers[0].OtherJSON = differs
	for _, detail := range []bool{false, true} {
		var text strings.Builder
		require.NoError(t, s.Text(&text, 100, false, detail))
		require.Equal(t, 1, strings.Count(text.String(), "] "+differs[:60]), text.String())
	}
	var page strings.Builder
	require.NoError(t, s.Markdown(&page))
	require.Contains(t, page.String(), "] "+differs+".\n")
}

// TestNoCPU: where no process tells its CPU time, a summary has answers of time, and no heading or figure of CPU.
func TestNoCPU(t *testing.T) {
	s := found()
	for i := range s.Answers {
		a := &s.Answers[i]
		a.CPU, a.BaseMeans.CPUNs, a.StackMeans.CPUNs, a.Leads = verdict.Figure{}, 0, 0, ByTime
	}
	for _, width := range []int{100, 40} {
		var text strings.Builder
		require.NoError(t, s.Text(&text, width, false, true))
		require.Contains(t, text.String(), "Time per call, one caller")
		require.NotContains(t, text.String(), cpuHeading)
		require.NotRegexp(t, `NaN|Inf|nil|µs: –  p50`, text.String())
	}
	for _, to := range []func(io.Writer) error{s.HTML, s.Markdown, s.SVG} {
		var page strings.Builder
		require.NoError(t, to(&page))
		require.NotContains(t, page.String(), cpuHeading)
		require.NotRegexp(t, `NaN|Inf\b|<nil>`, page.String())
	}
}

// What an answer says in words.
func TestSentences(t *testing.T) {
	remote := found()
	remote.Remote = true
	for _, to := range []func(io.Writer) error{remote.HTML, remote.Markdown} {
		var page strings.Builder
		require.NoError(t, to(&page))
		require.Contains(t, page.String(), "The servers ran in other programs, so GOMAXPROCS and CPU are the client's")
		require.NotContains(t, page.String(), "goes over loopback")
	}

	alone, wide, open, several, planned, full, same := found(), found(), found(), found(), found(), found(), found()
	alone.Answers, wide.Answers, open.Answers = alone.Answers[:1], wide.Answers[:1], open.Answers[2:]
	wide.Answers[0].Time.Ratio, wide.Answers[0].Time.Lo, wide.Answers[0].Time.Hi = 2.05, 1.2, 3.5
	several.Answers[1].Stack = "drpc"
	rate := planned.Answers[1]
	rate.Does, rate.Calls = "1 kB of bytes, ordinary load", "1 kB of bytes"
	rate.Wired = Wired{Callers: 100, Rate: 5000, Chosen: true}
	rate.BaseLoad.Completed, rate.StackLoad.Completed = 1, 1
	rate.Time, rate.CPU = verdict.Figure{}, rate.Time
	planned.Answers = append(planned.Answers, rate)
	at := func(does, calls string, beside ...Answer) Summary {
		s, a := found(), rate
		a.Does, a.Calls, a.Rate = does, calls, 2000
		s.Answers = append(beside, a)
		return s
	}
	busy := full.Answers[2]
	busy.Does, busy.Calls, busy.Time.Verdict = "small calls, saturated: 50 callers", "small calls", verdict.Less
	busy.Time.Ratio, busy.Time.Lo, busy.Time.Hi = 0.8, 0.7, 0.9
	full.Answers = append(slices.Clone(planned.Answers), busy)
	twice := found()
	twice.Answers = []Answer{busy}
	twice.Answers[0].Time.Ratio, twice.Answers[0].Time.Lo, twice.Answers[0].Time.Hi = 0.4, 0.35, 0.5
	same.Answers = append(same.Answers, busy)
	same.Answers[4].Time.Verdict = verdict.Same
	level, equal, unsized := found(), found(), found()
	even := verdict.Figure{Verdict: verdict.Same, Ratio: 0.999, Lo: 0.99, Hi: 1.008, BaseNs: 80_000}
	level.Answers, equal.Answers = []Answer{rate}, equal.Answers[:1]
	level.Answers[0].CPU, equal.Answers[0].Time = even, even
	unsized.Answers = []Answer{rate, busy}
	unsized.Answers[0].CPU.Lo, unsized.Answers[1].Time.Verdict = 0.3, verdict.More
	unsized.Answers[1].Time.Ratio, unsized.Answers[1].Time.Lo, unsized.Answers[1].Time.Hi = 3, 1.5, 5
	costs := found()
	costs.Answers = costs.Answers[2:3]
	costs.Answers[0].Does, costs.Answers[0].Leads = "50 callers", ByCPU
	costs.Answers[0].CPU = verdict.Figure{Verdict: verdict.Less, Ratio: 0.9, Lo: 0.88, Hi: 0.93, BaseNs: 91_000,
		StackNs: 82_000}
	theirs, halfOpen := planned, level
	theirs.Remote, halfOpen.Remote = true, true
	elsewhere := costs
	elsewhere.Remote = true
	halfOpen.Answers = []Answer{rate}
	halfOpen.Answers[0].CPU.Verdict = verdict.Undecided
	for reason, c := range map[string]struct {
		s    Summary
		want []string
	}{
		"a planned rate of servers elsewhere": {theirs, []string{"At 5,000 calls a second (1 kB of bytes) the client of " +
			"gRPC uses 0.08 of a core less than JSON (0.07–0.09)."}},
		"an undecided one": {halfOpen, []string{"Whether gRPC takes less client CPU than JSON is undecided."}},
		"several callers of servers elsewhere": {elsewhere, []string{
			"gRPC takes 0.90 times as much client CPU time as JSON (0.88–0.93) for 50 callers: 9.1 µs less."}},
		"CPU alone is decided, of several callers": {costs, []string{
			"gRPC takes 0.90 times as much CPU time as JSON (0.88–0.93) for 50 callers: 9.1 µs less."}},
		"one workload": {alone,
			[]string{"gRPC takes 1.05 times as long as JSON (1.04–1.06) for a small call, one core: 2.0 µs more."}},
		"such an interval tells no size": {wide,
			[]string{"gRPC takes more time than JSON for a small call, one core."}},
		"nothing was decided": {open, []string{"Whether gRPC takes less time than JSON is undecided."}},
		"each stack has its sentence": {several, []string{
			"gRPC takes 1.05 times as long as JSON (1.04–1.06) for a small call, one core: 2.0 µs more.",
			"drpc takes 0.80 times as long as JSON (0.78–0.82) for 1 kB of bytes: 16 µs less."}},
		"a planned rate": {planned, []string{
			"At 5,000 calls a second (1 kB of bytes) gRPC uses 0.08 of a core less than JSON (0.07–0.09)."}},
		"a rate that somebody typed": {at("2kB of bytes, 2e3 calls a second, TLS", ""),
			[]string{"At 2,000 calls a second gRPC uses 0.03 of a core less than JSON (0.03–0.04)."}},
		"a rate of an older result, among other workloads": {at("small, ordinary load", "", found().Answers[3]), []string{
			"At 2,000 calls a second (small, ordinary load) gRPC uses 0.03 of a core less than JSON (0.03–0.04)."}},
		"a rate of the list": {at("small calls, 2000 a second", "small calls"), []string{
			"At 2,000 calls a second (small calls) gRPC uses 0.03 of a core less than JSON (0.03–0.04)."}},
		"a planned rate, and a full machine": {full, []string{
			"At 5,000 calls a second (1 kB of bytes) gRPC uses 0.08 of a core less than JSON (0.07–0.09). " +
				"With the machine full (small calls, 50 callers) gRPC serves 25% more calls " +
				"per second than JSON (11–43%); its median latency is 50% higher."}},
		"a full machine that answers twice as many": {twice, []string{"With the machine full (small calls, 50 callers) " +
			"gRPC serves 2.50 times as many calls per second as JSON (2.00–2.86); its median latency is 50% higher."}},
		"as many calls": {same, []string{
			"With the machine full (small calls, 50 callers) gRPC serves as many calls per second " +
				"as JSON; its median latency is 50% higher."}},
		"as much of a core": {level, []string{"At 5,000 calls a second (1 kB of bytes) gRPC takes 1.00 times as much CPU " +
			"time as JSON (0.99–1.01)."}},
		"as long, so neither more nor less": {equal, []string{
			"gRPC takes 1.00 times as long as JSON (0.99–1.01) for a small call, one core."}},
		"less of a core, and fewer calls, of no known size": {unsized, []string{
			"At 5,000 calls a second (1 kB of bytes) gRPC takes less CPU than JSON. " +
				"With the machine full (small calls, 50 callers) gRPC serves fewer calls per second than JSON; " +
				"its median latency is 50% higher."}},
	} {
		require.Equal(t, c.want, c.s.Sentences(), reason)
	}

	s := found()
	s.Answers[1].Time.BaseVaried, s.Answers[2].Time.BaseVaried = 0.25, 0
	require.Equal(t, "on a noisy machine: other programs used up to 20% of it, "+
		"so expect other ratios on a quiet one", s.Hour())
	s.Answers[0].Time.BaseVaried, s.Answers[2].Others = 0.26, 0.1
	require.Equal(t, "on a noisy machine: JSON's own time varied by 26%, so expect other ratios on a quiet one",
		s.Hour())
	s.Answers[0].Time.BaseVaried = 0
	require.Empty(t, s.Hour())
	s.Answers[1].Leads, s.Answers[1].CPU = ByCPU, verdict.Figure{Verdict: verdict.Less, Ratio: 0.8, Lo: 0.7, Hi: 0.9}
	s.Answers[1].Time.BaseVaried = 0.3
	require.Contains(t, s.Hour(), "varied by 30%", "which is of time, where CPU leads")
	s.Answers[1].Time.BaseVaried = 0
	s.Answers[0].Time.BaseVaried, s.Answers[0].Time.CopyDiffers = 10.35, 195.57
	s.Answers[0].Time.NoiseFloor = 195.57
	require.Equal(t, "on a noisy machine: JSON's own time varied by more than a factor of two, "+
		"so expect other ratios on a quiet one", s.Hour())
	require.NotRegexp(t, `\d{3,} %`, s.Floors().Markdown()+s.Results(true).Markdown(), "which tells no size")
}

// Each figure stands below the heading that says what it is, in the order of the plan.
func TestResults(t *testing.T) {
	s := found()
	cpu := verdict.Figure{Ratio: 1.3, Lo: 1.2, Hi: 1.4, BaseNs: 20_000, Verdict: verdict.More}
	s.Answers[2].CPU, s.Answers[2].Time.Verdict, s.Answers[2].Processes.Counted = cpu, verdict.Same, 8
	for i, p := range []*verdict.Percentile{&s.Answers[2].Percentiles.P50, &s.Answers[2].Percentiles.P99} {
		// both lie beyond the floor
		p.Lo, p.Hi = 1.45, []float64{1.55, 1.65}[i]
	}
	const text = `gRPC and JSON over HTTP on X
Warning: a warning.

CPU per call, client and server      JSON    gRPC  gRPC/JSON (95% CI)  verdict   difference
  mixed fields, 50 callers          20 µs   26 µs    1.30 (1.20–1.40)  more [1]     +6.0 µs
Median latency
  mixed fields, 50 callers         400 µs  600 µs    1.50 (1.45–1.55)  more         +200 µs
Time per call, one caller
  a small call, one core            40 µs   42 µs    1.05 (1.04–1.06)  more         +2.0 µs
  1 kB of bytes                     80 µs   64 µs    0.80 (0.78–0.82)  less          −16 µs
[1] on a noisy machine: other programs used up to 20% of it, and JSON's own time varied by 37%, so
  expect other ratios on a quiet one.
Not measured: a new connection, gRPC: 0 of 8.
`
	var b strings.Builder
	require.NoError(t, s.Text(&b, 100, false, false))
	require.True(t, strings.HasPrefix(b.String(), text), "%s", b.String())
	detailed := s.Results(true).Markdown()
	require.Contains(t, detailed, "| mixed fields, 50 callers | 12,500 | 12,488 | 1.00 (0.99–1.01) | same |  |")
	require.Contains(t, detailed, "| **p99 latency** |  |  |  |  |  |\n"+
		"| mixed fields, 50 callers | 2000 µs | 3000 µs | 1.50 (1.45–1.65) | more |")

	left := s.Answers[2]
	left.Processes = verdict.Counts{Planned: 8, Counted: 12, Disturbed: 2, Miscounted: 1}
	require.Len(t, left.line(cpuHeading).led.Notes(), 3)
	require.Empty(t, left.line(waitHeading).led.Notes(), "which the line of the mean has")

	s.Answers[2].Busy, s.Answers[2].Time.Reason = true, verdict.Reason{Kind: verdict.Disturbed}
	require.Contains(t, s.Results(true).Markdown(), "| mixed fields, 50 callers | 400 µs | 600 µs | 1.50 (1.45–1.55) | "+
		"undecided [1]", "on a busy machine nothing is decided")
	b.Reset()
	require.NoError(t, s.Text(&b, 100, false, false))
	require.Regexp(t, `mixed fields, 50 callers +400 µs +600 µs +1.50 \(1.45–1.55\) +undecided \[1\]`, b.String())
	require.Contains(t, b.String(), "\n[1] on a noisy machine: other programs used up to 20% of it, and ")
	require.NotContains(t, b.String(), "[2]", "one footnote for all lines")
	s.Answers[2].Answer, s.Answers[0].Wired = verdict.Answer{Time: cpu}, Wired{Callers: 100, Rate: 20_000, Chosen: true}
	s.Answers[0].Does, s.Answers[0].Calls, s.Answers[0].BaseLoad.Completed = "small, ordinary load", "small", 1
	s.Answers[0].Time, s.Answers[0].CPU = verdict.Figure{}, s.Answers[0].Time
	b.Reset()
	require.NoError(t, s.Text(&b, 100, true, false))
	require.Contains(t, b.String(), "\n  small, 20,000/s                  40 µs  42 µs    1.05 (1.04–1.06)  "+
		"\x1b[33mmore\x1b[0m        +2.0 µs\n", "which is CPU")
}

// A report has MB/s of workloads that send much data, in the base's direction: more is better.
func TestDataPerSecond(t *testing.T) {
	s := found()
	require.NotContains(t, s.Results(true).Markdown(), "Data per second")
	s.Answers[1].Data, s.Answers[0].Data, s.Answers[0].Rate = 100_000, 30, 1000
	const want = "| **Data per second, each way** |  |  |  |  |  |\n" +
		"| 1 kB of bytes | 1,250 MB/s | 1,562 MB/s | 1.25 (1.22–1.28) | serves more |  |\n"
	require.Contains(t, s.Results(true).Markdown(), want)
	require.Equal(t, 2, strings.Count(s.Results(true).Markdown(), " MB/s "), "a planned rate has none")
	require.NotContains(t, s.Results(false).Markdown(), "Data per second", "a terminal shows what decides")
	require.Equal(t, "3.2 MB/s", megabytes(3.17e6))
}

// TestNarrow: in a narrow terminal the saving goes, then workloads wrap, and then each is a list. Nothing is wider, and
// no number is broken.
func TestNarrow(t *testing.T) {
	s := found()
	s.Answers[1].Does = "a title that is as long as titles are, and then some"
	for width, want := range map[int]string{
		100: "\n  a title that is as long as titles are,      80 µs   64 µs    0.80 (0.78–0.82)  less         −16 µs\n" +
			"    and then some\n",
		80: "\n  a title that is as long as titles   80 µs   64 µs    0.80 (0.78–0.82)  less\n" +
			"    are, and then some\n",
		60: "\n  a title that is as long as titles are, and then some\n    JSON: 80 µs  gRPC: 64 µs\n" +
			"    gRPC/JSON (95% CI): 0.80 (0.78–0.82)  less",
		40: "\n  a title that is as long as titles are,\n    and then some\n    JSON: 80 µs  gRPC: 64 µs\n" +
			"    gRPC/JSON (95% CI): 0.80 (0.78–0.82)\n    less\n",
	} {
		for _, detail := range []bool{false, true} {
			var b strings.Builder
			require.NoError(t, s.Text(&b, width, false, detail))
			if !detail {
				require.Contains(t, b.String(), want, width)
			}
			for line := range strings.Lines(b.String()) {
				require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), width, line)
			}
		}
	}
}

// Where the question is what calls cost, the picture has the result by CPU time.
func TestLeading(t *testing.T) {
	s := found()
	s.Answers[1].CPU = verdict.Figure{Ratio: 1.5, Lo: 1.4, Hi: 1.6, BaseNs: 20_000, Verdict: verdict.More}
	require.Equal(t, "0.80 (0.78–0.82), less", s.Picture().Lines[0].Dots[0].Title, "time leads")
	s.Answers[1].Leads = ByCPU
	p := s.Picture()
	require.Equal(t, "CPU or time of gRPC, in multiples of JSON's", p.Title)
	require.Equal(t, []string{"← gRPC takes less", "gRPC takes more →"}, []string{p.Words[0].Text, p.Words[1].Text})
	require.Equal(t, "1.50 (1.40–1.60), more", p.Lines[2].Dots[0].Title)
	s.Answers = s.Answers[1:2]
	require.Equal(t, "CPU of gRPC, in multiples of JSON's", s.Picture().Title)
}

// A page, and what a terminal shows, are those of testdata. -update writes them anew; look at them. That each figure is
// in its place is for the tests of internal/command, and docs has pictures of two machines and of sweeps.
func TestPages(t *testing.T) {
	s := found()
	s.Layers = "grpcprotobuf: 35.5 µs\nlayer  <all>, µs  `share`\n"
	s.Call = &Call{Method: "shop.v1.Orders/Get", Made: "1 sample, whose letters and digits vary", Bodies: []Body{
		{"httpjson", "JSON", "encoding/json", 21, 837, 45, 367, Span{1000, 900, 1100}, Span{4200, 4100, 4300},
			&Share{Span{40_000, 39_000, 41_000}, Span{24_800, 24_000, 25_000}, 0.62, 0.6, 0.64}},
		{"httpjsoniter", "JSON", "github.com/json-iterator/go", 21, 837, 45, 367, Span{}, Span{}, nil},
		{"grpcprotobuf", "protobuf", "google.golang.org/protobuf", 12, 352, 36, 264, Span{500, 400, 600},
			Span{1200, 1100, 1300}, nil},
	}}
	cpu := s.Answers[2].Time
	cpu.Ratio, cpu.Lo, cpu.Hi, cpu.Verdict, cpu.Reason = 0.75, 0.73, 0.77, verdict.Less, verdict.Reason{}
	s.Answers[2].CPU, s.Answers[2].Leads = cpu, ByCPU
	s.Answers[2].BaseLoad = verdict.Load{Idle: 0.5, Switches: 2.7}
	s.Answers[2].StackLoad = verdict.Load{Idle: 0.4, Switches: 5.2}
	terminal := func(w io.Writer) error { return s.Text(w, 100, false, true) }
	for name, write := range map[string]func(io.Writer) error{"page.html": s.HTML, "terminal.txt": terminal} {
		var page bytes.Buffer
		require.NoError(t, write(&page))
		golden := filepath.Join("testdata", name)
		if *update {
			require.NoError(t, os.WriteFile(golden, page.Bytes(), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), page.String(), "%s: go test ./internal/report -update writes it anew", golden)
	}
	var nothing strings.Builder
	require.NoError(t, Summary{Base: "httpjson"}.SVG(&nothing))
	require.NotContains(t, nothing.String(), "NaN")
}

// Both pages have all that is said beside tables.
func TestBothPagesSayAll(t *testing.T) {
	s := found()
	s.Notes, s.Environment = []string{"a note"}, []string{"cpu=X", "some.org/library@v1"}
	s.Call = &Call{Method: "shop.v1.Orders/Get", Made: "1 sample", Bodies: []Body{
		{Stack: "httpjson", Handler: &Share{Share: 0.62, Lo: 0.6, Hi: 0.64}}}}
	said := append(slices.Concat(s.Sentences(), s.Shares(), s.Service()), "alone were made in turns", "a warning.",
		"a note", "cpu=X\n", "Libraries: some.org/library@v1.",
		"Not checked: the weather.", "rpcbench run -out <mine>", "shop.v1.Orders/Get", "made of 1 sample.", "8 links")
	for name, write := range map[string]func(io.Writer) error{"HTML": s.HTML, "Markdown": s.Markdown} {
		var page strings.Builder
		require.NoError(t, write(&page))
		for _, part := range said {
			require.True(t, strings.Contains(html.UnescapeString(page.String()), part), "%s has no %q", name, part)
		}
	}
}

// What a handler takes is told of those that are compared. A share that noise makes more than all is all.
func TestShares(t *testing.T) {
	s := found()
	require.Empty(t, s.Shares())
	require.Nil(t, new(Call).Handlers())
	s.Call = &Call{Bodies: []Body{
		{Stack: "httpjson", Handler: &Share{Share: 0.0034, Lo: 0.003, Hi: 0.0041}},
		{Stack: "httpjsoniter", Handler: &Share{Share: 0.5, Lo: 0.4, Hi: 0.6}},
		{Stack: "grpcprotobuf", Handler: &Share{Share: 1.01, Lo: 0.98, Hi: 1.03}}}}
	require.Equal(t, []string{"Of the CPU of your call over JSON your handler is 0.3% (0.3–0.4), the stack 99.7%.",
		"Of the CPU of your call over gRPC your handler is 100% (98–100), the stack 0%."}, s.Shares())
	require.Len(t, s.Call.Handlers().Rows, 3)
	s.Call.Bodies = s.Call.Bodies[1:2]
	require.Empty(t, s.Shares())
	var page strings.Builder
	require.NoError(t, s.Markdown(&page))
	require.Contains(t, page.String(), "A service: what a handler takes of a call. Other machines.")
	require.NotContains(t, page.String(), "validates and answers", "nobody knows of one's own handler")
	require.Equal(t, "gRPC with conversion", Label("grpcprotobuf.converted"))
	require.Equal(t, "httpxml.some with HEAD", Label("httpxml.some@HEAD"))
	for build, want := range map[string]string{
		"google.golang.org/grpc@v1.80.0":                   "grpc@v1.80.0",
		"GOEXPERIMENT=nojsonv2":                            "GOEXPERIMENT=nojsonv2",
		"GOFLAGS=-tags=a/b":                                "GOFLAGS=-tags=a/b",
		"GRPC_GO_EXPERIMENTAL_CODEC_POOL=true":             "GRPC_GO_EXPER…_POOL=true",
		"GOEXPERIMENT=nosizespecializedmalloc":             "GOEXPER…pecializedmalloc",
		"example.com/m@v0.0.0-20260102030405-0123456789ab": "m@v0.0.0-2026…23456789ab",
	} {
		require.Equal(t, "JSON with "+want, Label("httpjson@"+build))
	}
}

// A build whose name tables cut stands whole once in each form of a report, also if it is the base.
func TestLongBuilds(t *testing.T) {
	const base, stack = "httpjson@GRPC_GO_EXPERIMENTAL_CODEC_POOL=false", "httpjson@GRPC_GO_EXPERIMENTAL_CODEC_POOL=true"
	count := &Counts{Calls: 1000, Sent: 197, Allocs: 20, Connections: 1}
	s := Summary{Release: Release, Base: base, Answers: []Answer{{Workload: "small", Does: "a small call", Stack: stack,
		BaseFacts: count, Facts: count}}}
	timed := s
	timed.Plan.Processes, timed.Answers = 8, slices.Clone(s.Answers)
	timed.Answers[0].Answer = verdict.Answer{Processes: verdict.Counts{Planned: 8, Counted: 8},
		Time: verdict.Figure{Verdict: verdict.More, Ratio: 1.5, Lo: 1.4, Hi: 1.6, BaseNs: 4e4}}
	counts := func(w io.Writer) error { return s.CountsText(w, 200) }
	text := func(w io.Writer) error { return timed.Text(w, 200, false, false) }
	for _, to := range []func(io.Writer) error{s.Markdown, counts, timed.Markdown, text, timed.HTML} {
		var page strings.Builder
		require.NoError(t, to(&page))
		for _, whole := range []string{base, stack} {
			require.Contains(t, page.String(), Label(whole)+" is "+whole+".")
		}
	}
	s.Base, s.Answers[0].Stack = "httpjson@go1.26.8", "httpjson"
	require.Empty(t, s.Builds())
}

// The picture of latencies is of those who wait: not of one core, where time is work. A point stands where the marks of
// its percentile and of its time meet.
func TestTails(t *testing.T) {
	s := found()
	require.Len(t, s.Tails(), 1)
	s.Answers[2].Percentiles.P999 = verdict.Percentile{BaseNs: 8e6, CopyNs: 8e6, StackNs: 4e6, Ratio: 0.5, Lo: 0.4,
		Hi: 0.6}
	p := s.Tails()[0]
	require.Equal(t, "mixed fields, 50 callers", p.Title)
	require.Equal(t, []string{"JSON", "gRPC"}, []string{p.Legend[0].Label, p.Legend[1].Label})
	for i, want := range [][]string{{"p50 400 µs", "p95 900 µs", "p99 2000 µs", "p99.9 8000 µs"},
		{"p50 600 µs", "p95 1350 µs", "p99 3000 µs", "p99.9 4000 µs"}} {
		require.Equal(t, i == 1, p.Paths[i].Second)
		for j, dot := range p.Paths[i].Dots {
			require.Equal(t, want[j], dot.Title)
			require.Equal(t, p.Ticks[j].At, dot.X)
		}
	}
	var levels []string
	for _, l := range p.Levels {
		levels = append(levels, l.Label)
	}
	require.Equal(t, []string{"500 µs", "2 ms", "5 ms"}, levels)
	require.Equal(t, p.Levels[1].At, p.Paths[0].Dots[2].At, "2000 µs are 2 ms")
	require.Less(t, p.Paths[0].Dots[3].At, p.Paths[1].Dots[3].At, "more is above")
	s.Answers[0].Rate = 500
	tails := s.Tails()
	require.Len(t, tails, 2, "callers at a rate wait, also with GOMAXPROCS 1")
	require.Equal(t, tails[0].Levels, tails[1].Levels, "all have one scale")
	s.Answers = s.Answers[2:3]
	for us := 100.; us < 1000; us *= 1.03 {
		all := verdict.Percentile{BaseNs: us * 1000, StackNs: us * 1000}
		s.Answers[0].Percentiles = verdict.Percentiles{P50: all, P95: all}
		require.Len(t, s.Tails()[0].Levels, 3, "all calls take %g µs", us)
	}
}

// Nothing in the picture lies outside, and 1 is where the sides meet.
func TestPicture(t *testing.T) {
	s := found()
	s.Answers[1].Time.Lo, s.Answers[1].Time.Ratio = 0.0001, 0.0002
	s.Answers[0].Time.Hi = 1e9
	p := s.Picture()
	require.Len(t, p.Lines, 3, "without a ratio there is no dot")
	for _, line := range p.Lines {
		l := line.Dots[0]
		require.GreaterOrEqual(t, l.Lo, float64(p.Left))
		require.LessOrEqual(t, l.Lo, l.At)
		require.LessOrEqual(t, l.At, l.Hi)
		require.LessOrEqual(t, l.Hi, float64(p.Right))
		require.Less(t, l.FloorLo, p.One)
		require.Greater(t, l.FloorLo+l.FloorWidth, p.One)
	}
	two := slices.IndexFunc(p.Ticks, func(tick Tick) bool { return tick.Label == "×2" })
	ratio := math.Pow(2, (p.Lines[2].Dots[0].At-p.One)/(p.Ticks[two].At-p.One))
	require.InEpsilon(t, s.Answers[0].Time.Ratio, ratio, 0.01, "a dot is where the ticks say")
	require.LessOrEqual(t, p.Width, 400, "as wide as a phone, or its text gets too small")
	require.LessOrEqual(t, p.Right, p.Width)
	require.Equal(t, []Word{{16, 38, "← gRPC takes less", false}, {384, 38, "gRPC takes more →", true}}, p.Words[:2])
	builds := found() // each workload of two builds, below a heading each
	for _, a := range found().Answers {
		a.Stack = "grpcprotobuf@google.golang.org/grpc@v1.80.0"
		builds.Answers = append(builds.Answers, a)
	}
	require.Equal(t, "← takes less", builds.Picture().Words[0].Text, "of several stacks")
	lines := builds.Picture().Lines
	require.Len(t, lines, 2*(1+3))
	require.Equal(t, "gRPC", lines[0].Heading)
	require.Equal(t, "gRPC with grpc@v1.80.0", lines[4].Heading)
	builds.Answers = []Answer{builds.Answers[0], builds.Answers[4]} // one workload
	require.Equal(t, "gRPC with grpc@v1.80.0", builds.Picture().Lines[1].Label)
	wide := s.Wide()
	for i, l := range wide.Lines {
		require.Equal(t, -4, l.Dots[0].Y, "on the line of its label")
		require.Greater(t, l.Dots[0].Lo, 42*7., "right of a label of 42 letters")
		require.Less(t, l.Dots[0].Hi, float64(l.Dots[0].SaidX-saidWidth), "left of the ratio")
		require.Greater(t, l.Rule, l.Y+l.Dots[0].Y+5, "a hairline below its dot")
		if i > 0 {
			require.Less(t, wide.Lines[i-1].Rule, l.Y-10, "and above the next label")
		}
	}
	for i := 1; i < len(p.Lines); i++ {
		require.LessOrEqual(t, p.Lines[i-1].Dots[0].At, p.Lines[i].Dots[0].At, "sorted by ratio")
	}
}

func TestRead(t *testing.T) {
	dir := func(files ...string) string { // summary.json and bench.txt
		dir := t.TempDir()
		for i, text := range files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, []string{"summary.json", "bench.txt"}[i]), []byte(text), 0o644))
		}
		return dir
	}
	good, err := json.Marshal(found())
	require.NoError(t, err)
	with := func(figures string) string {
		return `{"release":3,"answers":[{"workload":"small","stack":"x","processes":{"counted":8},` + figures + `}]}`
	}
	time := func(figure string) string { return with(`"time":{` + figure + `}`) }
	for _, c := range []struct{ why, path, want string }{
		{"nothing", filepath.Join(t.TempDir(), "none"),
			`^report: \S+none has no summary.json: name a folder that rpcbench run made$`},
		{"a file", filepath.Join(dir("", ""), "bench.txt"),
			`^report: \S+bench.txt is a file: name the folder that rpcbench run made$`},
		{"no JSON", dir("x", "raw"), `^report: \S+: summary.json is no summary of a run: invalid character`},
		{"another release", dir(`{"release":7,"answers":[{}]}`),
			`^report: \S+ was made by another release of rpcbench \(7, this one reads 3\): `},
		{"nothing measured", dir(`{"release":3,"answers":[{}]}`, "raw"), `has no answers: nothing was measured$`},
		{"a negative ratio", dir(time(`"ratio":-1`), "raw"), `: what small of x has are no figures of a comparison$`},
		{"an interval without its ratio", dir(time(`"ratio":1,"lo":1.1,"hi":1.2`), "raw"), `no figures of a comparison$`},
		{"a movement beyond all numbers", dir(time(`"ratio":1,"lo":1,"hi":1,"base_varied":1e308`), "raw"),
			`no figures of a comparison$`},
		{"no time", dir(time(`"ratio":1,"lo":1,"hi":1,"bases_ns":[0,0,0]`), "raw"), `no figures of a comparison$`},
		{"a percentile of the base alone", dir(with(`"percentiles":{"p50":{"base_ns":1}}`), "raw"), `no figures of a comparison$`},
		{"a negative percentile", dir(with(`"percentiles":{"p99":{"base_ns":1,"stack_ns":-1}}`), "raw"), `no figures of a comparison$`},
		{"a percentile beyond all times", dir(with(`"percentiles":{"p999":{"base_ns":1,"stack_ns":1e308}}`), "raw"),
			`no figures of a comparison$`},
		{"a negative ratio of CPU", dir(with(`"cpu":{"ratio":-1}`), "raw"), `no figures of a comparison$`},
		{"rows missing", dir(string(good)), `bench.txt: no such file or directory$`},
		{"huge", dir(string(good), strings.Repeat("x", 65<<20)), `bench.txt has 65 MB: a page takes 64 at most$`},
	} {
		_, err := Read(c.path)
		require.Error(t, err, c.why)
		require.Regexp(t, c.want, err.Error(), c.why)
		require.NotContains(t, err.Error(), "\n", c.why)
	}
	s, err := Read(dir(string(good), "raw"))
	require.NoError(t, err)
	want := found()
	want.Raw = "raw"
	require.Equal(t, want, s, "what is written is read")
}

func TestWriteOverwritesNothing(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, found().Write(dir))
	before, err := os.ReadFile(filepath.Join(dir, "report.html"))
	require.NoError(t, err)
	require.ErrorContains(t, Summary{Base: "rawtcp"}.Write(dir),
		"report.html is there already: delete it, or name another folder with -out")
	after, err := os.ReadFile(filepath.Join(dir, "report.html"))
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// TestFullDisk: whatever can't be written whole is not there, nor is what was written before it.
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	for name, write := range map[string]func(string) error{"report.html": found().Write, "answer.svg": found().Write,
		"summary.json": found().Save} {
		dir := t.TempDir()
		require.NoError(t, os.Symlink("/dev/full", filepath.Join(dir, name+".part")))
		require.ErrorContains(t, write(dir), "no space left on device", name)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left, name)
	}
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "summary.json"), 0o755))
	require.ErrorContains(t, found().Save(dir), "report: rename ")
	require.NoFileExists(t, filepath.Join(dir, "summary.json.part"))
}

// TestContrast: all text has a contrast of at least 4.5 to what is behind it, as WCAG works it out, by day and by
// night.
func TestContrast(t *testing.T) {
	luminance := func(color string) (sum float64) {
		if len(color) == 4 {
			color = "#" + strings.Repeat(color[1:2], 2) + strings.Repeat(color[2:3], 2) + strings.Repeat(color[3:], 2)
		}
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			n, err := strconv.ParseUint(color[1+2*i:3+2*i], 16, 8)
			require.NoError(t, err)
			if c := float64(n) / 255; c <= 0.04045 {
				sum += weight * c / 12.92
			} else {
				sum += weight * math.Pow((c+0.055)/1.055, 2.4)
			}
		}
		return sum
	}
	contrast := func(x, y string) float64 {
		a, b := luminance(x), luminance(y)
		return (max(a, b) + 0.05) / (min(a, b) + 0.05)
	}
	for _, file := range []struct{ name, color, paper string }{
		{"report.html.tmpl", `--(\w+):(#[0-9a-f]+)`, "paper"},
		{"answer.svg.tmpl", `(ink|dim|text|faster|slower|undecided|first|second)\{(?:fill|stroke):(#[0-9a-f]+)`, "text"}, // whose edge covers the lines behind it
	} {
		page, err := files.ReadFile(file.name)
		require.NoError(t, err)
		day, night, ok := strings.Cut(string(page), "@media (prefers-color-scheme:dark)")
		require.True(t, ok)
		for scheme, style := range map[string]string{"day": day, "night": night} {
			of := map[string]string{}
			for _, m := range regexp.MustCompile(file.color).FindAllStringSubmatch(style, -1) {
				of[m[1]] = m[2]
			}
			require.Subset(t, slices.Collect(maps.Keys(of)), []string{"ink", "dim", file.paper})
			if of["first"] != "" {
				require.GreaterOrEqual(t, contrast(of["first"], of["second"]), 1.9,
					"two machines in black and white, by %s", scheme)
			}
			for name, color := range of {
				papers := []string{of[file.paper]}
				switch name {
				case file.paper, "note", "line": // no text
					continue
				case "ink":
					papers = append(papers, cmp.Or(of["note"], papers[0]))
				}
				for _, paper := range papers {
					require.GreaterOrEqual(t, contrast(color, paper), 4.5, "%s by %s: %s, %s on %s", file.name, scheme,
						name, color, paper)
				}
			}
		}
	}
}

// At a rate the one line is of CPU time, and the pages have what surrounded the calls.
func TestLoads(t *testing.T) {
	s := found()
	require.Nil(t, s.Loads())
	a := &s.Answers[0]
	a.Does, a.BaseMeans.ServerCPUNs, a.StackMeans.ServerCPUNs, a.Others = "5000 calls a second", 20_000, 21_000, 0.25
	a.BaseLoad = verdict.Load{Idle: 0.5, Switches: 2.7, Completed: 1, Skipped: 0.01, LateNs: 400_000}
	a.StackLoad = verdict.Load{Idle: 0.4, Switches: 5.2, Completed: 0.99, Skipped: 0.02, LateNs: 500_000}
	a.Time, a.CPU = verdict.Figure{}, a.Time
	s.Answers[1].StackLoad.Switches = 3
	require.Equal(t, []string{"CPU per call, client and server"}, s.Results(false).Rows[0], "which a rate has alone")
	require.Equal(t, "5000 calls a second", s.Results(false).Rows[1][0])
	rows := s.Loads().Rows
	require.Len(t, rows, 2)
	require.Equal(t, []string{"5000 calls a second", "gRPC", "25%", "50%, 40%", "20.0, 21.0", "2.70, 5.20",
		"100%, 99%", "1%, 2%", "400 µs, 500 µs"}, rows[0])
	require.Equal(t, []string{"1 kB of bytes", "gRPC", "–", "–, –", "–", "–, 3.00", "–", "–", "–"}, rows[1])
	for cell, page := range map[string]func(io.Writer) error{"<td>50%, 40%": s.HTML, "| 50%, 40% |": s.Markdown} {
		var text strings.Builder
		require.NoError(t, page(&text))
		require.Contains(t, text.String(), cell)
	}
}

// TestRecords: the runs that are kept have an answer that fits, and no sentence says more than its lines.
func TestRecords(t *testing.T) {
	records, sentences := 0, 0
	require.NoError(t, filepath.WalkDir("../../study/results", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "summary.json" {
			return err
		}
		records++
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		s, err := Parse(filepath.Dir(path), string(data))
		require.NoError(t, err)
		for _, width := range []int{100, 60, 40} {
			var text strings.Builder
			require.NoError(t, s.Text(&text, width, false, width == 100))
			require.NotRegexp(t, `NaN|Inf|nil`, text.String(), path)
			for line := range strings.Lines(text.String()) {
				if len(strings.Fields(line)) > 1 { // a name of two stacks alone may be longer
					require.LessOrEqual(t, utf8.RuneCountInString(line), width+1, "%s\n%s", path, line)
				}
			}
		}
		require.NoError(t, s.HTML(io.Discard))
		if s.Over == "" {
			sentences += borne(t, s)
		}
		return nil
	}))
	require.Positive(t, records)
	require.Positive(t, sentences)
}

var (
	sizedSaid = regexp.MustCompile(`(takes|serves) (\d+\.\d+) times [^(]*\((\d+\.\d+)–(\d+\.\d+)\)` +
		`(?:.*?: [\d.]+ .s (less|more)\.)?`)
	ofACPU = regexp.MustCompile(`At ([\d,]+) calls a second .*? takes (\d+\.\d+) of a CPU (less|more) than \S+ ` +
		`\((\d+\.\d+)–(\d+\.\d+)\)`)
)

// borne demands of each sentence of a run that is no sweep that its lines bear it out. It returns how many sentences
// there are.
func borne(t *testing.T, s Summary) int {
	t.Helper()
	said := s.Sentences()
	if len(said) == 0 {
		require.Greater(t, len(s.Stacks()), 3)
		return 0
	}
	text := func(numbers ...float64) (all []string) {
		for _, n := range numbers {
			all = append(all, fmt.Sprintf("%.2f", n))
		}
		return all
	}
	for i, stack := range s.Stacks() {
		var decided []verdict.Figure
		for _, a := range s.Of(stack) {
			for _, f := range []verdict.Figure{a.Time, a.CPU} {
				if f.Verdict == verdict.Less || f.Verdict == verdict.More || f.Verdict == verdict.Same {
					decided = append(decided, f)
				}
			}
		}
		require.Equal(t, len(decided) == 0, strings.HasPrefix(said[i], "Whether "), "%s: %v", said[i], decided)
		for _, m := range sizedSaid.FindAllStringSubmatch(said[i], -1) {
			require.True(t, slices.ContainsFunc(decided, func(f verdict.Figure) bool {
				if m[1] == "serves" {
					return slices.Equal(text(1/f.Ratio, 1/f.Hi, 1/f.Lo), m[2:5])
				}
				return slices.Equal(text(f.Ratio, f.Lo, f.Hi), m[2:5]) && (f.Verdict == verdict.Same) == (m[5] == "") &&
					(m[5] == "" || m[5] == string(f.Verdict))
			}), "%s: no line is so", said[i])
		}
		for _, m := range ofACPU.FindAllStringSubmatch(said[i], -1) {
			require.True(t, slices.ContainsFunc(s.Of(stack), func(a Answer) bool {
				cpus := func(ratio float64) float64 { return math.Abs(a.CPU.BaseNs*(ratio-1)) * a.Rate / 1e9 }
				ends := []float64{cpus(a.CPU.Lo), cpus(a.CPU.Hi)}
				slices.Sort(ends)
				return thousands(a.Rate) == m[1] && string(a.CPU.Verdict) == m[3] &&
					slices.Equal(text(cpus(a.CPU.Ratio), ends[0], ends[1]), []string{m[2], m[4], m[5]})
			}), "%s: no line is so", said[i])
		}
		left := ofACPU.ReplaceAllString(sizedSaid.ReplaceAllString(said[i], ""), "")
		require.NotRegexp(t, `times|of a CPU|\(–\)`, left, "a number without interval")
	}
	return len(said)
}

// Over a network with a router the 99th percentile leads, and the page says of what the network was made.
func TestNetwork(t *testing.T) {
	lossy := func(f verdict.Figure) Summary {
		s, a := found(), found().Answers[2]
		a.Does, a.Wired = "500 calls a second, over 20ms/100Mbps/1%", Wired{Callers: 100, Rate: 500, Apart: true,
			Link: "20ms/100Mbps/1%"}
		a.BaseLoad.Completed, a.StackLoad.Completed = 1, 1
		a.Time, a.CPU, a.Others = f, verdict.Figure{}, 0
		a.Network = &Network{Settings: "tcp_rto_min_us=200000", Base: TCP{2300, 31, 0, 24, 2},
			Stack: TCP{1400, 22, 19, 0, 0}, Router: Router{Packets: 120_000, Lost: 1200, Full: 3, Cores: 0.05, LateNs: 90_000}}
		s.Answers = []Answer{a}
		return s
	}
	const at = "At 500 calls a second over 20ms/100Mbps/1% "
	less := verdict.Figure{Verdict: verdict.Less, Ratio: 0.2, Lo: 0.18, Hi: 0.23, BaseNs: 255e6}
	more, most, same, open, wide := less, less, less, less, less
	wide.Lo, wide.Hi = 0.05, 0.9
	more.Verdict, more.Ratio, more.Lo, more.Hi = verdict.More, 1.5, 1.4, 1.6
	most.Verdict, most.Ratio, most.Lo, most.Hi = verdict.More, 4, 3.5, 4.6
	same.Verdict, same.Ratio, same.Lo, same.Hi = verdict.Same, 1, 0.99, 1.01
	open.Verdict = verdict.Undecided
	for _, c := range []struct {
		why  string
		f    verdict.Figure
		want string
	}{
		{"lower", less, at + "gRPC's p99 latency is 80% lower than JSON's (77–82%)."},
		{"higher", more, at + "gRPC's p99 latency is 50% higher than JSON's (40–60%)."},
		{"lower, of no known size", wide, at + "gRPC's p99 latency is lower than JSON's."},
		{"many times", most, at + "gRPC's p99 latency is 4.00 times JSON's (3.50–4.60)."},
		{"the same", same, at + "gRPC's p99 latency is that of JSON."},
		{"undecided", open, "Whether gRPC's p99 latency is lower than JSON's is undecided."},
	} {
		t.Run(c.why, func(t *testing.T) { require.Equal(t, []string{c.want}, lossy(c.f).Sentences()) })
	}
	s := lossy(less)
	lines := s.lines(false)
	require.Equal(t, tailHeading, lines[0].heading)
	require.Equal(t, span(2000*1000), lines[0].base, "the geometric mean, as other percentiles have")
	require.NotContains(t, s.Results(true).Markdown(), cpuHeading)
	for _, to := range []func(io.Writer) error{s.HTML, s.Markdown,
		func(w io.Writer) error { return s.Text(w, 100, false, false) }} {
		var page strings.Builder
		require.NoError(t, to(&page))
		for _, says := range []string{"two namespaces with a router", "tcp_rto_min_us=200000", "0.05 of a core",
			"loss probes", "24.0"} {
			require.Contains(t, strings.Join(strings.Fields(page.String()), " "), says)
		}
	}
	emulated := found()
	emulated.Answers[0].Link = "40ms/10Mbps"
	var page strings.Builder
	require.NoError(t, emulated.Markdown(&page))
	require.Contains(t, page.String(), "40ms/10Mbps is emulated")
}
