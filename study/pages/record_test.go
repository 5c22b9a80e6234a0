package pages

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

const root = "../.."

// at is the folder of a run in a record: below study/results, on a day.
func at(folder string) string { return "study/results/2026-11-23-" + folder }

// record copies testdata/record into study/results, and makes the runs that its runs.txt lists: folder, machine,
// workload, stack, ratio, verdict and title. All figures of an answer differ, so no two can be exchanged unseen. A
// verdict with a star left two of ten processes out.
func record(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(root, at("files")), os.DirFS("testdata/record")))
	profiled := new(strings.Builder)
	require.NoError(t, testkit.Profile(nil, " y<a/lib.serve.func1", " y<a/lib.serve.func2", " lib.write", " b<bench.run",
		" y<runtime.mcall").Write(profiled))
	write(t, root, at("files/one.pprof"), profiled.String())
	write(t, root, "go.mod", "module x\n\nrequire (\n\texample.com/lib v1.2.3\n)\n")
	write(t, root, "study/go.mod", "module x/study\n")
	write(t, root, "study/measure.sh", "hour=(workloads:2 jsoniter variants:3)\n")
	write(t, root, at("quiet/state.txt"), "state 0a1b2c\nworkloads 06:37 UTC, 113 s\n")
	write(t, root, leader, "# which leads\n"+filepath.Base(at("quiet"))+" A Machine, 2 virtual cores\n")
	write(t, root, settings, "\"1 ms\" = setting()\n")
	list, err := os.ReadFile("testdata/record/runs.txt")
	require.NoError(t, err)
	runs := map[string]report.Summary{}
	for line := range strings.Lines(string(list)) {
		c := strings.SplitN(strings.TrimSpace(line), " ", 7)
		s := runs[c[0]]
		a := made(t, c)
		if value, ok := strings.CutPrefix(a.Does, "calls a second: "); ok {
			s.Over = "calls a second"
			sweeps(t, &a, value)
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
		save(t, root, dir, s)
	}
	return root
}

// made is an answer of a line of runs.txt.
func made(t *testing.T, c []string) report.Answer {
	t.Helper()
	ratio, err := strconv.ParseFloat(c[4], 64)
	require.NoError(t, err)
	says, left := strings.CutSuffix(c[5], "*")
	a := report.Answer{Workload: c[2], Does: c[6], GOMAXPROCS: 1, Stack: c[3], Leads: report.ByTime,
		Answer: verdict.Answer{Processes: verdict.Counts{Counted: 8},
			Time: verdict.Figure{Ratio: ratio, Lo: ratio * 0.9, Hi: ratio * 1.1, CopyDiffers: 0.01, NoiseFloor: 0.01,
				BaseNs: 40_000, StackNs: 90_000, Verdict: verdict.Verdict(says),
				BasesNs: []float64{39_000, 40_000, 41_000, 39_500, 40_500, 40_000},
				Reason:  map[string]verdict.Reason{"undecided": {Kind: "since"}}[says]},
			Percentiles: verdict.Percentiles{
				P95: verdict.Percentile{BaseNs: 5000, CopyNs: 5000, StackNs: 1, Ratio: ratio * 2, Lo: ratio * 1.5,
					Hi: ratio * 2.5}}},
		BaseFacts: &report.Counts{Sent: 200, Received: 300, Allocs: 100, AllocBytes: 9000, Connections: 1},
		Facts:     &report.Counts{Sent: 110, Received: 140, Allocs: 160, AllocBytes: 9500, Connections: 1}}
	a.Callers = 1
	if left {
		a.Processes.Planned, a.Processes.OneCore = 10, 2
	}
	return a
}

// sweeps makes an answer one of 100 callers at a rate, or saturated.
func sweeps(t *testing.T, a *report.Answer, value string) {
	t.Helper()
	a.Value, a.Leads, a.CPU, a.Callers, a.Apart = value, report.ByCPU, a.Time, 100, true
	a.BaseLoad, a.StackLoad = verdict.Load{Switches: 7, Idle: 0.7}, verdict.Load{Switches: 11, Idle: 0.6}
	a.CPU.BaseNs, a.BaseFacts.Connections, a.Facts.Connections = 55_000, 100, 1
	if value != report.Saturated {
		rate, err := strconv.ParseFloat(value, 64)
		require.NoError(t, err)
		a.Rate, a.Time, a.BaseLoad.Completed, a.StackLoad.Completed = rate, verdict.Figure{}, 1, 1
	}
	a.BaseFacts.Writes, a.Facts.Writes, a.BaseMeans.ServerCPUNs = 0.9, 0.4, 12_000
	a.Percentiles.P50 = verdict.Percentile{BaseNs: 600_000, CopyNs: 600_000, StackNs: 470_000, Ratio: 0.8, Lo: 0.7,
		Hi: 0.9}
}

// save writes a run's summary.
func save(t *testing.T, root, folder string, s report.Summary) {
	t.Helper()
	data, err := json.Marshal(s)
	require.NoError(t, err)
	write(t, root, at(folder)+"/summary.json", string(data))
	write(t, root, at(folder)+"/bench.txt", "")
}

// again writes a run of a record into another folder, or the same, with a change.
func again(t *testing.T, root, from, to string, change func(s *report.Summary)) {
	t.Helper()
	s, err := report.Read(filepath.Join(root, at(from)))
	require.NoError(t, err)
	change(&s)
	save(t, root, to, s)
}

// write makes a file of a record.
func write(t *testing.T, root, name, text string) {
	t.Helper()
	name = filepath.Join(root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
}

// pageMaker makes pages of a record, docs/page.md first of all.
func pageMaker(t *testing.T, root string) *maker {
	t.Helper()
	m := in(root)
	m.page = "docs/page.md"
	require.NoError(t, try(m.readLead))
	return m
}

// moved renames a folder of results.
func moved(root, from, to string) error {
	return os.Rename(filepath.Join(root, "study/results", from), filepath.Join(root, "study/results", to))
}
