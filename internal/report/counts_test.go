package report

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// What was counted without a time has one page, which a folder without rows makes again. A run has all, counts or none.
func TestCountsAlone(t *testing.T) {
	counts := func(sent float64) *Counts { return &Counts{Calls: 1000, Sent: sent, Allocs: 20, Connections: 1} }
	s := Summary{Release: Release, Base: "httpjson", Answers: []Answer{{Workload: "small", Does: "a small call",
		Stack: "grpcprotobuf", BaseFacts: counts(197), Facts: counts(113)}}}
	require.True(t, s.Counted())
	require.Equal(t, "report.md", s.Page())
	dir := t.TempDir()
	require.NoError(t, s.Save(dir))
	read, err := Read(dir)
	require.NoError(t, err)
	require.Equal(t, s, read)
	require.NoError(t, s.Write(dir))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 2)
	require.ErrorContains(t, s.Write(dir), "report.md is there already")
	page, err := os.ReadFile(dir + "/report.md")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^\| a small call \| gRPC \| 113 \|`, string(page))
	var text strings.Builder
	require.NoError(t, s.CountsText(&text, 100))
	require.Regexp(t, `(?m)^a small call +gRPC +113 `, text.String())

	s.Answers[0].Answer = verdict.Answer{Processes: verdict.Counts{Planned: 8, Counted: 8}}
	s.Plan.Processes = 8
	require.False(t, s.Counted())
	require.Equal(t, "report.html", s.Page())
	_, err = Parse(dir, `{"release": 3, "answers": [{"workload": "small"}]}`)
	require.ErrorContains(t, err, "has no answers: nothing was measured")
}

// TestCountsHaveBothSides: allocations are those of client and server together, whether they share a process or not, in
// a terminal as in a report. Of older results of two processes the client's alone are known, and there is a dash.
func TestCountsHaveBothSides(t *testing.T) {
	together := &Counts{Calls: 1000, Allocs: 100, AllocBytes: 9000, ServerWrites: 1}
	apart := &Counts{Calls: 1000, Allocs: 60, AllocBytes: 4000, ServerAllocs: 40, ServerAllocBytes: 5000, ServerWrites: 1}
	older := &Counts{Calls: 1000, Allocs: 60, AllocBytes: 4000}
	s := Summary{Release: Release, Base: "httpjson"}
	for _, test := range []struct {
		does  string
		apart bool
		of    *Counts
	}{{"one process", false, together}, {"two processes", true, apart}, {"older", true, older}} {
		s.Answers = append(s.Answers, Answer{Workload: "small", Does: test.does, Stack: "x",
			Wired: Wired{Apart: test.apart}, BaseFacts: test.of, Facts: test.of})
	}
	counted := s.Counts()
	column := func(name string) (cells []string) {
		at := slices.IndexFunc(counted.Columns, func(c table.Column) bool { return c.Name == name })
		for _, row := range counted.Rows {
			cells = append(cells, row[at])
		}
		return slices.Compact(cells)
	}
	require.Equal(t, []string{"one process", "two processes", "older"}, column("workload"))
	require.Equal(t, []string{"100", "–"}, column("allocations"))
	require.Equal(t, []string{"9000", "–"}, column("allocated, B"))
	require.Equal(t, []string{"", "40", ""}, column("server's allocations"))
	require.Equal(t, []string{"1", ""}, column("server's writes"))
	for _, width := range []int{80, 300} {
		var text strings.Builder
		require.NoError(t, s.CountsText(&text, width))
		require.Regexp(t, `(?m)^one process +JSON .* 100\b`, text.String())
		require.Regexp(t, `(?m)^two processes +JSON .* 100\b`, text.String())
	}
}
