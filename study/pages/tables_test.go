package pages

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// record copies testdata/record, and makes the runs that its runs.txt lists: folder, machine, workload, stack, ratio,
// verdict and title. All figures of an answer differ, so no two can be exchanged unseen. A verdict with a star left two
// of ten processes out.
func record(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	require.NoError(t, os.CopyFS(root, os.DirFS("testdata/record")))
	for name, samples := range map[string][]string{
		"one": {" y<a/lib.serve.func1", " y<a/lib.serve.func2", " lib.write", " b<bench.run", " y<runtime.mcall"},
		"two": {" y<http.serve", " b<bench.run", " a<bench.run", " a/b.c<bench.run", " lib.serve<runtime.mcall"},
	} {
		var profiled bytes.Buffer
		require.NoError(t, testkit.Profile(nil, samples...).Write(&profiled))
		write(t, root, name+".pprof", profiled.String())
	}
	write(t, root, "go.mod", "module x\n\nrequire (\n\texample.com/lib v1.2.3\n)\n")
	write(t, root, "study/go.mod", "module x/study\n")
	list, err := os.ReadFile("testdata/record/runs.txt")
	require.NoError(t, err)
	runs := map[string]report.Summary{}
	for line := range strings.Lines(string(list)) {
		c := strings.SplitN(strings.TrimSpace(line), " ", 7)
		ratio, err := strconv.ParseFloat(c[4], 64)
		require.NoError(t, err)
		says, left := strings.CutSuffix(c[5], "*")
		a := report.Answer{Workload: c[2], Does: c[6], GOMAXPROCS: 1, Stack: c[3], Leads: report.ByTime,
			Answer: verdict.Answer{Processes: verdict.Counts{Counted: 8},
				Time: verdict.Figure{Ratio: ratio, Lo: ratio * 0.9, Hi: ratio * 1.1, CopyDiffers: 0.01, NoiseFloor: 0.01,
					BaseNs: 40_000, StackNs: 90_000, Verdict: verdict.Verdict(says),
					Reason: map[string]verdict.Reason{"undecided": {Kind: "since"}}[says]},
				Percentiles: verdict.Percentiles{
					P95: verdict.Percentile{Ratio: ratio * 2, Lo: ratio * 1.5, Hi: ratio * 2.5}}},
			BaseFacts: &report.Counts{Sent: 200, Received: 300, Allocs: 100, AllocBytes: 9000, Connections: 1},
			Facts:     &report.Counts{Sent: 110, Received: 140, Allocs: 160, AllocBytes: 9500, Connections: 1}}
		a.Callers = 1
		if left {
			a.Processes.Planned, a.Processes.OneCore = 10, 2
		}
		s := runs[c[0]]
		if value, ok := strings.CutPrefix(a.Does, "calls a second: "); ok {
			s.Over, a.Value, a.Leads, a.CPU = "calls a second", value, report.ByCPU, a.Time
			a.BaseLoad, a.StackLoad = verdict.Load{Switches: 7, Idle: 0.7}, verdict.Load{Switches: 11, Idle: 0.6}
			a.CPU.BaseNs, a.BaseFacts.Connections, a.Facts.Connections = 55_000, 100, 1
			a.Callers, a.Apart = 100, true
			if value != report.Saturated {
				a.Rate, err = strconv.ParseFloat(value, 64)
				require.NoError(t, err)
				a.Time, a.BaseLoad.Completed, a.StackLoad.Completed = verdict.Figure{}, 1, 1
			}
			a.BaseFacts.Writes, a.Facts.Writes = 0.9, 0.4
			a.BaseMeans.ServerCPUNs = 12_000
			a.Percentiles.P50 = verdict.Percentile{BaseNs: 600_000, StackNs: 470_000, Ratio: 0.8}
		}
		s.Release, s.Base, s.Answers = report.Release, "httpjson", append(s.Answers, a)
		s.Environment = []string{"cpu=" + c[1], "cores=2", "go=go1.26.8", "date=2026-11-23", "commit=abc",
			"google.golang.org/grpc@v1.85.0"}
		if a.Workload == "call" {
			s.Call = &report.Call{Method: "a.B/C", Bodies: []report.Body{{Request: 70, Reply: 7}, {Request: 9}}}
		}
		runs[c[0]] = s
	}
	for dir, s := range runs {
		data, err := json.Marshal(s)
		require.NoError(t, err)
		write(t, root, dir+"/summary.json", string(data))
		write(t, root, dir+"/bench.txt", "")
	}
	return root
}

// TestMadePage: a template with every figure and table makes testdata/page.md. Somebody has read that each figure there
// is of its stack, machine and row.
func TestMadePage(t *testing.T) {
	root := record(t)
	text, err := os.ReadFile("testdata/page.md.tmpl")
	require.NoError(t, err)
	made, err := fill(root, string(text))
	require.NoError(t, err)
	for name := range in(root).tables() {
		// One is of this repository, and tests of their own read the others.
		if !slices.Contains([]string{"codecs", "short", "price", "proxied", "pools"}, name) {
			require.Contains(t, string(text), `{{table "`+name+`" `, "nobody has read this table")
		}
	}
	want, err := os.ReadFile("testdata/page.md")
	require.NoError(t, err)
	require.Equal(t, string(want), made)
	require.Contains(t, filled(t, "../..", `table "codecs"`), "| `json` | encoding/json | replaced | ")
	require.Equal(t, "about half", filled(t, root, `bears "about half" (about 0.5) 0.52`))
	require.Equal(t, []string{"example.com/lib/x v1.2.3", "net/http"},
		[]string{in(root).versioned("example.com/lib/x"), in(root).versioned("net/http")})
}

// TestTablesSayWhereAndHow: a table of what was measured says on which machine, with which release of Go and in how
// many processes, as its own record does.
func TestTablesSayWhereAndHow(t *testing.T) {
	root := record(t)
	text, err := os.ReadFile("testdata/page.md.tmpl")
	require.NoError(t, err)
	actions := regexp.MustCompile(`\{\{(table "([^"]+)" .*)\}\}`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, actions)
	for _, action := range actions {
		said := []string{"answer", "turn", "connections", "cores", "agree", "publics", "differences", "towers"}
		if slices.Contains(said, action[2]) || strings.Contains(action[1], `"size"`) {
			continue // whose sentences above them say it, and what is the same everywhere
		}
		made := filled(t, root, action[1])
		require.Contains(t, made, "A Machine, 2 virtual cores", action[1])
		require.Contains(t, made, "go1.26.8", action[1])
		require.Regexp(t, `processes×cores|one process with 1 core|two processes with 1 core|GOMAXPROCS \d on`, made,
			action[1])
	}
}

// TestWiring: callers, connections and processes are told as they were counted.
func TestWiring(t *testing.T) {
	one := &report.Counts{Calls: 1000, Connections: 1}
	each := &report.Counts{Calls: 1000, Connections: 1000}
	hundred := &report.Counts{Calls: 1000, Connections: 100}
	apart := verdict.Answer{BaseMeans: verdict.Means{ServerCPUNs: 1}, BaseLoad: verdict.Load{Switches: 1, Completed: 1}}
	fifty := report.Answer{Wired: report.Wired{Callers: 50, Apart: true}, Workload: "apart.callers.50.conns.1", GOMAXPROCS: 2, Answer: apart, BaseFacts: one, Facts: one}
	single := report.Wired{Callers: 1}
	for reason, c := range map[string]struct {
		answer report.Answer
		want   string
	}{
		"one caller on one core": {report.Answer{Wired: single, GOMAXPROCS: 1, BaseFacts: one, Facts: one}, "1×1; 1; 1/1"},
		"a new connection a call": {report.Answer{Wired: single, GOMAXPROCS: 1, BaseFacts: each, Facts: each},
			"1×1; 1; one for each call"},
		"a connection each": {report.Answer{Wired: report.Wired{Callers: 100, Apart: true}, GOMAXPROCS: 2, Answer: apart, BaseFacts: hundred, Facts: one},
			"2×2; 100; 100/1"},
		"several callers": {report.Answer{Wired: report.Wired{Callers: 30}, GOMAXPROCS: 2, BaseFacts: hundred, Facts: one},
			"1×2; 30; 100/1"},
		"callers in its name":       {fifty, "2×2; 50; 1/1"},
		"connections of no record":  {report.Answer{Wired: single, GOMAXPROCS: 1}, "1×1; 1; –"},
		"one new connection of two": {report.Answer{Wired: single, GOMAXPROCS: 1, BaseFacts: each, Facts: one}, "1×1; 1; 1000/1"},
	} {
		a := comparisonOf(c.answer.Led())
		require.Equal(t, c.want, place(a)+"; "+strconv.Itoa(a.Callers)+"; "+onConnections(a), reason)
	}
	for cores, want := range map[int]string{1: "", 2: "3.00"} {
		a := report.Answer{GOMAXPROCS: cores}
		require.Equal(t, want, waited(comparisonOf(a.Led()), verdict.Percentile{BaseNs: 2000, StackNs: 4000, Ratio: 3}),
			"nobody waits on one core for the side that calls")
	}
}

// another is the record with a run in "more" that made one of its comparisons, with another ratio and a change.
func another(t *testing.T, change func(s *report.Summary)) (root string) {
	t.Helper()
	root = record(t)
	again(t, root, "quiet/workloads", "more", func(s *report.Summary) {
		s.Answers = slices.DeleteFunc(s.Answers, func(a report.Answer) bool { return a.Workload != "small-1-caller" })
		s.Answers[0].Time.Ratio = 1.7
		change(s)
	})
	return root
}

// again writes a run of a record into another folder, or the same, with a change.
func again(t *testing.T, root, from, to string, change func(s *report.Summary)) {
	t.Helper()
	s, err := report.Read(root + "/" + from)
	require.NoError(t, err)
	change(&s)
	data, err := json.Marshal(s)
	require.NoError(t, err)
	write(t, root, to+"/summary.json", string(data))
	write(t, root, to+"/bench.txt", "")
}

const grpcGo = "google.golang.org/grpc"

// TestRunsOfOneKind: a run has a range with those alone that made its report.Led in its way.
func TestRunsOfOneKind(t *testing.T) {
	for reason, c := range map[string]struct {
		change func(s *report.Summary)
		want   string
	}{
		"another machine":       {func(s *report.Summary) { s.Environment[0] = "cpu=Another" }, "1.60–1.70 (2)"},
		"more CPUs":             {func(s *report.Summary) { s.Environment[1] = "cores=16" }, "1.70 (1)"},
		"another release of Go": {func(s *report.Summary) { s.Environment[2] = "go=go1.27.4" }, "1.70 (1)"},
		"another base":          {func(s *report.Summary) { s.Base = "rawtcp" }, "1.70 (1)"},
		"another method":        {func(s *report.Summary) { s.Call = &report.Call{Method: "a.B/C"} }, "1.70 (1)"},
		"callers who last":      {func(s *report.Summary) { s.Answers[0].CPU.Verdict = verdict.Less }, "1.70 (1)"},
		"a server apart":        {func(s *report.Summary) { s.Answers[0].StackLoad.Switches = 1 }, "1.70 (1)"},
		"a newer library":       {func(s *report.Summary) { s.Environment[5] = grpcGo + "@v1.90.0" }, "1.60–1.70 (2)"},
		"another major version": {func(s *report.Summary) { s.Environment[5] = grpcGo + "/v2@v2.0.0" }, "1.70 (1)"},
		"other messages": {func(s *report.Summary) {
			s.Call = &report.Call{Bodies: []report.Body{{Request: 70, Reply: 7}}}
		}, "1.70 (1)"},
		"CPU time, which leads": {func(s *report.Summary) {
			s.Answers[0].Leads = report.ByCPU
			s.Answers[0].CPU = verdict.Figure{Verdict: verdict.More, Ratio: 1.3, Lo: 1.2, Hi: 1.4}
		}, "1.30 (1)"},
	} {
		root := another(t, c.change)
		require.Equal(t, c.want, filled(t, root, `kin "more" (led "more" "small-1-caller" "grpcprotobuf")`), reason)
		if c.want == "1.60–1.70 (2)" {
			require.Equal(t, "1.6 to 1.7", filled(t, root, `(kin "more" (led "more" "small-1-caller" "grpcprotobuf")).Range`))
		}
	}
}

// TestMessagesOfOneKind: a method that was made of JSON has the same name for all messages, so their lengths tell runs
// of other messages apart.
func TestMessagesOfOneKind(t *testing.T) {
	with := func(reply float64) kind {
		call := report.Call{Method: "made.Samples/Call", Bodies: []report.Body{{Request: 20, Reply: reply}}}
		return kindOf(report.Summary{Call: &call}, report.Answer{})
	}
	require.Equal(t, with(1605), with(1605))
	require.NotEqual(t, with(1605), with(98969))
}

// TestCountingOfOneKind: windows that follow calls are another way of counting only where calls are too long for
// windows of 100 ms: of callers who last.
func TestCountingOfOneKind(t *testing.T) {
	of := func(counting string, p50 float64, rate bool) kind {
		figure := verdict.Figure{Verdict: verdict.More}
		a := report.Answer{Answer: verdict.Answer{Time: figure, CPU: figure}}
		if a.Percentiles.P50.BaseNs = p50; rate {
			a.Time = verdict.Figure{}
		}
		return kindOf(report.Summary{Counting: counting}, a)
	}
	require.Equal(t, of("", 2.6e6, false), of("a way of counting", 2.6e6, false), "short calls")
	require.NotEqual(t, of("", 200e6, false), of("a way of counting", 200e6, false), "long calls")
	require.Equal(t, of("", 200e6, true), of("a way of counting", 200e6, true), "long calls at a rate")
}

// TestAmong: records of one question are pooled over its workloads and all machines of as many CPUs, with one release
// of Go and one way of counting. Hours in which other programs used the machine don't count.
func TestAmong(t *testing.T) {
	for reason, c := range map[string]struct {
		change func(s *report.Summary)
		want   string
	}{
		"another machine": {func(s *report.Summary) { s.Environment[0] = "cpu=Another" }, "1.60–1.70 (2)"},
		"more CPUs":       {func(s *report.Summary) { s.Environment[1] = "cores=16" }, "1.60 (1)"},
		"as many of them": {func(s *report.Summary) {
			s.Environment[1] = "cores=16"
			s.Environment = append(s.Environment, "quota=2")
		}, "1.60–1.70 (2)"},
		"fewer of them": {func(s *report.Summary) {
			s.Environment = append(s.Environment, "quota=1")
		}, "1.60 (1)"},
		"callers who last":           {func(s *report.Summary) { s.Answers[0].CPU.Verdict = verdict.Less }, "1.60 (1)"},
		"a server apart":             {func(s *report.Summary) { s.Answers[0].StackLoad.Switches = 1 }, "1.60 (1)"},
		"another of its workloads":   {func(s *report.Summary) { s.Answers[0].Workload = "alike" }, "1.60–1.70 (2)"},
		"a workload of another":      {func(s *report.Summary) { s.Answers[0].Workload = "other" }, "1.60 (1)"},
		"another stack":              {func(s *report.Summary) { s.Answers[0].Stack = "rawtcp" }, "1.60 (1)"},
		"another base":               {func(s *report.Summary) { s.Base = "rawtcp" }, "1.60 (1)"},
		"another release of Go":      {func(s *report.Summary) { s.Environment[2] = "go=go1.27.4" }, "1.60 (1)"},
		"another major version":      {func(s *report.Summary) { s.Environment[5] = grpcGo + "/v2@v2.0.0" }, "1.60 (1)"},
		"beside other programs":      {func(s *report.Summary) { s.Answers[0].Others = 0.5 }, "1.60 (1)"},
		"beside little of another's": {func(s *report.Summary) { s.Answers[0].Others = 0.01 }, "1.60–1.70 (2)"},
	} {
		root := another(t, c.change)
		asked := `among "quiet/workloads" "grpcprotobuf" "small-1-caller" "alike"`
		require.Equal(t, c.want, filled(t, root, asked), reason)
	}
	require.Equal(t, "1.60 (1)", filled(t, record(t), `among "quiet/workloads" "grpcprotobuf" "alike" "small-1-caller"`),
		"the folder need not have asked by the first name")
	_, err := fill(record(t), `{{among "quiet/workloads" "grpcprotobuf" "alike" "other"}}`)
	require.ErrorContains(t, err, "quiet/workloads has not measured grpcprotobuf at alike or other")

	root := another(t, func(s *report.Summary) { s.Answers[0].Rate = 1000 })
	for at, want := range map[float64]string{1000: "1.60–1.70 (3)", 2000: "1.60–1.70 (2)"} {
		s, err := report.Read(root + "/more")
		require.NoError(t, err)
		s.Answers[0].Rate = at
		require.NoError(t, os.MkdirAll(root+"/most", 0o755))
		require.NoError(t, s.Save(root+"/most"))
		write(t, root, "most/bench.txt", "")
		require.Equal(t, want, filled(t, root, `among "more" "grpcprotobuf" "small-1-caller"`), "an ordinary load of %g", at)
	}
}

// TestAnswerTable: a rate that was not kept has no row, and its record does not count in a range. Nor do records whose
// callers had other connections. All sweeps of a table have one wiring.
func TestAnswerTable(t *testing.T) {
	const table = `table "answer" "rates" "small" "apart.rate.900" "apart.saturated"`
	for reason, c := range map[string]struct {
		change func(a *report.Answer)
		ranged string
	}{
		"the same calls":        {func(a *report.Answer) { a.CPU.Ratio = 1.5 }, "| 1.40–1.50 (2) |"},
		"a rate not kept":       {func(a *report.Answer) { a.BaseLoad.Completed = 0.45 }, "| 1.40 (1) |"},
		"other connections":     {func(a *report.Answer) { a.Facts.Connections = 100 }, "| 1.40 (1) |"},
		"connections not known": {func(a *report.Answer) { a.Facts = nil }, "| 1.40 (1) |"},
	} {
		root := record(t)
		again(t, root, "rates", "more", func(s *report.Summary) {
			c.change(&s.Answers[1])
		})
		require.Contains(t, filled(t, root, table), c.ranged, reason)
	}

	root := record(t)
	again(t, root, "rates", "rates", func(s *report.Summary) {
		s.Answers[1].BaseLoad.Completed, s.Answers[1].StackLoad.Completed = 0.45, 1
		s.Answers[0].CPU.BaseVaried = 0.6
	})
	made := filled(t, root, table)
	require.NotContains(t, made, "900 a second")
	require.Contains(t, made, "| small, saturated |")
	require.Contains(t, made, "\nsmall: JSON's own time varied by 60%.")

	for _, c := range []struct {
		folder, want string
		change       func(a *report.Answer)
	}{
		{"rates2", "rates has 100 callers; JSON on 100 connections, gRPC on 1 connection; client and server in two " +
			"processes, and rates2 has 100 callers; JSON on 20 connections", func(a *report.Answer) {
			a.BaseFacts.Connections = 20
		}},
		{"rates2", "rates2 has no CPU of apart.payload", func(a *report.Answer) {
			a.CPU, a.Time = verdict.Figure{}, a.CPU
		}},
		{"rates", "rates does not tell its connections", func(a *report.Answer) { a.BaseFacts, a.Facts = nil, nil }},
	} {
		root := record(t)
		again(t, root, c.folder, c.folder, func(s *report.Summary) {
			for i := range s.Answers {
				c.change(&s.Answers[i])
			}
		})
		_, err := fill(root, "{{"+table+` "rates2" "2.0 kB" "apart.payload.flex.2kB.rate.1000"}}`)
		require.ErrorContains(t, err, c.want)
	}
}

// TestPicture: a picture has the figures, the order and the words of the table of workloads, or those of sweeps.
func TestPicture(t *testing.T) {
	m := in(record(t))
	require.NoError(t, m.page("docs/page.md.tmpl", `{{picture "docs/answer.svg" "quiet" "calm Ada" "noisy" "Bob"}}`))
	require.Equal(t, "answer.svg", string(m.made["docs/page.md"]))
	titles := func(file string) (all []string) {
		for _, m := range regexp.MustCompile(`<title>(.*)</title>`).FindAllSubmatch(m.made[file], -1) {
			all = append(all, string(m[1]))
		}
		return all
	}
	require.Equal(t, []string{
		"structured: calm Ada 0.50 (0.45–0.55), less", "structured: Bob 0.60 (0.54–0.66), less",
		"a small call, one core: calm Ada 1.20 (1.08–1.32), more",
		"a small call, one core: Bob 1.30 (1.17–1.43), undecided",
		"all cores: calm Ada 1.60 (1.44–1.76), more",
	}, titles("docs/answer.svg"))

	require.NoError(t, m.page("docs/page.md.tmpl", `{{picture "docs/rates.svg" "rates" "small call" "rates2" "2.0 kB"}}`))
	require.Equal(t, []string{
		"small call, 900 calls a second: 1.40 (1.26–1.54), more", "small call, saturated: 0.70 (0.63–0.77), less",
		"2.0 kB, 1000 calls a second: 0.90 (0.81–0.99), undecided",
	}, titles("docs/rates.svg"))
	require.Contains(t, string(m.made["docs/rates.svg"]), ">A Machine, 2 CPUs, go1.26.8, 2026-11-23. 100 callers; JSON ")
}

// TestRecordsOfClaims: a figure from elsewhere than the page's folder says in what its record differs.
func TestRecordsOfClaims(t *testing.T) {
	root := another(t, func(s *report.Summary) {
		s.Environment = []string{"cpu=Another-One(R)", "cores=4", "go=go1.27.4", "date=2026-11-25"}
	})
	rows, err := os.ReadFile(root + "/noisy/codecs/rows.txt")
	require.NoError(t, err)
	write(t, root, "later/codecs/rows.txt", "cores: 2\n# date=2026-12-01 go=go1.28 cpu=A-Machine\n"+string(rows))
	for figure, want := range map[string]string{
		`$c.Call 1 "time" "small-1-caller" "grpcprotobuf" "httpjson" (above 1)`: "all cores, Go 1.27.4, Another One, 4 CPUs, 2026-11-25: ",
		`$c.Codec 1 "marshal" "user" "json" "protobuf" (above 1)`:               "`user`, Go 1.28, 2026-12-01: ",
	} {
		folder := map[bool]string{true: "more", false: "later"}[strings.Contains(figure, "Call")]
		made := filled(t, root, `$c := claims "quiet"}}{{$c.In "`+folder+`"}}{{`+figure+`}}{{$c.Here 1`)
		require.Contains(t, made, " (>1): "+want)
	}
}

// TestConnectionsOfClaims: a stack's calls a second on more connections are compared with its own on fewer, by all that
// base and ratio varied.
func TestConnectionsOfClaims(t *testing.T) {
	root := record(t)
	pair := func(folder string, processes int, change func(a *report.Answer)) {
		again(t, root, "rates", folder, func(s *report.Summary) {
			s.Answers = []report.Answer{s.Answers[0], s.Answers[0]}
			for i := range s.Answers {
				a := &s.Answers[i]
				a.Callers = 8
				a.Does, a.Workload = []string{"8 callers, 1 connection", "8 callers, 4 connections"}[i], []string{"few", "many"}[i]
				a.Time = verdict.Figure{Verdict: verdict.Less, Ratio: 0.5, Lo: 0.4, Hi: 0.8,
					BaseNs: []float64{300, 100}[i]}
				a.Time.BasesNs = slices.Repeat([]float64{a.Time.BaseNs}, processes)
				facts := *a.Facts
				facts.Connections = []int64{1, 4}[i]
				a.Facts = &facts
			}
			change(&s.Answers[1])
		})
	}
	of := func(folder string) (string, error) {
		return fill(root, `{{$c := claims "`+folder+`"}}{{$c.Connections 1 "many" "few" "grpcprotobuf" (above 1)}}`+
			`{{$c.Verdict 1}}; {{$c.Here 1}}`)
	}
	pair("eight", 8, func(*report.Answer) {})
	made, err := of("eight")
	require.NoError(t, err)
	require.Equal(t, "holds; calls a second, gRPC on more connections/fewer (>1): 8 callers, 4/1: **3.00 (1.50–6.00)**",
		made)
	for folder, change := range map[string]func(a *report.Answer){
		"has fewer than 6 processes at many": func(*report.Answer) {},
		"has no calls a second of":           func(a *report.Answer) { a.Time = verdict.Figure{} },
	} {
		pair(folder, map[bool]int{true: 5, false: 8}[strings.Contains(folder, "fewer")], change)
		_, err := of(folder)
		require.ErrorContains(t, err, folder)
	}
}

// TestOwnMessages: ranges over runs that each have messages of their own.
func TestOwnMessages(t *testing.T) {
	root := record(t)
	again(t, root, "own2", "own2", func(s *report.Summary) {
		s.Call.Bodies[0].Request, s.Call.Bodies[0].Reply = 2000, 600
	})
	require.Equal(t, "1.1 to 1.2", filled(t, root, `(each "call" "grpcprotobuf" "own" "own2").Calls`))
	require.Equal(t, "0.1 to 2.6", filled(t, root, `bodies "own" "own2"`))
}

// TestRates: a rate that was not kept says so. Calls a second are of callers who call again at once.
func TestRates(t *testing.T) {
	root := record(t)
	s, err := report.Read(root + "/rates")
	require.NoError(t, err)
	for i := range s.Answers {
		s.Answers[i].Time = verdict.Figure{}
		s.Answers[i].CPU.Verdict = verdict.Undecided
		s.Answers[i].CPU.Reason = verdict.Reason{Kind: verdict.NotCompleted, Found: 0.9, Needed: 0.98}
		s.Answers[i].BaseLoad.Completed, s.Answers[i].StackLoad.Completed = 0.9, 1
	}
	data, err := json.Marshal(s)
	require.NoError(t, err)
	write(t, root, "planned/summary.json", string(data))
	write(t, root, "planned/bench.txt", "")
	require.Contains(t, filled(t, root, `table "connections" "rates" "apart.saturated"`), "calls/s")
	require.NotContains(t, filled(t, root, `table "connections" "planned" "apart.rate.900"`), "calls/s")
	turn := filled(t, root, `table "turn" "planned"`)
	require.Contains(t, turn, " undecided [1] |")
	require.Contains(t, turn, "- [1] 90% of the planned calls were completed")
}

// TestVerdictsOfClaims: a claim's figures are summed up, and none may be left out.
func TestVerdictsOfClaims(t *testing.T) {
	_, err := fill(record(t), `{{$c := claims "noisy"}}{{$c.Message 1 (nothing)}}{{$c.Message 2 (above 2)}}`+
		"{{$c.Here 1}} {{$c.All}}")
	require.ErrorContains(t, err, "claim 2 has figures, which the page does not show")

	of := func(value, lo, hi float64) reading {
		return reading{value: value, lo: lo, hi: hi, claimed: between(1, 3)}
	}
	holds, fails, more, open := of(2, 2, 2), of(.5, .5, .5), of(4, 4, 4), of(3, 2, 4)
	for want, readings := range map[string][]reading{
		"holds": {holds, holds}, "does not hold": {fails}, "more than claimed": {more}, "undecided": {open, open},
		"holds in part": {open, fails, holds}, "does not hold where it is decided": {open, fails},
		"holds where it is decided": {holds, open},
	} {
		require.Equal(t, want, overall(readings))
	}
}

func TestVerdictsOfReadings(t *testing.T) {
	for reason, c := range map[string]struct {
		claimed claimed
		reading reading
		want    string
	}{
		"less is claimed, and it is far less":      {between(0.3, 0.6), reading{lo: 0.21, hi: 0.23}, "more than claimed"},
		"less is claimed, and it is more":          {between(0.3, 0.6), reading{lo: 1.31, hi: 1.42}, "does not hold"},
		"less is claimed, and a little less it is": {between(0.6, 0.8), reading{lo: 0.9, hi: 0.9}, "does not hold"},
		"the same is claimed, and it is less":      {about(1), reading{lo: 0.4, hi: 0.6}, "does not hold"},
		"outside the noise floor":                  {above(1), reading{lo: 1.04, hi: 1.10, floor: 0.03}, "holds"},
		"inside the noise floor":                   {above(1), reading{lo: 1.01, hi: 1.03, floor: 0.05}, "undecided"},
		"into the noise floor":                     {above(1), reading{lo: 1.04, hi: 1.10, floor: 0.05}, "undecided"},
		"a gain into the noise floor":              {below(1), reading{lo: 0.93, hi: 0.97, floor: 0.05}, "undecided"},
		"five times claimed, none proved":          {between(5, 9), reading{lo: 1.01, hi: 1.03, floor: 0.1}, "does not hold"},
		"the noise floor is nothing far from 1":    {above(2), reading{lo: 2.03, hi: 2.24, floor: 0.9}, "holds"},
	} {
		c.reading.claimed = c.claimed
		require.Equal(t, c.want, c.reading.verdict(), reason)
	}
}
