package pages

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// hours are folders of results, each with a first minute, what other programs used, and by how much the base varied.
func hours(t *testing.T, folders map[string][3]any) *maker {
	t.Helper()
	root := t.TempDir()
	for name, of := range folders {
		var s report.Summary
		s.Release, s.Base = report.Release, "httpjson"
		for _, apart := range []float64{-0.001, 0, 0.9} { // of which the median is of[1] and of[2]
			a := report.Answer{Workload: "small", Stack: "grpcprotobuf", Leads: report.ByTime}
			a.Processes.Counted, a.Others = 8, of[1].(float64)+apart
			a.Time = verdict.Figure{Ratio: 1, Lo: 1, Hi: 1, Verdict: verdict.Same, BaseVaried: of[2].(float64) + apart}
			s.Answers = append(s.Answers, a)
		}
		data, err := json.Marshal(s)
		require.NoError(t, err)
		write(t, root, "study/results/"+name+"/run/summary.json", string(data))
		write(t, root, "study/results/"+name+"/run/bench.txt", "")
		write(t, root, "study/results/"+name+"/state.txt", of[0].(string)+":07 used 1 %\n")
	}
	return in(root)
}

// TestLeads: the newest hour leads that the rule calls quiet, or the newest of all, which then has a warning.
func TestLeads(t *testing.T) {
	quiet, busy, unsteady := [2]float64{0.04, 0.14}, [2]float64{0.06, 0.1}, [2]float64{0.01, 0.16}
	of := func(begun string, is [2]float64) [3]any { return [3]any{begun, is[0], is[1]} }
	for reason, c := range map[string]struct {
		folders map[string][3]any
		leads   string
	}{
		"the newest of two quiet hours": {map[string][3]any{
			"2026-11-26-a-night": of("03:30", quiet), "2026-11-26-a-dawn": of("04:35", quiet)}, "2026-11-26-a-dawn"},
		"an older quiet hour before a busy one": {map[string][3]any{
			"2026-11-26-a-night": of("03:30", quiet), "2026-11-27-a-dawn": of("04:35", busy)}, "2026-11-26-a-night"},
		"a newer quiet hour": {map[string][3]any{
			"2026-11-26-a-night": of("03:30", unsteady), "2026-11-26-a-dawn": of("04:35", quiet)}, "2026-11-26-a-dawn"},
		"the newest if none is quiet": {map[string][3]any{
			"2026-11-26-a-night": of("03:30", busy), "2026-11-26-a-dawn": of("04:35", unsteady)}, "2026-11-26-a-dawn"},
		"hours before the rule": {map[string][3]any{
			"2026-11-25-a-night": of("03:30", quiet), "2026-11-26-a-dawn": of("04:35", unsteady)}, "2026-11-26-a-dawn"},
	} {
		m := hours(t, c.folders)
		for folder := range c.folders {
			asked := `{{leads "study/results/` + folder + `"}}`
			if err := m.page("docs/page.md.tmpl", asked); folder == c.leads {
				require.NoError(t, err, reason)
			} else {
				require.ErrorContains(t, err, "does not lead", reason)
			}
		}
	}
	m := hours(t, map[string][3]any{"2026-11-26-a-dawn": of("04:35", unsteady), "2026-11-27-a-dawn": of("05:35", quiet)})
	require.Contains(t, m.warning("study/results/2026-11-26-a-dawn"), "2026-11-26, 04:35 UTC: in the median of its 3 "+
		"comparisons the base's own time varied by 16 % between processes, while other programs used 1 %")
	require.Empty(t, m.warning("study/results/2026-11-27-a-dawn"))
}

// TestAlike: a record at another rate, or with other connections, is of another wiring and no part of the range.
func TestAlike(t *testing.T) {
	for reason, c := range map[string]struct {
		change func(a *report.Answer)
		want   string
	}{
		"the same":                   {func(*report.Answer) {}, "1.70 (1)"},
		"another rate":               {func(a *report.Answer) { a.Rate = 1000 }, "–"},
		"another of JSON's":          {func(a *report.Answer) { a.BaseFacts.Connections = 20 }, "–"},
		"another of gRPC's":          {func(a *report.Answer) { a.Facts.Connections = 100 }, "–"},
		"connections nobody counted": {func(a *report.Answer) { a.Facts = nil }, "–"},
	} {
		root := another(t, func(s *report.Summary) {
			a := &s.Answers[0]
			a.Rate, a.BaseFacts.Connections, a.Facts.Connections = 2000, 100, 1
			c.change(a)
		})
		asked := `alike "quiet/workloads" "grpcprotobuf" 2000 100 1 "small-1-caller"`
		require.Equal(t, c.want, filled(t, root, asked), reason)
		if c.want != "–" {
			require.Equal(t, "14.0", filled(t, root, "("+asked+").Cores 500000.0"), reason)
			require.Equal(t, "0.6", filled(t, root, "("+asked+").Calls"), reason)
		}
	}
}
