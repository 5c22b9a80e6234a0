package pages

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
)

// found is what a run found, all of whose figures differ. JSON's and gRPC's can't be exchanged unseen.
func found(work, title, stack string, ratio float64, verdict versus.Verdict) report.Answer {
	return report.Answer{Workload: work, Does: title, GOMAXPROCS: 1, Stack: stack,
		Result: versus.Result{Ratio: ratio, Lo: ratio * 0.9, Hi: ratio * 1.1, Processes: 8, CopyFloor: 0.01,
			BaseNs: 40_000, Ns: 90_000, Verdict: verdict,
			Reason: map[versus.Verdict]string{versus.Undecided: "since"}[verdict], Percentiles: versus.Percentiles{
				P95: versus.Percentile{Ratio: ratio * 2, Lo: ratio * 1.5, Hi: ratio * 2.5}}},
		BaseFacts: &workload.Facts{Sent: 200, Received: 300, Allocs: 100, AllocBytes: 9000},
		Facts:     &workload.Facts{Sent: 110, Received: 140, Allocs: 160, AllocBytes: 9500}}
}

// record writes the files that tables are made of.
func record(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	run := func(dir string, answers ...report.Answer) {
		data, err := json.Marshal(report.Summary{Release: report.Release, Base: "httpjson", Answers: answers,
			Environment: []string{"cpu=A-Machine", "cores=2", "go=go1.26.8", "date=2026-11-23", "commit=abc"}})
		require.NoError(t, err)
		write(dir+"/summary.json", string(data))
		write(dir+"/bench.txt", "")
	}
	small, large := "a small call, one core", "structured"
	run("quiet/workloads", found("small", small, grpc, 1.2, versus.Slower),
		found("structured-1kB", large, grpc, 0.5, versus.Faster),
		found("small-1-caller", "all cores", grpc, 1.6, versus.Slower))
	run("noisy/workloads", found("small", small, grpc, 1.3, versus.Undecided),
		found("structured-1kB", large, grpc, 0.6, versus.Faster), found("stream", "a stream", grpc, 0.4, versus.Faster))
	run("quiet/stacks", found("small", small, grpc, 1.25, versus.Slower),
		found("small", small, "rawtcp", 0.3, versus.Faster), found("small", small, "httpprotobuf", 0.9, versus.Faster),
		found("small", small, "httpjson.h2c", 1.7, versus.Slower),
		found("small", small, "grpcservehttp", 2.5, versus.Slower), found("small", small, "connectrpc", 1.21, versus.Slower),
		found("small", small, "httpmsgpack", 0.87, versus.Faster), found("small", small, "httpxml", 1.6, versus.Slower))
	run("noisy/stacks", found("small", small, "rawtcp", 0.4, versus.Faster),
		found("small", small, "httpprotobuf", 0.95, versus.Faster),
		found("small", small, "httpjson.h2c", 1.75, versus.Slower),
		found("small", small, "grpcservehttp", 2.55, versus.Slower))
	write("noisy/state.txt", "state 123 of all files, at commit def\nworkloads\n")
	run("quiet/jsoniter", found("small", small, "httpjsoniter", 0.7, versus.Faster),
		found("small-1-caller", "all cores", "httpjsoniter", 0.65, versus.Faster))
	run("quiet/variants", found("small", small, "httpjson.gzip", 2.2, versus.Slower))
	unknown := found("small-1-caller", "all cores", "rawtcp", 0, versus.Undecided)
	run("quiet/cores", unknown)
	left := found("small", small, "fasthttpjson", 1.1, versus.Slower)
	left.Planned, left.OneCore = 10, 2
	run("noisy/more", left,
		found("structured-1kB", large, "fasthttpjson", 0.8, versus.Faster))
	run("noisy/files", found("structured-1kB", large, "httpjson.multipart", 0.2, versus.Faster))
	run("noisy/vt", found("structured-1kB", large, "grpcprotobuf.vt", 0.75, versus.Faster))
	own, err := json.Marshal(report.Summary{Release: report.Release, Base: "httpjson",
		Call:    &report.Call{Method: "a.B/C", Bodies: []report.Body{{Format: "JSON", Request: 70, Reply: 7}, {Request: 9}}},
		Answers: []report.Answer{found("call", "your call", grpc, 0.9, versus.Faster)}})
	require.NoError(t, err)
	write("own/summary.json", string(own))
	write("own/bench.txt", "")
	run("builds", found("small", small, "httpjson@go1.27.4", 1.1, versus.Slower))
	var rows strings.Builder
	for i, codec := range []string{"protobuf", "goccy", "json", "protobuf.vt", "json.gzip", "xml", "msgpack.generated",
		"sonic", "sonic.std", "cbor"} {
		for j, msg := range shownMessages {
			for k := range 6 {
				ns := 100*(i+1) + 1000*j
				row := "BenchmarkCodec/codec=" + codec + "/msg=" + msg + "/op="
				fmt.Fprintf(&rows, "%smarshal-2 1 %d ns/op %d size-B\n%sunmarshal-2 1 %d ns/op\n", row, ns+k%2, ns/10, row, 1000*ns)
			}
		}
	}
	write("noisy/codecs/rows.txt", rows.String())
	write("noisy/sonic/rows.txt", rows.String())
	write("explain.txt", "# httpjson: workload=bytes-1kB GOMAXPROCS=1\nhttpjson less grpcprotobuf\n"+
		"layer client server\nserialisation             +3.2        +2.8         +0.1         +6.1      1.7  json +1\n"+
		"sum             +4.2        -2.8         +0.2         +7.1      2.7\n")
	write("writes.txt", "| stack | client writes | server reads |\n|---|---:|---:|\n| `a` | 4.01 | 8.00 |\n")
	return root
}

// TestTables: each figure of a small record stands in its place, of both stacks, of both machines, and per cell.
func TestTables(t *testing.T) {
	root := record(t)
	for name, c := range map[string]struct{ from, old, want string }{
		"workloads": {"quiet noisy as calm Ada, Bob", "", `
| workload | JSON, µs | gRPC, µs | ratio, calm Ada (95 %) | gRPC is | ratio, Bob (95 %) | gRPC is |
|---|---:|---:|---:|---|---:|---|
| structured | 40.0 | 20.0 | 0.50 (0.45–0.55) | faster | 0.60 (0.54–0.66) | faster |
| a small call, one core | 40.0 | 48.0 | 1.20 (1.08–1.32) | slower | 1.30 (1.17–1.43) | undecided [1] |
| all cores | 40.0 | 64.0 | 1.60 (1.44–1.76) | slower | – | – |

- [1] since.

Calm Ada: [A Machine, 2 virtual cores, go1.26.8, 2026-11-23, commit abc](../quiet).
Bob: [A Machine, 2 virtual cores, go1.26.8, 2026-11-23, commit def](../noisy).
`},
		"main stacks": {"quiet", "", "| `httpjson` | 1 | base | 200 + 300 | 100 |\n" +
			"| `grpcprotobuf` | 1.20 (1.08–1.32) | slower | 110 + 140 | 160 |\n" +
			"| `httpjsoniter` | 0.70 (0.63–0.77) | faster | 110 + 140 | 160 |\n"},
		"costs": {"quiet noisy as calm, loud", "",
			"| `grpcprotobuf` | 1.20 (1.08–1.32) | slower | 1.30 (1.17–1.43) | undecided [1] | 110 | 140 | 160 | 9500 |\n" +
				"| `httpjsoniter` | 0.70 (0.63–0.77) | faster | – | – | 110 | 140 | 160 | 9500 |\n"},
		"cores": {"quiet", "", "| stack | all cores |\n|---|---|\n| `grpcprotobuf` | 1.60 (1.44–1.76) slower |\n" +
			"| `httpjsoniter` | 0.65 (0.59–0.72) faster |\n| `rawtcp` | – undecided [1] |\n\n- [1] since.\n"},
		"asked": {"noisy", "", "| stack | a small call, one core | structured |\n|---|---|---|\n" +
			"| `fasthttpjson` | 1.10 (0.99–1.21) slower [1] | 0.80 (0.72–0.88) faster |\n\n" +
			"- [1] slower; 8 of 10 processes; 2 left out that had one core.\n"},
		"files": {"noisy", "", "| stack | structured |\n|---|---|\n| `grpcprotobuf` | 0.60 (0.54–0.66) faster |\n" +
			"| `httpjson.multipart` | 0.20 (0.18–0.22) faster |\n"},
		"pairs": {"quiet as calm", "", "| the format | `httpprotobuf` to `httpjson` | 0.90 (0.81–0.99) |\n" +
			"| the HTTP version, in net/http | `httpjson.h2c` to `httpjson` | 1.70 (1.53–1.87) |\n" +
			"| the server's HTTP/2: net/http's with ServeHTTP, or grpc-go's own | `grpcservehttp` to `grpcprotobuf` | 2.08 " +
			"(1.81–2.40) |"},
		"builds": {"builds", "", "| workload | base, µs | JSON with go1.27.4 |\n|---|---:|---|\n" +
			"| a small call, one core | 40 | 1.10 (0.99–1.21) slower |"},
		"readings": {"noisy", `| claim | figure | here | claimed | verdict |
|---|
| 1 | time, gRPC to JSON, structured | 9 | below 1 | 9 |
| 1 | time, JSON to gRPC, structured | 9 | 1 to 1.5 | 9 |
| 1 | time, vtprotobuf to protobuf, structured | 9 | – | 9 |
| 2 | calls per second, gRPC to JSON, structured | 9 | about 2 | 9 |
| 2 | p95, JSON to gRPC, structured | 9 | above 1 | 9 |
| 2 | bytes on the wire, JSON to gRPC, structured | 9 | about 2 | 9 |
| 2 | allocations, JSON to gRPC, structured | 9 | above 1 | 9 |
| 2 | allocated bytes, JSON to gRPC, structured | 9 | below 1 | 9 |
| 2 | time of a message, unary call to stream | 9 | above 2 | 9 |
| 2 | marshal ` + "`user`, `json` to `protobuf`" + ` | 9 | about 3 | 9 |
| 2 | bytes of ` + "`user`, `json` to `protobuf`" + ` | 9 | 1 to 2 | 9 |
`, `
| 1 | time, gRPC to JSON, structured | 0.60 (0.54–0.66) | below 1 | holds |
| 1 | time, JSON to gRPC, structured | 1.67 (1.52–1.85) | 1 to 1.5 | more than claimed |
| 1 | time, vtprotobuf to protobuf, structured | 0.75 (0.68–0.83) | – | – |
| 2 | calls per second, gRPC to JSON, structured | 1.67 (1.52–1.85) | about 2 | undecided |
| 2 | p95, JSON to gRPC, structured | 0.83 (0.67–1.11) | above 1 | undecided, noise floor 1.0 % |
| 2 | bytes on the wire, JSON to gRPC, structured | 2.00 | about 2 | holds |
| 2 | allocations, JSON to gRPC, structured | 0.62 | above 1 | does not hold |
| 2 | allocated bytes, JSON to gRPC, structured | 0.95 | below 1 | holds |
| 2 | time of a message, unary call to stream | 3.25 (2.82–3.75) | above 2 | holds |
| 2 | marshal ` + "`user`, `json` to `protobuf`" + ` | 2.99 (2.97–3.01) | about 3 | holds |
| 2 | bytes of ` + "`user`, `json` to `protobuf`" + ` | 3.00 | 1 to 2 | more than claimed |
`},
		"publics": {"own", "", "| method | JSON, B | your call |\n|---|---:|---|\n" +
			"| [a.B/C](../own/report.md) | 77 | 0.90 (0.81–0.99) faster |\n"},
		"codec times": {"noisy", "", "| encode | `protobuf` | `json` | `goccy` | `protobuf.vt` |\n" +
			"|---|---:|---:|---:|---:|\n" +
			"| `user` | 100 ns ± 0% | 300 ns ± 0% | 200 ns ± 0% | 400 ns ± 0% |\n" +
			"| `user.10kB` | 1.1 µs ± 0% | 1.3 µs ± 0% | 1.2 µs ± 0% | 1.4 µs ± 0% |\n"},
		"sonic": {"noisy", "", "| decode | `json` | `sonic` | `sonic.std` | `cbor` |\n|---|---:|---:|---:|---:|\n" +
			"| `user` | 300 µs ± 0% | 800 µs ± 0% | 900 µs ± 0% | 1 ms ± 0% |\n"},
		"codec sizes": {"noisy", "", "| bytes of | `protobuf` | `json` | `json.gzip` | `xml` | `msgpack.generated` |\n" +
			"|---|---:|---:|---:|---:|---:|\n| `user` | 10 | 30 | 50 | 60 | 70 |\n"},
		"differences": {"explain.txt", "", "| layer | `httpjson` less `grpcprotobuf`, bytes-1kB |\n|---|---:|\n| " +
			"serialisation | +6.1 ± 1.7 |"},
		"file": {"writes.txt", "", "| stack | client writes | server reads |\n|---|---:|---:|\n| `a` | 4.01 | 8.00 |\n"},
	} {
		text := "<!-- begin " + name + " from " + c.from + " -->\n" + c.old + "<!-- end " + name + " -->\n"
		filled, err := Fill(root, "docs/page.md", text)
		require.NoError(t, err, name)
		require.Contains(t, filled, c.want, name)
		_, err = Fill(root, "docs/page.md", strings.Replace(text, "<!-- begin "+name+" from ", "<!-- begin "+name+" from no/",
			1))
		require.Error(t, err, "%s of a file that is not there", name)
	}
}

// TestPictures: a picture has the figures, the order and the words of the table that its comment names.
func TestPictures(t *testing.T) {
	root := record(t)
	page := "<!-- picture docs/answer.svg of workloads -->\n<img src=\"docs/answer.svg\" width=\"400\">\n" +
		"<!-- begin workloads from quiet noisy as calm Ada, Bob -->\n<!-- end workloads -->\n"
	drawn, err := Pictures(root, "README.md", page)
	require.NoError(t, err)
	var titles []string
	for _, m := range regexp.MustCompile(`<title>(.*)</title>`).FindAllSubmatch(drawn["docs/answer.svg"], -1) {
		titles = append(titles, string(m[1]))
	}
	require.Equal(t, []string{
		"structured: calm Ada 0.50 (0.45–0.55), faster", "structured: Bob 0.60 (0.54–0.66), faster",
		"a small call, one core: calm Ada 1.20 (1.08–1.32), slower",
		"a small call, one core: Bob 1.30 (1.17–1.43), undecided",
		"all cores: calm Ada 1.60 (1.44–1.76), slower",
	}, titles)
	for _, c := range []struct{ reason, old, anew, problem string }{
		{"a table that the page lacks", "of workloads", "of pears", `lacks a table "pears"`},
		{"a table without machines", " as calm Ada, Bob", "", `lacks a table "workloads" of a run per machine`},
		{"a machine without a run", "quiet noisy", "quiet", `lacks a table "workloads" of a run per machine`},
		{"another picture is shown", `src="docs/`, `src="results/`, "shows results/answer.svg"},
		{"nothing is shown", "<img ", "<p ", "begin the next line with <img"},
		{"another form", " of workloads -->", " from workloads -->", "begin the next line with <img"},
		{"a run that is not there", "quiet noisy", "quiet none", "has no summary.json"},
	} {
		_, err := Pictures(root, "README.md", strings.Replace(page, c.old, c.anew, 1))
		require.ErrorContains(t, err, c.problem, c.reason)
	}
}

func TestVerdictsOfClaims(t *testing.T) {
	page := "<!-- begin claims from noisy -->\n| | claim | here |\n|---|\n| 1 | JSON is it | – |\n| 2 | gRPC " +
		"is it | – |\n" +
		"<!-- end claims -->\n<!-- begin readings from noisy -->\n| claim |\n|---|\n" +
		"| 1 | time, gRPC to JSON, structured | – | above 1 | – |\n" +
		"| 1 | time, gRPC to JSON, structured | – | below 1 | – |\n" +
		"| 2 | time, gRPC to JSON, structured | – | – | – |\n<!-- end readings -->\n"
	filled, err := Fill(record(t), "docs/claims.md", page)
	require.NoError(t, err)
	require.Contains(t, filled, "| 1 | JSON is it | **holds in part** |\n| 2 | gRPC is it | **void** |\n\n"+
		"Of 2 claims: holds in part 1, void 1.\n")
	for reason, text := range map[string]string{
		"a claim without figures":    strings.Replace(page, "| 2 | time", "| 1 | time", 1),
		"figures without a claim":    strings.Replace(page, "| 2 | time", "| 3 | time", 1),
		"words that no file answers": strings.Replace(page, "time, gRPC to", "luck, gRPC to", 1),
		"a claim that is no range":   strings.Replace(page, "above 1", "many", 1),
	} {
		_, err := Fill(record(t), "docs/claims.md", text)
		require.Error(t, err, reason)
	}
	holds, fails := reading{value: 2, lo: 2, hi: 2, least: 1, most: 3},
		reading{value: .5, lo: .5, hi: .5, least: 1, most: 3}
	more, open := reading{value: 4, lo: 4, hi: 4, least: 1, most: 3}, reading{value: 3, lo: 2, hi: 4, least: 1, most: 3}
	for want, readings := range map[string][]reading{
		"holds":                             {holds, holds},
		"does not hold":                     {fails},
		"more than claimed":                 {more},
		"holds in part":                     {open, fails, holds},
		"does not hold where it is decided": {open, fails},
		"holds where it is decided":         {holds, open},
		"undecided":                         {open, open},
	} {
		require.Equal(t, want, overall(readings))
	}
}

func TestVerdictsOfReadings(t *testing.T) {
	for _, c := range []struct {
		reason, want, claimed string
		reading               reading
	}{
		{"less is claimed, and it is much less", "more than claimed", "0.3 to 0.6", reading{lo: 0.21, hi: 0.23}},
		{"less is claimed, and it is more", "does not hold", "0.3 to 0.6", reading{lo: 1.31, hi: 1.42}},
		{"less is claimed, and it is a little less", "does not hold", "0.6 to 0.8", reading{lo: 0.9, hi: 0.9}},
		{"about the same is claimed, and it is less", "does not hold", "about 1", reading{lo: 0.4, hi: 0.6}},
		{"a difference outside the noise floor", "holds", "above 1", reading{lo: 1.04, hi: 1.10, floor: 0.03}},
		{"a difference inside the noise floor", "undecided, noise floor 5.0 %", "above 1",
			reading{lo: 1.01, hi: 1.03, floor: 0.05}},
		{"a difference that reaches into the noise floor", "undecided, noise floor 5.0 %", "above 1",
			reading{lo: 1.04, hi: 1.10, floor: 0.05}},
		{"a gain that reaches into the noise floor", "undecided, noise floor 5.0 %", "below 1",
			reading{lo: 0.93, hi: 0.97, floor: 0.05}},
		{"no difference is proved, and five times is claimed", "does not hold, noise floor 5.0 %", "5 to 10",
			reading{lo: 1.01, hi: 1.03, floor: 0.05}},
		{"the noise floor is nothing far from 1", "holds", "above 2", reading{lo: 2.03, hi: 2.24, floor: 0.9}},
	} {
		r, err := c.reading.within(c.claimed)
		require.NoError(t, err)
		require.Equal(t, c.want, r.said(), c.reason)
	}
}

// TestQuotients: the interval of a quotient is the root of the sum of the squares of both.
func TestQuotients(t *testing.T) {
	ratio := func(ratio, half float64) (a report.Answer) {
		a.Ratio, a.Lo, a.Hi = ratio, ratio*math.Exp(-half), ratio*math.Exp(half)
		return a
	}
	q := quotient(ratio(5, 0.4), ratio(2, 0.3))
	require.InDeltaSlice(t, []float64{2.5, 2.5 * math.Exp(-0.5), 2.5 * math.Exp(0.5)}, []float64{q.Ratio, q.Lo, q.Hi},
		1e-9)
}

// TestCheck: a figure of a sentence is its file's, in its place, or the page is refused.
func TestCheck(t *testing.T) {
	root := record(t)
	cite := "\n<!-- from writes.txt: `a`: 4.01 8.00 -->\n"
	for _, c := range []struct{ reason, text, problem string }{
		{"as in the file", "It writes 4.01 and reads 8.00 times." + cite, ""},
		{"rounded", "It writes 4 times, 4.0 µs.\n<!-- from writes.txt: `a`: 4 -->\n", ""},
		{"thousandths", "It takes 1.1 µs.\n<!-- from noisy/codecs/rows.txt: codec=protobuf/msg=user.10kB: 1.1 -->\n", ""},
		{"below another line", "It adds 6.1 ± 1.7 µs.\n<!-- from explain.txt: less grpc > serialisation: 6.1 1.7 -->\n", ""},
		{"exchanged in the sentence", "It writes 8.00 and reads 4.01 times." + cite, "the sentence has not"},
		{"exchanged in the comment", "It writes 8.00 and reads 4.01 times.\n<!-- from writes.txt: `a`: 8.00 4.01 -->\n",
			"writes.txt: the line"},
		{"another figure", "It writes 4.02 times.\n<!-- from writes.txt: `a`: 4.02 -->\n", "writes.txt: the line"},
		{"another sign", "It adds -6.1 µs.\n<!-- from explain.txt: less grpc > serialisation: -6.1 -->\n", "the line"},
		{"of another paragraph", "It writes 4.01 and reads 8.00 times.\n\nWell." + cite, "the sentence has not"},
		{"no such line", "It writes 4.01 times.\n<!-- from writes.txt: `b`: 4.01 -->\n", "no line"},
		{"no such file", "It writes 4.01 times.\n<!-- from nothing.txt: `a`: 4.01 -->\n", "no such file"},
		{"an interval without a file", "It takes 1.20 (1.08–1.32) times as long.\n", "names no file"},
		{"a spread without a file", "- It takes 3 µs.\n- It adds 6.1 ± 1.7 µs.\n", "names no file"},
		{"a comment of another form", "It writes 4.01 times.\n<!-- from writes.txt, 4.01 -->\n", "neither"},
		{"lines shown", "<!-- from writes.txt -->\n```text\n| `a` | 4.01 | 8.00 |\n```\n", ""},
		{"other lines shown", "<!-- from writes.txt -->\n```text\n| `a` | 8.00 | 4.01 |\n```\n", "lacks the line"},
		{"figures of a table are the program's", "<!-- begin x -->\n1.2 (1.1–1.3)\n<!-- end x -->\n", ""},
	} {
		err := Check(root, "docs/page.md", c.text)
		if c.problem == "" {
			require.NoError(t, err, c.reason)
		} else {
			require.ErrorContains(t, err, c.problem, c.reason)
		}
	}
	for reason, text := range map[string]string{
		"a table that nobody makes": "<!-- begin pears from writes.txt -->\n<!-- end pears -->\n",
		"a table without an end":    "<!-- begin file from writes.txt -->\n",
		"a run without a machine":   "<!-- begin workloads from quiet noisy as Ada -->\n<!-- end workloads -->\n",
		"too few files":             "<!-- begin costs from writes.txt -->\n<!-- end costs -->\n",
	} {
		_, err := Fill(root, "page.md", text)
		require.ErrorContains(t, err, "names no table", reason)
	}
}
