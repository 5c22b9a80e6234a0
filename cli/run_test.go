package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/workload"
)

// A run leaves a folder that benchstat and report can read.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("four processes")
	}
	dir := filepath.Join(t.TempDir(), "new")
	c := comparison{program: ours(), base: "httpjson", out: dir, fewest: 4, processes: 4, time: time.Second, margin: 2, workloads: workload.All()[:1]}
	var stdout, stderr bytes.Buffer
	require.NoError(t, c.answer(t.Context(), []string{"rawtcp"}, &stdout, &stderr))
	require.Regexp(t, `(?m)^a small message, CPU work +1 +\d+\.\d +rawtcp +\d+\.\d +0\.\d\d +0\.\d\d–0\.\d\d +(faster|undecided)$`, stdout.String())

	text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	require.NoError(t, err)
	var s report.Summary
	require.NoError(t, json.Unmarshal(text, &s))
	require.Len(t, s.Answers, 1)
	a := s.Answers[0]
	require.Equal(t, 4, a.Processes)
	require.Positive(t, a.BaseNs)
	require.Less(t, a.Ns, a.BaseNs)
	require.Positive(t, a.Ratio)
	require.Len(t, a.Bases, 4)
	require.Equal(t, "HTTP/1.1, application/json", a.BaseFacts.Seen)
	require.Equal(t, "no HTTP", a.Facts.Seen)
	require.FileExists(t, filepath.Join(dir, "report.html"))

	stdoutOfReport, _, err := typed(t, "report", "-out", t.TempDir(), dir)
	require.NoError(t, err)
	require.Contains(t, stdoutOfReport, "report.html")
	_, _, err = typed(t, "report", dir)
	require.ErrorContains(t, err, "report.html is there already")
	_, _, err = typed(t, "report", filepath.Join(dir, "bench.txt"))
	require.ErrorContains(t, err, "is a file: -out names the folder for the pages")

	file, err := os.Open(filepath.Join(dir, "bench.txt"))
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	rows := map[string]int{}
	for r := benchfmt.NewReader(file, "bench.txt"); r.Scan(); {
		row, ok := r.Result().(*benchfmt.Result)
		require.True(t, ok, "%v", r.Result())
		rows[string(row.Name.Full())]++
		ns, ok := row.Value("sec/op")
		require.True(t, ok)
		require.Positive(t, ns)
	}
	require.Equal(t, map[string]int{
		"Run/workload=small/against=rawtcp/stack=httpjson":       4,
		"Run/workload=small/against=rawtcp/stack=httpjson.again": 4,
		"Run/workload=small/against=rawtcp/stack=rawtcp":         4,
	}, rows)

	_, _, err = typed(t, "run", "-out", dir)
	require.EqualError(t, err, "rpcbench: run: -out "+dir+": it is there already: name another")
}

// What a summary says of the machine, and of what too few processes have measured.
func TestSummary(t *testing.T) {
	small, many := workload.All()[0], workload.All()[1]
	require.True(t, many.Many())
	record := func(base, cpu time.Duration) timing.Record {
		block := []timing.Slice{{Ops: 1, Wall: base, CPU: cpu}, {Ops: 1, Wall: base, CPU: cpu}, {Ops: 1, Wall: 2 * base, CPU: 2 * cpu}}
		return timing.Record{Arms: []string{"httpjson", "httpjson again", "x"}, Blocks: [][]timing.Slice{block, block}}
	}
	records := func(n int, second time.Duration, cpu time.Duration) (all []timing.Record) {
		for i := range n {
			if all = append(all, record(1000, cpu)); i%2 == 1 {
				all[i] = record(second, cpu)
			}
		}
		return all
	}
	c := comparison{base: "httpjson", fewest: 4, processes: 4, margin: 2}
	for _, test := range []struct {
		why     string
		group   group
		load    float64
		verdict timing.Verdict
		ratio   float64
		warning string
	}{
		{"a quiet machine", group{Workload: small, records: records(4, 1000, 1000)}, 0, timing.Slower, 2, ""},
		{"two processes of four", group{Workload: small, records: records(2, 1000, 1000)}, 0, timing.Undecided, 0, ""},
		{"nothing", group{Workload: small}, 0, timing.Undecided, 0, ""},
		{"something else runs", group{Workload: small, records: records(4, 1000, 1000)}, 1000, timing.Slower, 2, "the machine was busy at the start"},
		{"a machine that moves", group{Workload: small, records: records(4, 1500, 1000)}, 0, timing.Slower, 2, "moved by more than 15 % in 1 of 1"},
		{"a machine that moves more than stacks differ", group{Workload: small, records: records(4, 3000, 1000)}, 0, timing.Undecided, 2, "moved by"},
		{"a second core that is not there", group{Workload: many, records: records(4, 1000, 1000)}, 0, timing.Slower, 2, "only one core was to be had"},
		{"two cores", group{Workload: many, records: records(4, 1000, 1900)}, 0, timing.Slower, 2, ""},
	} {
		t.Run(test.why, func(t *testing.T) {
			test.group.arms = []string{"httpjson", "httpjson", "x"}
			s := c.summary([]*group{&test.group}, test.load)
			require.Equal(t, test.verdict, s.Answers[0].Verdict)
			require.InDelta(t, test.ratio, s.Answers[0].Ratio, 1e-9)
			if test.warning == "" {
				require.Empty(t, s.Warnings)
			} else {
				require.Contains(t, strings.Join(s.Warnings, "\n"), test.warning)
			}
			_, err := json.Marshal(s)
			require.NoError(t, err)
			require.NoError(t, printSummary(new(bytes.Buffer), s))
		})
	}
}

// A folder that is shared does not tell where it lay.
func TestResultsNameNoFolders(t *testing.T) {
	typed := os.Args
	defer func() { os.Args = typed }()
	out := filepath.Join(t.TempDir(), "mine")
	os.Args = []string{out + "/rpcbench", "run", "-out", out, "rawtcp"}
	require.Equal(t, []string{"rpcbench", "run", "-out", "mine", "rawtcp"}, asTyped())
}
