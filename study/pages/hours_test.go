package pages

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// folder is one of results that study/measure.sh might have filled: an hour of three parts, of which the page shows
// small calls of gRPC in one.
type folder struct {
	begun   string             // the first minute in state.txt, which is missing without it
	lacks   string             // a part that is missing
	machine string             // of the part sweep: environment besides what the class of machine has
	others  map[string]float64 // what other programs used during a workload
	varied  float64
}

// hours makes folders of results.
func hours(t *testing.T, folders map[string]folder) *maker {
	t.Helper()
	root := t.TempDir()
	write(t, root, "study/measure.sh", "# The hour:\nhour=(run:2 sweep:8\n  codecs:3)\nsecond=(more:8)\n")
	for name, of := range folders {
		at := "study/results/" + name
		if of.begun != "" {
			write(t, root, at+"/state.txt", "state 0a1b2c\nrun "+of.begun+" UTC, 113 s\n")
		}
		for _, part := range []string{"run", "sweep"} {
			s := report.Summary{Release: report.Release, Base: "httpjson"}
			s.Environment = []string{"cpu=A-Machine", "cores=2"}
			if part == "sweep" && of.machine != "" {
				s.Environment = slices.Insert(s.Environment, 0, strings.Fields(of.machine)...)
			}
			for _, workload := range []string{"small", "unseen"} {
				a := report.Answer{Workload: workload, Stack: "grpcprotobuf", Leads: report.ByTime}
				a.Processes.Counted, a.Others = 8, of.others[part+"/"+workload]
				a.Time = verdict.Figure{Ratio: 1, Lo: 1, Hi: 1, Verdict: verdict.Same, BaseVaried: of.varied}
				s.Answers = append(s.Answers, a)
			}
			if part != of.lacks {
				data, err := json.Marshal(s)
				require.NoError(t, err)
				write(t, root, at+"/"+part+"/summary.json", string(data))
				write(t, root, at+"/"+part+"/bench.txt", "")
			}
		}
		if of.lacks != "codecs" {
			write(t, root, at+"/codecs/rows.txt", "")
		}
	}
	return in(root)
}

// TestLeads: of complete hours on the machine that the page names, the newest leads.
func TestLeads(t *testing.T) {
	const old, next = "2026-11-26-a-dawn", "2026-11-27-a-night"
	shows := func(m *maker, name string) error {
		return m.page("docs/page.md.tmpl", `{{$h := leads "study/results/`+name+`" "A Machine, 2 virtual cores"}}`+
			`{{ratio (led (print $h "/sweep") "small" "grpcprotobuf")}}`)
	}
	for reason, c := range map[string]struct {
		newer folder
		leads string
	}{
		"a complete hour":              {folder{begun: "03:30"}, next},
		"without one part":             {folder{lacks: "run"}, old},
		"without the part of codecs":   {folder{lacks: "codecs"}, old},
		"16 CPUs":                      {folder{machine: "cores=16"}, old},
		"another processor":            {folder{machine: "cpu=Another-One"}, old},
		"a container":                  {folder{machine: "quota=2"}, old},
		"beside another program":       {folder{begun: "03:30", others: map[string]float64{"sweep/small": 0.10}}, old},
		"beside little of another's":   {folder{begun: "03:30", others: map[string]float64{"sweep/small": 0.09}}, next},
		"what is not shown, disturbed": {folder{begun: "03:30", others: map[string]float64{"sweep/unseen": 0.9}}, next},
		"the same of another part":     {folder{begun: "03:30", others: map[string]float64{"run/small": 0.9}}, next},
		"a base that varied":           {folder{begun: "03:30", varied: 0.9}, next},
	} {
		folders := map[string]folder{old: {begun: "04:35"}, next: c.newer}
		for name := range folders {
			if err := shows(hours(t, folders), name); name == c.leads {
				require.NoError(t, err, reason)
			} else {
				require.EqualError(t, err, "docs/page.md.tmpl: study/results/"+name+" does not lead: by the rule of "+
					"study/results/README.md "+c.leads+" does", reason)
			}
		}
	}

	sameDay := hours(t, map[string]folder{old: {begun: "04:35"}, "2026-11-26-a-noon": {begun: "03:35"}})
	require.NoError(t, shows(sameDay, old), "of one day the later minute leads, whatever the names are")

	for _, c := range []struct {
		folders map[string]folder
		said    string
	}{
		{map[string]folder{old: {begun: "04:35"}, next: {}}, next + " is a complete hour: it needs a day as its name begins"},
		{map[string]folder{old: {begun: "04:35"}, "night": {begun: "04:35"}}, "night is a complete hour: it needs a day"},
		{map[string]folder{old: {begun: "04:35", machine: "cores=4"}}, "README.md none does"},
	} {
		require.ErrorContains(t, shows(hours(t, c.folders), old), c.said)
	}

	m := hours(t, map[string]folder{old: {begun: "04:35"}})
	write(t, m.root, "study/measure.sh", "parts=(run:2)\n")
	require.ErrorContains(t, shows(m, old), "does not list the parts of an hour")
	require.NoError(t, m.page("docs/other.md.tmpl", "none leads"), "a page that asks for no hour needs none")
}

// TestShown: whatever a page shows of an hour, one figure or a whole run, has to have been measured undisturbed.
func TestShown(t *testing.T) {
	root := record(t)
	for asked, want := range map[string]shown{
		`ratio (led "quiet" "small" "grpcprotobuf")`:            {"quiet/workloads", "small", "grpcprotobuf"},
		`table "costs" "quiet"`:                                 {"quiet/stacks", "small", "rawtcp"},
		`alike "rates" "grpcprotobuf" 0 100 1 "apart.rate.900"`: {"rates", "apart.rate.900", "grpcprotobuf"},
		`picture "docs/rates.svg" "rates" "small"`:              {"rates", "apart.saturated", "grpcprotobuf"},
		`varied "rates"`:                                        {"rates", "apart.saturated", "grpcprotobuf"},
		`(run "rates").Hour`:                                    {"rates", "apart.saturated", "grpcprotobuf"},
	} {
		m := in(root)
		m.results = "."
		require.NoError(t, m.page("docs/page.md.tmpl", "{{"+asked+"}}"), asked)
		require.Contains(t, m.leading.shown, want, asked)
		require.NoError(t, m.page("docs/other.md.tmpl", "nothing"))
		require.Empty(t, m.leading.shown, "another page shows other things")
	}
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
			require.Equal(t, "gRPC uses 14.0 of a CPU core more", filled(t, root, "("+asked+").Cores 500000.0"), reason)
			require.Equal(t, "0.6", filled(t, root, "("+asked+").Calls"), reason)
		}
	}
}
