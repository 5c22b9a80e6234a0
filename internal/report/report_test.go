package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/workload"
)

func payload(bytes int) *int { return &bytes }

// found is a run with an answer of each kind.
func found() Summary {
	facts := &workload.Facts{Calls: 1000, Sent: 197, Received: 225, Allocs: 116, AllocBytes: 9070, P50: 39 * time.Microsecond, Connections: 1,
		Seen: "HTTP/1.1, application/json"}
	return Summary{Release: Release, Command: "rpcbench run -out <mine>", Environment: []string{"cpu=X"}, Base: "httpjson", Processes: 8, Layouts: 8,
		Warnings: []string{"the machine was not quiet"}, Raw: "BenchmarkRun/<raw>",
		Answers: []Answer{
			{Workload: "small", Does: "a small message, CPU work", Bytes: payload(0), GOMAXPROCS: 1, Stack: "grpcprotobuf", Processes: 8, BaseNs: 40_000,
				Ns: 42_000, Ratio: 1.05, Lo: 1.04, Hi: 1.06, Floor: 0.01, Verdict: timing.Slower, BaseFacts: facts, Facts: facts, Bases: []float64{1, 3, 2}},
			{Workload: "bytes-1kB", Does: "1 kB of bytes", Bytes: payload(1000), Stack: "grpcprotobuf", Processes: 8, BaseNs: 80_000, Ns: 64_000,
				Ratio: 0.8, Lo: 0.78, Hi: 0.82, Floor: 0.01, Verdict: timing.Faster},
			{Workload: "mixed", Does: "mixed fields", Stack: "grpcprotobuf", Processes: 7, BaseNs: 80_000, Ratio: 1.001, Lo: 0.99, Hi: 1.01,
				Moved: 0.3, Floor: 0.01, Verdict: timing.Undecided},
			{Workload: "cold", Does: "a new connection", Stack: "grpcprotobuf", Verdict: timing.Undecided},
		}}
}

func TestSentences(t *testing.T) {
	require.Equal(t, []string{
		"On one core a small call of gRPC takes 1.05 times as long as one of JSON (1.04–1.06): 2.0 µs more.",
		"Of a request that takes 0.1, 1 or 10 ms, the difference is 2 %, 0.2 % or 0.02 %.",
		"gRPC is faster in 1 of 3 workloads: 1 kB of bytes.",
		"gRPC is slower in 1 of 3 workloads: a small message, CPU work.",
		"gRPC is undecided in 1 of 3 workloads: mixed fields.",
	}, found().Sentences())

	s := found()
	s.Answers = s.Answers[:1]
	require.Equal(t, []string{"gRPC takes 1.05 times as long as JSON (1.04–1.06), +2.0 µs: slower, for a small message, CPU work."}, s.Sentences())

	s = found()
	small := &s.Answers[0]
	small.Verdict = timing.Undecided
	for _, c := range []struct {
		moved, floor float64
		want         string
	}{
		{0, 0.01, "That difference is undecided: the interval is too wide."},
		{0, 0.03, "That difference is undecided: the noise floor is 3 %."},
		{1.2, 0.03, "That difference is undecided: the base moved by 120 % meanwhile."},
	} {
		small.Moved, small.Floor = c.moved, c.floor
		require.Contains(t, s.Sentences(), c.want)
	}
}

// The crossing lies where a line through the two differences in time is 0, and its limits where those of the limits are.
func TestCrossings(t *testing.T) {
	c := found().Crossings()
	require.Len(t, c, 1)
	require.InDelta(t, 1000*2000./(2000+16_000), c[0].At, 1e-6)
	require.InDelta(t, 1000*1600./(1600+17_600), c[0].Lo, 1e-6)
	require.InDelta(t, 1000*2400./(2400+14_400), c[0].Hi, 1e-6)
	require.Equal(t, "slower", c[0].Below)
	require.Equal(t, "faster", c[0].Above)

	s := found()
	s.Answers[0].Verdict = timing.Undecided
	require.Empty(t, s.Crossings(), "one end is undecided")
	s.Answers[0].Verdict = timing.Faster
	require.Empty(t, s.Crossings(), "faster at both ends")

	s.Answers = nil
	for workload, verdict := range map[string]timing.Verdict{"cold-tls": timing.Slower, "stream": timing.Faster, "small": timing.Undecided,
		"cold": timing.Slower, "small-1-caller": timing.Slower, "small-50-callers": timing.Faster, "mixed": timing.Equal} {
		s.Answers = append(s.Answers, Answer{Stack: "grpcprotobuf", Workload: workload, Does: "does " + workload, Verdict: verdict, Ratio: 1})
	}
	require.Equal(t, []Crossing{
		{Stack: "gRPC", Below: "slower", Above: "faster", From: "does small-1-caller", To: "does small-50-callers"},
		{Stack: "gRPC", Below: "faster", Above: "slower", From: "does stream", To: "does cold"},
	}, s.Crossings(), "by callers and by connection, whatever the order of the answers")
	var md bytes.Buffer
	require.NoError(t, s.Markdown(&md))
	require.Contains(t, md.String(), `- gRPC is faster than JSON for "does stream", and slower for "does cold".`)
}

// The pages are well formed, hold what was found, and load nothing from elsewhere.
func TestPages(t *testing.T) {
	var page, md, svg bytes.Buffer
	s := found()
	require.NoError(t, s.HTML(&page))
	require.NoError(t, s.Markdown(&md))
	require.NoError(t, s.SVG(&svg))
	for _, want := range []string{"gRPC against JSON", "Warning: the machine was not quiet", "HTTP/1.1, application/json",
		"rpcbench run -out &lt;mine&gt;", "BenchmarkRun/&lt;raw&gt;", "0,22.0 60,2.0 120,12.0", `<td class="l slower">slower`,
		"<td>39.0<td>–<td>–", "prefers-color-scheme:dark"} {
		require.Contains(t, page.String(), want)
	}
	require.NotRegexp(t, `<script|(src|href)=|url\(|@import`, page.String())
	require.Contains(t, md.String(), "| a small message, CPU work | gRPC | 1.05 | 1.04–1.06 | slower | 40.0 | 42.0 | +2.0 | 1 % | 1 |")
	require.Contains(t, md.String(), "| a new connection | gRPC |  |  | not measured | – | – |  |  | 0 |")
	require.Contains(t, md.String(), "| mixed fields | gRPC | 1.00 | 0.99–1.01 | undecided, 7 of 8 processes | 80.0 | 80.1 | +0.1 | 30 % |", "a base that moved is noise")
	for line := range strings.Lines(md.String()) {
		if strings.HasPrefix(line, "|") {
			require.Contains(t, []int{11, 12}, strings.Count(line, "|"), line)
		}
	}
	s.Answers[0].Does = "a|b\n<b>"
	md.Reset()
	require.NoError(t, s.Markdown(&md))
	require.Contains(t, md.String(), `| a\|b &lt;b> | gRPC |`)
	s.Answers[0].Facts = nil
	page.Reset()
	require.NoError(t, s.HTML(&page))
	require.NotContains(t, page.String(), "seen on the wire", "builds have no facts")
	for decoder := xml.NewDecoder(&svg); ; {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
}

// Nothing in the picture lies outside, and 1 is where the sides meet.
func TestPicture(t *testing.T) {
	s := found()
	s.Answers[1].Lo, s.Answers[1].Ratio = 0.0001, 0.0002
	s.Answers[0].Hi = 1e9
	p := s.Picture()
	require.Len(t, p.Lines, 3, "without a ratio there is no dot")
	for _, l := range p.Lines {
		require.GreaterOrEqual(t, l.Lo, float64(left))
		require.LessOrEqual(t, l.Lo, l.At)
		require.LessOrEqual(t, l.At, l.Hi)
		require.LessOrEqual(t, l.Hi, float64(right))
		require.Less(t, l.FloorLo, p.One)
		require.Greater(t, l.FloorLo+l.FloorWidth, p.One)
	}
	require.Equal(t, "gRPC faster", p.Below)
	require.Equal(t, "JSON faster", p.Above)
	builds := found() // each workload of two builds, below a heading each
	for _, a := range found().Answers {
		a.Stack = "grpcprotobuf@google.golang.org/grpc@v1.80.0"
		builds.Answers = append(builds.Answers, a)
	}
	lines := builds.Picture().Lines
	require.Len(t, lines, 2*(1+3))
	require.Equal(t, "gRPC", lines[0].Heading)
	require.Equal(t, "gRPC with grpc@v1.80.0", lines[4].Heading)
	builds.Answers = []Answer{builds.Answers[0], builds.Answers[4]} // one workload
	require.Equal(t, "gRPC with grpc@v1.80.0", builds.Picture().Lines[1].Label)
	for _, w := range workload.All() {
		require.LessOrEqual(t, len(w.Does), 42, "the label of %s would be cut", w.Name)
	}
}

func TestRead(t *testing.T) {
	dir := func(summary, bench string) string {
		dir := t.TempDir()
		if summary != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "summary.json"), []byte(summary), 0o644))
		}
		if bench != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "bench.txt"), []byte(bench), 0o644))
		}
		return dir
	}
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "bench.txt")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	good, err := json.Marshal(found())
	require.NoError(t, err)
	for _, c := range []struct{ why, path, want string }{
		{"nothing", filepath.Join(t.TempDir(), "none"), `^rpcbench: report: stat .*none: no such file or directory$`},
		{"a folder of something else", dir("", ""), `^rpcbench: report: \S+ has no summary.json: name a folder that rpcbench run made$`},
		{"no JSON", dir("x", ""), `^rpcbench: report: \S+: summary.json is no summary of a run: invalid character`},
		{"another release", dir(`{"release":7,"answers":[{}]}`, ""), `^rpcbench: report: \S+ was made by another release of rpcbench \(7, this one reads 1\): `},
		{"nothing measured", dir(`{"release":1,"answers":[{}]}`, ""), `has no answers: nothing was measured$`},
		{"a ratio that is none", dir(`{"release":1,"answers":[{"workload":"small","stack":"x","processes":8,"ratio":-1}]}`, ""),
			`: small of x has the ratio -1 \(0–0\), which is none$`},
		{"a device", "/dev/zero", `is no file$`},
		{"rows missing", dir(string(good), ""), `bench.txt: no such file or directory$`},
		{"no benchmark output", file("hello\n"), `has no row with a ratio and its interval: name output of go test -bench Versus, or a folder of rpcbench run$`},
		{"empty", file(""), `has no row with a ratio`},
		{"huge", file(strings.Repeat("x", 65<<20)), `bench.txt has 65 MB: a page takes 64 at most$`},
	} {
		t.Run(c.why, func(t *testing.T) {
			_, err := Read(c.path)
			require.Error(t, err)
			require.Regexp(t, c.want, err.Error())
			require.NotContains(t, err.Error(), "\n")
		})
	}
	s, err := Read(dir(string(good), "raw"))
	require.NoError(t, err)
	require.Equal(t, "raw", s.Raw)
	require.Equal(t, found().Answers, s.Answers)
}

// Rows of BenchmarkVersus have ratios, and other rows stay in the raw data.
func TestReadBenchmarkOutput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bench.txt")
	require.NoError(t, os.WriteFile(path, []byte(`goos: linux
BenchmarkHTTPJSON-2 	 1	 50000 ns/op
BenchmarkVersus/stack=rawtcp-2 	 1	 20000 ns/op	 1.01 aa-ratio	 1.02 aa-ratio-hi	 0.99 aa-ratio-lo
BenchmarkVersus/stack=grpcprotobuf-2 	 1	 40000 ns/op	 2.0 base-ratio	 2.1 base-ratio-hi	 1.9 base-ratio-lo	 5 noise-floor-%
BenchmarkVersus/stack=grpcprotobuf-2 	 1	 40000 ns/op	 1.0 base-ratio	 1.1 base-ratio-hi	 0.9 base-ratio-lo	 5 noise-floor-%
BenchmarkVersus/stack=grpcprotobuf 	 1	 40000 ns/op	 1.4 base-ratio	 1.5 base-ratio-hi	 1.3 base-ratio-lo	 5 noise-floor-%	 60 base-moved-%	 16 processes
BenchmarkVersus/stack=httpxml 	 1	 40000 ns/op	 NaN base-ratio	 1.5 base-ratio-hi	 1.3 base-ratio-lo
`), 0o644))
	s, err := Read(path)
	require.NoError(t, err)
	require.Equal(t, "rawtcp", s.Base)
	require.Len(t, s.Answers, 3, "a row whose ratio is no number is left out")
	require.Equal(t, Answer{Does: "a small message, GOMAXPROCS=2", GOMAXPROCS: 2, Stack: "grpcprotobuf", Processes: 1, Ns: 40_000, BaseNs: 20_000,
		Ratio: 2, Lo: 1.9, Hi: 2.1, Floor: 0.05, Verdict: timing.Slower}, s.Answers[0])
	require.Equal(t, "a small message, GOMAXPROCS=2, repeat 2", s.Answers[1].Does)
	require.Equal(t, timing.Undecided, s.Answers[1].Verdict)
	moved := s.Answers[2]
	require.Equal(t, "a small message, GOMAXPROCS=1", moved.Does)
	require.Equal(t, timing.Undecided, moved.Verdict, "the base moved further")
	require.Equal(t, 16, moved.Processes)
}

func TestWriteOverwritesNothing(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, found().Write(dir))
	before, err := os.ReadFile(filepath.Join(dir, "report.html"))
	require.NoError(t, err)
	again := found()
	again.Base = "rawtcp"
	require.ErrorContains(t, again.Write(dir), "report.html is there already: delete it, or name another folder with -out")
	after, err := os.ReadFile(filepath.Join(dir, "report.html"))
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// Every number of the picture is finite: NaN would draw nothing.
func TestPictureOfNothing(t *testing.T) {
	var svg bytes.Buffer
	require.NoError(t, Summary{Base: "httpjson"}.SVG(&svg))
	for _, number := range regexp.MustCompile(` x[12]?="([^"]*)"`).FindAllStringSubmatch(svg.String(), -1) {
		_, err := strconv.ParseFloat(number[1], 64)
		require.NoError(t, err)
	}
	require.NotContains(t, svg.String(), "NaN")
}
