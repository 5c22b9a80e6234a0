package report

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
