package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/verdict"
)

// night is a run whose ratios of saturated callers are those given, and of one caller 1.1. Its intervals are 4% wide.
func night(folder string, cpu, time float64) Run {
	figure := func(ratio float64) verdict.Figure {
		f := verdict.Figure{Ratio: ratio, Lo: ratio * 0.98, Hi: ratio * 1.02, NoiseFloor: 0.01, BaseNs: 1e5, Margin: 0.02}
		f.Verdict = f.Interval().Verdict(0.02)
		return f
	}
	eight := verdict.Counts{Planned: 8, Counted: 8}
	s := Summary{Release: Release, Command: "rpcbench run -out " + folder, Base: "httpjson",
		Plan:        Plan{Processes: 8, Layouts: 8},
		Environment: []string{"date=2026-11-28", "go=go1.27.4", "commit=1", "cpu=X", "cores=2", "kernel=Linux-6", "lib@v1"},
		Answers: []Answer{
			{Workload: "full", Does: "full, 100 callers", Stack: "grpcprotobuf", Leads: ByCPU, Wired: Wired{Callers: 100},
				Answer: verdict.Answer{Processes: eight, Time: figure(time), CPU: figure(cpu)}},
			{Workload: "one", Does: "one caller", Stack: "grpcprotobuf", Leads: ByTime,
				Answer: verdict.Answer{Processes: eight, Time: figure(1.1)}},
		}}
	return Run{Folder: folder, Date: s.Date(), Commit: s.noted("commit"), Summary: s}
}

// changed is a run of which something else is different.
func changed(r Run, change func(*Summary)) Run {
	r.Summary.Answers = slices.Clone(r.Summary.Answers)
	r.Summary.Environment = slices.Clone(r.Summary.Environment)
	change(&r.Summary)
	r.Commit = r.Summary.noted("commit")
	return r
}

// noisy is a run of one caller on a machine with a noise floor of a fifth. Its interval is 10% wide.
func noisy(folder string, ratio float64) Run {
	return changed(night(folder, 1, 1), func(s *Summary) {
		s.Answers = s.Answers[1:]
		s.Answers[0].Time = verdict.Figure{Ratio: ratio, Lo: ratio * 0.95, Hi: ratio * 1.05, NoiseFloor: 0.2, BaseNs: 1e5,
			Verdict: verdict.Undecided}
	})
}

// timeOnly is a run of saturated callers, of whom CPU is not known.
func timeOnly(folder string) Run {
	return changed(night(folder, 0.7, 0.8), func(s *Summary) {
		s.Answers = s.Answers[:1]
		s.Answers[0].CPU = verdict.Figure{}
	})
}

// What a terminal shows of several runs. The mean and its interval are those of internal/verdict.
func TestPoolText(t *testing.T) {
	differs := []Run{night("mon", 0.7, 0.8), night("tue", 0.75, 0.8), night("wed", 0.8, 0.8)}
	busy := changed(night("thu", 0.7, 0.8), func(s *Summary) {
		s.Answers[0].CPU.Verdict, s.Answers[0].CPU.Reason = verdict.Undecided, verdict.Reason{Kind: verdict.Crowded}
	})
	for reason, c := range map[string]struct {
		runs []Run
		want string
	}{
		"three runs": {differs, `
CPU per call, client and server    runs  gRPC/JSON (95% CI)  next run (95%)  verdict
  full, 100 callers                   3    0.75 (0.63–0.88)       0.54–1.04  less [1]
Calls per second, each caller calling again at once
  full, 100 callers                   3    1.25 (1.22–1.28)       1.20–1.30  serves more
Time per call, one caller
  one caller                          3    1.10 (1.08–1.12)       1.05–1.15  more
[1] the runs differ by more than their intervals.
gRPC and JSON: the runs differ by more than their intervals in 1 of 3 rows.
`},
		"two runs have no mean": {differs[:2], `
CPU per call, client and server    gRPC/JSON (95% CI)  verdict
  full, 100 callers, mon             0.70 (0.69–0.71)  less [1]
  full, 100 callers, tue             0.75 (0.73–0.77)  less [1]
Calls per second, each caller calling again at once
  full, 100 callers, mon             1.25 (1.23–1.28)  serves more
  full, 100 callers, tue             1.25 (1.23–1.28)  serves more
Time per call, one caller
  one caller, mon                    1.10 (1.08–1.12)  more
  one caller, tue                    1.10 (1.08–1.12)  more
[1] the runs differ by more than their intervals.
gRPC and JSON: the runs differ by more than their intervals in 1 of 3 rows.
A mean needs 3 runs.
`},
		"a busy machine is left out": {[]Run{differs[0], differs[0].as("tue"), differs[0].as("wed"), busy}, `
CPU per call, client and server    runs  gRPC/JSON (95% CI)  next run (95%)  verdict
  full, 100 callers                   3    0.70 (0.69–0.71)       0.67–0.73  less [1]
Calls per second, each caller calling again at once
  full, 100 callers                   4    1.25 (1.23–1.27)       1.21–1.29  serves more
Time per call, one caller
  one caller                          4    1.10 (1.09–1.11)       1.07–1.13  more
[1] without thu: machine disturbed.
gRPC and JSON: the runs differ by no more than their intervals.
`},
		"other loads and other programs": {[]Run{differs[0], changed(differs[0].as("tue"), func(s *Summary) {
			s.Answers[0].Conns, s.Environment[2] = 7, "commit=2"
		})}, `
Time per call, one caller    gRPC/JSON (95% CI)  verdict
  one caller, mon              1.10 (1.08–1.12)  more
  one caller, tue              1.10 (1.08–1.12)  more
gRPC and JSON: the runs differ by no more than their intervals.
A mean needs 3 runs.
In one run only: full, 100 callers.
The runs are of different commits or library versions.
`},
		"CPU of one run alone": {[]Run{differs[0], timeOnly("tue"), timeOnly("wed")}, `
Calls per second, each caller calling again at once    runs  gRPC/JSON (95% CI)  next run (95%)  verdict
  full, 100 callers                                       3    1.25 (1.22–1.28)       1.20–1.30  serves more
gRPC and JSON: the runs differ by no more than their intervals.
In one run only: one caller.
`},
		"a noisy machine": {[]Run{noisy("mon", 1.09), noisy("tue", 1.1), noisy("wed", 1.11)}, `
Time per call, one caller    runs  gRPC/JSON (95% CI)  next run (95%)  verdict
  one caller                    3    1.10 (1.04–1.16)       0.99–1.22  undecided [1]
[1] within the noise floor.
gRPC and JSON: the runs differ by no more than their intervals.
`},
		"three that say nothing": {[]Run{noisy("mon", 0.7), noisy("tue", 1), noisy("wed", 1.5)}, `
Time per call, one caller    runs  gRPC/JSON (95% CI)  next run (95%)  verdict
  one caller                    3            1.02 (–)       0.15–6.76  undecided [1] [2]
[1] the runs differ by more than their intervals.
[2] the interval spans more than a factor of two.
gRPC and JSON: the runs differ by more than their intervals.
`},
	} {
		p, refused := Combine("", c.runs)
		require.Empty(t, refused, reason)
		var text strings.Builder
		require.NoError(t, p.Text(&text, 110, false))
		head := fmt.Sprintf("gRPC and JSON over HTTP on X, 2 CPUs, Linux, go1.27.4: %d runs\n", len(c.runs))
		require.Equal(t, head+c.want, text.String(), reason)
	}
}

// as is the same run in another folder.
func (r Run) as(folder string) Run {
	r.Folder = folder
	return r
}

// Runs that were asked another question, or on another machine, are told apart, or refused if they stand alone.
func TestCombine(t *testing.T) {
	set := func(i int, line string) func(*Summary) { return func(s *Summary) { s.Environment[i] = line } }
	base := func(s *Summary) { s.Base = "grpcprotobuf" }
	for reason, c := range map[string]struct {
		change  func(*Summary)
		refused string
	}{
		"another day":     {set(0, "date=2026-11-29"), ""},
		"another commit":  {set(2, "commit=2"), ""},
		"another kernel":  {set(5, "kernel=Linux-7"), ""},
		"another library": {set(6, "lib@v2"), ""},
		"another Go":      {set(1, "go=go1.26.8"), "it has go=go1.26.8, and mon has go=go1.27.4"},
		"another CPU":     {set(3, "cpu=Y"), "it has cpu=Y, and mon has cpu=X"},
		"more cores":      {set(4, "cores=4"), "it has cores=4, and mon has cores=2"},
		"a quota": {func(s *Summary) { s.Environment = append(s.Environment, "cpu-quota=1") },
			"it has cpu-quota=1, and mon has no cpu-quota"},
		"an unknown CPU": {func(s *Summary) { s.Environment = slices.Delete(s.Environment, 3, 4) },
			"it has no cpu, and mon has cpu=X"},
		"another base":      {base, "it has base=grpcprotobuf, and mon has base=httpjson"},
		"servers elsewhere": {func(s *Summary) { s.Remote = true }, "it has server=remote, and mon has no server"},
		"a method of one's own": {func(s *Summary) { s.Call = &Call{Method: "a/B"} },
			"it has call=a/B, and mon has no call"},
	} {
		other := changed(night("wed", 0.7, 0.8), c.change)
		p, refused := Combine("", []Run{night("mon", 0.7, 0.8), night("tue", 0.7, 0.8), other})
		require.Len(t, p.Questions, 1, reason)
		if c.refused == "" {
			require.Empty(t, refused, reason)
			require.Len(t, p.Questions[0].Runs, 3, reason)
			continue
		}
		require.Len(t, p.Questions[0].Runs, 2, reason)
		require.EqualError(t, errors.Join(refused...), "report: wed can't be compared: "+c.refused+
			": leave it out, or name another run like it", reason)
		p, refused = Combine("", []Run{night("mon", 0.7, 0.8), night("tue", 0.7, 0.8), other, other.as("thu")})
		require.Empty(t, refused, reason)
		require.Len(t, p.Questions, 2, "two of them are another question: %s", reason)
	}
	_, refused := Combine("", []Run{night("mon", 0.7, 0.8)})
	require.EqualError(t, errors.Join(refused...),
		"report: mon is the only run that is left: name another folder beside it")
	p, refused := Combine("", []Run{night("mon", 0.7, 0.8), night("tue", 0.7, 0.8), changed(night("wed", 0.7, 0.8),
		func(s *Summary) {
			for i := range s.Answers {
				s.Answers[i].Workload = "another"
			}
		})})
	require.EqualError(t, errors.Join(refused...), "report: wed has no workload that another folder has: leave it out")
	require.Len(t, p.Questions[0].Runs, 2)
	p, refused = Combine("", nil)
	require.Empty(t, refused)
	require.Empty(t, p.Questions)
}

// Builds of a stack and a copy of the base have layouts of their own, or the base's.
func TestLayoutOfPooled(t *testing.T) {
	width := func(change func(*Summary)) float64 {
		var runs []Run
		for _, name := range []string{"mon", "tue", "wed"} {
			runs = append(runs, changed(night(name, 0.7, 0.8), change))
		}
		p, refused := Combine("", runs)
		require.Empty(t, refused)
		c := p.Questions[0].Comparisons[0]
		return c.Hi / c.Lo
	}
	several, one := width(func(*Summary) {}), width(func(s *Summary) { s.Plan.Layouts = 0 })
	require.NotEqual(t, several, one, "one layout is the same in all runs")
	require.InDelta(t, several, width(func(s *Summary) {
		s.Plan.Layouts = 0
		for i := range s.Answers {
			s.Answers[i].Stack = s.Base
		}
	}), 1e-9, "a copy has the base's layout")
}

// Folders of which nothing can be combined are refused in a line each, and the others are read.
func TestReadRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	save := func(folder string, s Summary) {
		require.NoError(t, os.MkdirAll(folder, 0o755))
		require.NoError(t, s.Save(folder))
	}
	mon := night("mon", 0.7, 0.8).Summary
	save("mon", mon)
	save("copy", mon)
	save("tue", night("tue", 0.7, 0.8).Summary)
	ended, old, counted := mon, mon, night("counted", 0.7, 0.8).Summary
	ended.Warnings, old.Release = []string{"interrupted"}, 2
	counted.Plan.Processes, counted.Answers[0].Facts = 0, &Counts{Calls: 1}
	save("ended", ended)
	save("old", old)
	save("counted", counted)
	require.NoError(t, os.Mkdir("other", 0o755))
	require.NoError(t, os.WriteFile("file", nil, 0o600))
	runs, refused := ReadRuns([]string{"mon", "ended", "./mon/", "copy", "old", "counted", "other", "file", "none", "tue"})
	var said []string
	for _, err := range refused {
		said = append(said, err.Error())
	}
	require.Equal(t, []string{
		"report: ended is of a run that was interrupted: measure it again, or leave it out",
		"report: ./mon/ is named twice: it counts once",
		"report: copy has the same summary.json as mon: a run counts once",
		"report: old was made by another release of rpcbench (2, this one reads 3): make the report with that one",
		"report: counted has counts, which are the same in each run: leave it out",
		"report: other has no summary.json: name a folder that rpcbench run made",
		"report: file is a file: name the folder that rpcbench run made",
		"report: none has no summary.json: name a folder that rpcbench run made",
	}, said)
	require.Len(t, runs, 2)
	require.Equal(t, "mon", runs[0].Folder)
	require.Equal(t, "tue", runs[1].Folder)
}

// A folder has the last parts of its path that tell it from the others.
func TestFolderNames(t *testing.T) {
	t.Chdir(t.TempDir())
	for reason, c := range map[string]struct{ folders, want []string }{
		"other names":                    {[]string{"a/mon", "b/tue"}, []string{"mon", "tue"}},
		"the same name in other folders": {[]string{"mon/run", "tue/run/"}, []string{"mon", "tue"}},
		"some names are the same":        {[]string{"a/mon", "b/mon", "tue"}, []string{"a/mon", "b/mon", "tue"}},
		"one within another":             {[]string{"run", "run/run"}, []string{filepath.Base(t.TempDir()), "run"}},
		"one":                            {[]string{"a/mon"}, []string{"mon"}},
	} {
		var runs []Run
		for _, folder := range c.folders {
			runs = append(runs, Run{Folder: folder})
		}
		distinguish(runs)
		for i, r := range runs {
			if reason == "one within another" && i == 0 {
				continue // it is named by the folder of the test
			}
			require.Equal(t, c.want[i], r.Folder, reason)
		}
	}
	distinguish(nil)
}

// pooled are three runs of one question and two of another.
func pooled(t testing.TB) Pool {
	other := func(s *Summary) { s.Environment[1] = "go=go1.26.8" }
	p, refused := Combine("rpcbench report a b c", []Run{night("mon", 0.7, 0.8), night("tue", 0.75, 0.8),
		night("wed", 0.8, 0.8), changed(night("thu", 0.7, 0.8), other), changed(night("fri", 0.7, 0.8), other)})
	require.Empty(t, refused)
	return p
}

// All pages have each run, each mean, what it was made of and how.
func TestPooledPages(t *testing.T) {
	dir := t.TempDir()
	p := pooled(t)
	require.NoError(t, p.Write(dir))
	for _, name := range []string{"report.html", "report.md"} {
		page, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		for _, part := range []string{"5 runs of 2 questions", "gRPC and JSON over HTTP, 3 runs", "mon", "tue", "wed",
			"thu", "fri", "0.75 (0.63–0.88)", "0.54–1.04",
			"the runs differ by more than their intervals in 1 of 3 rows", "go1.26.8",
			"A mean needs 3 runs.", "rpcbench run -out wed", "Paule and Mandel", "rpcbench report a b c"} {
			require.Contains(t, string(page), part, name)
		}
		require.NotRegexp(t, `NaN|Inf\b|<nil>`, string(page), name)
	}
	text, err := os.ReadFile(filepath.Join(dir, "pooled.json"))
	require.NoError(t, err)
	var again Pool
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, PoolRelease, again.Release)
	require.Equal(t, []string{"go=go1.27.4", "cpu=X", "cores=2"}, again.Questions[0].Machine)
	mean := again.Questions[0].Comparisons[0]
	require.Equal(t, p.Questions[0].Comparisons[0].Pooled, mean.Pooled)
	require.True(t, mean.Leads && mean.Differ)
	require.Equal(t, Found{Folder: "tue", Ratio: 0.75, Lo: 0.75 * 0.98, Hi: 0.75 * 1.02, NoiseFloor: 0.01,
		Verdict: verdict.Less, Processes: 8}, mean.Found[1])
	require.ErrorContains(t, p.Write(dir), "report.html is there already: delete it, or name another folder with -out")
}

// The picture has a line for each run of what a workload asks for, and below three of them their mean and the next run.
func TestForest(t *testing.T) {
	p := pooled(t)
	for _, drawn := range []Picture{p.Picture(), p.Wide()} {
		var labels []string
		for _, l := range drawn.Lines {
			labels = append(labels, l.Heading+l.Label)
			for _, d := range l.Dots {
				require.True(t, d.Lo <= d.At && d.At <= d.Hi, l.Label)
				require.True(t, float64(drawn.Left) <= d.Lo && d.Hi <= float64(drawn.Right), l.Label)
				require.Equal(t, l.Label == "next run (95%)", d.Bare)
				require.Equal(t, l.Label == "mean of 3", d.Second)
			}
			require.Less(t, l.Y, drawn.Bottom)
		}
		require.Equal(t, []string{"X, 2 CPUs, Linux, go1.27.4", "full, 100 callers: CPU per call", "mon", "tue", "wed",
			"mean of 3", "next run (95%)", "one caller: time per call", "mon", "tue", "wed", "mean of 3", "next run (95%)",
			"X, 2 CPUs, Linux, go1.26.8", "full, 100 callers: CPU per call", "thu", "fri", "one caller: time per call", "thu",
			"fri"}, labels)
	}
	lines := p.Picture().Lines
	require.Equal(t, "0.70 (0.69–0.71), less", lines[2].Dots[0].Title)
	require.Equal(t, "0.75 (0.63–0.88), less", lines[5].Dots[0].Title)
	require.Equal(t, "0.54–1.04", lines[6].Dots[0].Title)
	p.Questions = p.Questions[:1]
	require.Equal(t, "CPU or time of gRPC, in multiples of JSON's", p.Picture().Title)
	p.Questions[0].Comparisons[0].Found[1].LeftOut = verdict.Crowded
	require.Equal(t, "tue (left out)", p.Picture().Lines[2].Label)

	p, _ = Combine("", []Run{noisy("mon", 0.5), noisy("tue", 1), noisy("wed", 2)})
	lo, hi := phone.ends(p)
	require.InDelta(t, 0.5*0.95/1.05, lo, 1e-9, "the next run's interval is wider than the axis")
	require.InDelta(t, 2*1.05*1.05, hi, 1e-9)
}

// Where servers ran elsewhere, the CPU that leads is the client's.
func TestPooledRemote(t *testing.T) {
	remote := changed(night("mon", 0.7, 0.8), func(s *Summary) { s.Remote = true })
	p, refused := Combine("", []Run{remote, remote.as("tue"), remote.as("wed")})
	require.Empty(t, refused)
	c := p.Questions[0].Comparisons[0]
	require.Equal(t, clientHeading, c.Of)
	require.True(t, c.Leads)
}

// What all values of a sweep have stands once, in the head.
func TestPooledSweep(t *testing.T) {
	sweep := changed(night("mon", 0.7, 0.8), func(s *Summary) {
		s.Over, s.Answers[1] = "callers", s.Answers[0]
		s.Answers[0].Does, s.Answers[1].Does = "two processes, 1 caller", "two processes, 8 callers"
	})
	p, refused := Combine("", []Run{sweep, sweep.as("tue"), sweep.as("wed")})
	require.Empty(t, refused)
	q := p.Questions[0]
	require.Equal(t, "X, 2 CPUs, Linux, go1.27.4, two processes", q.Head())
	require.Equal(t, "1 caller", q.does(q.Comparisons[0]))
	require.Equal(t, "8 callers", q.does(q.Comparisons[1]))
}

// Whatever a file has for a name, the pages of several are well formed and load nothing from elsewhere.
func TestNamesOfPooled(t *testing.T) {
	for _, name := range []string{"httpjson", "", "a|b\n<script>x</script><img src=x onerror=y>\x1b[31m",
		"</pre></style><style>@import url(//x)</style>", "\"><a href=//x>&quot;&#60;script&#62;", "{{.}}", "\u202eabc\x00"} {
		one := Run{Folder: name + "1", Date: name, Commit: name, Warnings: []string{name}, Summary: hostile(name, "")}
		more := changed(one.as(name+"2"), func(s *Summary) {
			s.Answers = append(s.Answers, s.Answers[1])
			s.Answers[len(s.Answers)-1].Does = name + "alone"
		})
		p, refused := Combine(name, []Run{one, more, one.as(name + "3")})
		require.Empty(t, refused)
		var page, md, svg, text bytes.Buffer
		require.NoError(t, errors.Join(p.HTML(&page), p.Markdown(&md), p.SVG(&svg), p.Text(&text, 80, false)))
		safeHTML(t, page.String())
		safeMarkdown(t, md.String())
		require.NotContains(t, text.String(), "\x1b")
		for decoder := xml.NewDecoder(&svg); ; {
			_, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, "the picture is no XML")
		}
	}
}

// A report of twenty folders takes at most three seconds.
func TestTwentyFolders(t *testing.T) {
	dir := t.TempDir()
	var folders []string
	for i := range 20 {
		folders = append(folders, filepath.Join(dir, fmt.Sprint(i)))
		require.NoError(t, os.Mkdir(folders[i], 0o755))
		s := night(folders[i], 0.7, 0.8).Summary
		for n := range 50 {
			a := s.Answers[0]
			a.Workload, a.Does = fmt.Sprint(n), fmt.Sprint("workload ", n)
			s.Answers = append(s.Answers, a)
		}
		require.NoError(t, s.Save(folders[i]))
	}
	begun := time.Now()
	runs, refused := ReadRuns(folders)
	require.Empty(t, refused)
	p, refused := Combine("", runs)
	require.Empty(t, refused)
	require.NoError(t, errors.Join(p.Write(dir), p.Text(io.Discard, 100, false)))
	require.Less(t, time.Since(begun), 3*time.Second)
	require.Len(t, p.Questions[0].Comparisons, 103)
}
