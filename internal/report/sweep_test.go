package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// TestSweepsHaveNoSentence: the table and the picture say where curves cross.
func TestSweepsHaveNoSentence(t *testing.T) {
	s := swept("saturated 0.66", "5000 1.4", "1000 1.25")
	require.Empty(t, s.Sentences())
	require.NotEmpty(t, s.Results(false).Rows)
	s.Over = ""
	require.NotEmpty(t, s.Sentences(), "the same answers of no sweep")
}

// swept is a sweep of gRPC over calls a second, with each value's ratio of CPU time. By time all is equal.
func swept(points ...string) Summary {
	s := found()
	s.Over, s.Answers = "calls a second", nil
	for _, point := range points {
		var value string
		var ratio float64
		_, _ = fmt.Sscan(point, &value, &ratio)
		a := Answer{Workload: "small-" + value, Does: "a small call, " + value, Value: value, GOMAXPROCS: 2,
			Stack: "grpcprotobuf", Leads: ByCPU, Answer: verdict.Answer{Processes: verdict.Counts{Planned: 8, Counted: 8},
				Time: verdict.Figure{BaseNs: 90_000, Ratio: 1.1, Lo: 1.09, Hi: 1.11, Verdict: verdict.Same},
				CPU: verdict.Figure{OnOneSide: 8, BaseNs: 60_000, Ratio: ratio, Lo: ratio * 0.9, Hi: ratio * 1.1, NoiseFloor: 0.03,
					Verdict: verdict.Undecided, Reason: verdict.Reason{Kind: verdict.IncludesOne}}}}
		if ratio > 1.1 {
			a.CPU.Verdict, a.CPU.Reason = verdict.More, verdict.Reason{}
		} else if ratio > 0 && ratio < 0.9 {
			a.CPU.Verdict, a.CPU.Reason = verdict.Less, verdict.Reason{}
		}
		s.Answers = append(s.Answers, a)
	}
	return s
}

func rates() Summary {
	return swept("saturated 0.66", "20000 0.97", "5000 1.4", "1000 1.25", "10000 1.12", "2000 0")
}

// A rate that was not kept has no place among rates.
func TestRatesNotKept(t *testing.T) {
	for _, completed := range [][2]float64{{0.45, 1}, {1, 0.45}, {0.97, 1}} {
		behind := swept("1000 1.25", "20000 0.49")
		behind.Answers[1].BaseLoad.Completed, behind.Answers[1].StackLoad.Completed = completed[0], completed[1]
		p := Draw(Machine{"structured", behind})
		require.Len(t, p.Paths[0].Dots, 1, "a rate of which %g were completed", completed)
		require.Len(t, p.Ticks, 1)
	}
}

func TestLinesOfSweep(t *testing.T) {
	var does []string
	for _, l := range swept("1 0.5", "8 2").lines(false) {
		does = append(does, l.heading+": "+l.led.Answer.Does)
	}
	require.Equal(t, []string{cpuHeading + ": a small call, 1", cpuHeading + ": a small call, 8",
		timeHeading + ": a small call, 1", timeHeading + ": a small call, 8"}, does)
}

// A point stands where the marks of its value and of its ratio meet.
func TestPictureOfSweep(t *testing.T) {
	other := swept("1000 0.8", "4000 0.75", "saturated 0.5")
	p := Draw(Machine{"small", rates()}, Machine{"2 kB", other})
	at := func(ticks []Tick, label string) float64 {
		i := slices.IndexFunc(ticks, func(tick Tick) bool { return tick.Label == label })
		require.GreaterOrEqual(t, i, 0, label)
		return ticks[i].At
	}
	var labels []string
	for _, tick := range p.Ticks {
		labels = append(labels, tick.Label)
	}
	require.Equal(t, []string{"1,000", "4,000", "", "10,000", "20,000", "saturated"}, labels)
	dots := p.Paths[1].Dots
	for i, value := range []string{"1,000", "4,000", "saturated"} {
		require.Equal(t, at(p.Ticks, value), dots[i].X, value)
	}
	require.Equal(t, at(p.Levels, "×0.8"), dots[0].At)
	require.Less(t, p.Paths[0].Dots[1].At, p.One, "more is above")
	require.Equal(t, "4000 calls a second: 0.75 (0.68–0.83), less", dots[1].Title)
	require.Equal(t, fmt.Sprintf("M%g %gL%g %g", dots[0].X, dots[0].At, dots[1].X, dots[1].At), p.Paths[1].Drawn)
	require.Equal(t, fmt.Sprintf("M%g %gL%g %g", dots[1].X, dots[1].At, dots[2].X, dots[2].At), p.Paths[1].Dashed)
	require.True(t, p.Paths[0].Dots[3].Hollow)
	require.Equal(t, "Above ×1 gRPC takes more CPU than JSON, below less.", p.Words[0].Text)
	require.Equal(t, "gRPC uses less CPU than JSON when saturated, and more at low rates (small)", p.Title)
	require.Positive(t, at(p.Levels, "×0.5"))
	require.Greater(t, p.Break(), at(p.Ticks, "20,000"), "the axis breaks behind the highest rate")
	require.Less(t, p.Break(), at(p.Ticks, "saturated"))
	near := swept("1000 1", "5000 1")
	require.Zero(t, near.Picture().Break())
	require.Positive(t, at(Draw(Machine{"near", near}).Levels, "×0.5"), "a page shows how far it is to a half")

	var svg strings.Builder
	require.NoError(t, p.SVG(&svg))
	require.Contains(t, svg.String(), `d="`+p.Paths[1].Dashed+`"`)
	require.Contains(t, svg.String(), fmt.Sprintf(`class="gap" d="M%g `, p.Break()))
	said := ""
	for _, w := range p.Words {
		said += w.Text + " "
	}
	require.Contains(t, said, "Saturated is not the same work for both: ")
	require.Equal(t, 1, strings.Count(svg.String(), `<rect class="floor"`), "beneath the mark that is hollow")
	hollow := p.Paths[0].Dots[3]
	require.Less(t, hollow.FloorLo, p.One)
	require.Greater(t, hollow.FloorLo+hollow.FloorWidth, p.One)
	for _, path := range p.Paths {
		end := path.Dots[len(path.Dots)-1]
		require.InDelta(t, end.At, path.Y, 15, "the label of %s stands beside its end", path.Label)
		require.Greater(t, path.X, p.Right, "on no line")
		require.LessOrEqual(t, path.X+letter*len(path.Label), p.End())
	}

	two := swept("1 0.8", "1 0.8")
	two.Answers[1].Stack = "drpc"
	p = Draw(Machine{"a", two}, Machine{"b", two})
	require.Equal(t, "Above ×1 a stack takes more CPU than JSON, below less.", p.Words[0].Text)
	require.Equal(t, "CPU, in multiples of JSON's", p.Title, "two stacks have no message in common")
	for i, label := range []string{"a, gRPC", "a, drpc", "b, gRPC", "b, drpc"} {
		require.Equal(t, label, p.Paths[i].Label)
		if i > 0 {
			require.GreaterOrEqual(t, p.Paths[i].Y-p.Paths[i-1].Y, 15., "%s on another label", label)
		}
	}

	long := Draw(Machine{strings.Repeat("long ", 20), other}).Paths[0]
	require.Equal(t, page.width/3, long.Fit, "a label that is too long is made to fit")
	low := swept()
	for i := range 12 {
		a := swept("1 0.1").Answers[0]
		a.Stack = fmt.Sprint(i)
		low.Answers = append(low.Answers, a)
	}
	for _, path := range low.Picture().Paths {
		require.LessOrEqual(t, path.Y, float64(least+margin), "labels stay beside the axes")
	}

	for reason, s := range map[string]Summary{"one value": swept("5 1"), "saturated alone": swept("saturated 1"),
		"nothing": swept(), "beyond all ratios": swept("1e-320 1e-300", "1e308 1e300")} {
		var svg bytes.Buffer
		require.NoError(t, s.SVG(&svg))
		require.NotRegexp(t, `NaN|Inf`, svg.String(), reason)
	}
}

// The first line of a report says how much of a machine's CPUs its programs had, if that isn't all.
func TestHead(t *testing.T) {
	for want, more := range map[string][]string{
		"AMD EPYC, 8 CPUs, go1.27.4":                                    nil,
		"AMD EPYC, 8 CPUs, GOMAXPROCS 2, a quota of 0.5 CPUs, go1.27.4": {"gomaxprocs=2", "cpu-quota=0.5"},
		"AMD EPYC, 8 CPUs, GOMAXPROCS 2, a quota of 1 CPU, go1.27.4":    {"gomaxprocs=2", "cpu-quota=1"},
		"AMD EPYC, 8 CPUs, GOMAXPROCS 4, go1.27.4":                      {"gomaxprocs=4"},
	} {
		s := Summary{Environment: append([]string{"go=go1.27.4", "cpu=AMD-EPYC", "cores=8"}, more...)}
		require.Equal(t, want, s.Head())
	}
}

// A picture's title is what its curves have in common, if their ends are decided.
func TestMessageOfSweep(t *testing.T) {
	over := func(s Summary) Summary {
		s.Over = "connections"
		return s
	}
	for want, machines := range map[string][]Machine{
		"gRPC uses less CPU than JSON when saturated": {{"a", swept("1000 0.8", "saturated 0.5")}},
		"gRPC uses more CPU than JSON when saturated, and less at low rates": {
			{"a", swept("1000 0.8", "saturated 1.5")}},
		"gRPC uses less CPU than JSON at high rates, and more at low rates": {
			{"a", swept("1000 1.2", "5000 1", "9000 0.5")}},
		"gRPC uses more CPU than JSON at many connections, and less at few connections": {
			{"a", over(swept("1 0.2", "100 1.2"))}},
		"gRPC uses less CPU than JSON when saturated, and more at low rates (a and c)": {
			{"a", swept("1 1.2", "saturated 0.5")}, {"b", swept("1 1", "saturated 0.5")},
			{"c", swept("1 1.3", "saturated 0.5")}},
	} {
		require.Equal(t, want, Draw(machines...).Title)
	}
	for reason, machines := range map[string][]Machine{
		"the last value is undecided": {{"a", swept("1000 0.8", "saturated 1")}},
		"all is undecided":            {{"a", swept("1000 1", "saturated 1")}},
		"the ends are contrary":       {{"a", swept("1 0.8", "2 0.8")}, {"b", swept("1 0.8", "2 1.3")}},
	} {
		require.Equal(t, "CPU of gRPC, in multiples of JSON's", Draw(machines...).Title, reason)
	}
}

// A sweep over one stack has its values beside its first one, where processes tell.
func TestSteps(t *testing.T) {
	s := swept("1 0.8", "4 0.7", "16 1.2")
	s.Over = "connections"
	base := []float64{1000, 1010, 1000, 1020, 1000, 1005, 1000, 1010}
	for i := range s.Answers {
		a := &s.Answers[i]
		a.Callers = 100
		for _, f := range []*verdict.Figure{&a.CPU, &a.Time} {
			f.Lo, f.Hi, f.NoiseFloor, f.BasesNs = f.Ratio*0.99, f.Ratio*1.01, 0.01, nil
			for _, ns := range base {
				f.BasesNs = append(f.BasesNs, ns/float64(i+1))
			}
		}
	}
	steps := s.Steps()
	require.Equal(t, "compared with 1 connection", steps.Columns[0].Name)
	require.Equal(t, [][]string{
		{"JSON, 4 connections", "0.50 (0.50–0.50) less", "2.00 (2.00–2.00) more"},
		{"JSON, 16 connections", "0.33 (0.33–0.33) less", "3.00 (3.00–3.00) more"},
		{"gRPC, 4 connections", "0.44 (0.43–0.44) less", "2.00 (1.97–2.03) more"},
		{"gRPC, 16 connections", "0.50 (0.49–0.51) less", "3.00 (2.96–3.04) more"},
	}, steps.Rows)
	var text, page strings.Builder
	require.NoError(t, s.Text(&text, 100, false, false))
	require.Contains(t, text.String(),
		"\n\ncompared with 1 connection  CPU per call (95% CI)  calls per second (95% CI)\n")
	require.NoError(t, s.HTML(&page))
	require.NoError(t, s.Markdown(&page))
	require.Equal(t, 2, strings.Count(page.String(), "0.44 (0.43–0.44) less"))

	s.Answers[1].CPU.Lo /= 3
	require.Equal(t, []string{table.NoSize(1, 3)}, s.Steps().Notes)
	s.Answers[1].CPU.Lo *= 3

	s.Answers[0].Busy = true
	for _, row := range s.Steps().Rows {
		require.Contains(t, row[1], "undecided", "the first value was disturbed")
		require.Contains(t, row[2], "undecided")
	}
	s.Answers[0].Busy, s.Answers[2].CPU, s.Answers[2].Callers = false, verdict.Figure{}, 0
	require.Len(t, s.Steps().Rows, 2, "where there is no figure there is no row")
	s.Over = ""
	require.Nil(t, s.Steps(), "no sweep")
}

// On a terminal a sweep has calls a second and writes where the stack's differ from the base's.
func TestLinesThatDiffer(t *testing.T) {
	headings := func(s Summary) (all []string) {
		for _, l := range s.lines(false) {
			if !slices.Contains(all, l.heading) {
				all = append(all, l.heading)
			}
		}
		return all
	}
	s := swept("16 0.8", "64 0.7")
	s.Over = "callers"
	for i := range s.Answers {
		s.Answers[i].Callers, s.Answers[i].Facts = 16, &Counts{Writes: 1}
		s.Answers[i].BaseFacts, s.Answers[i].Time.Lo, s.Answers[i].Time.Hi = &Counts{Writes: 1}, 0.99, 1.21
	}
	require.Equal(t, []string{cpuHeading}, headings(s))
	s.Answers[0].Facts = &Counts{Writes: 1.01}
	require.Equal(t, []string{cpuHeading}, headings(s))
	s.Answers[1].Facts = &Counts{Writes: 2.03}
	require.Equal(t, []string{cpuHeading, writeHeading}, headings(s))
	s.Answers[0].Time.Lo, s.Answers[0].Time.Verdict = 1.05, verdict.More
	require.Equal(t, []string{cpuHeading, rateHeading, writeHeading}, headings(s))
	var text strings.Builder
	require.NoError(t, s.Text(&text, 100, false, false))
	require.Regexp(t, `(?m)^Writes per call, of the client\n  16 +1 +1.01 +1.01 +same\n`+
		`  64 +1 +2.03 +2.03 +more$`, text.String())
	first, _, _ := strings.Cut(text.String(), "\n\n")
	require.Contains(t, first, "; a small call", "what all values share stands in the first line")
	for _, c := range []struct{ lo, hi float64 }{{0.5, 1.4}, {0, 0}} { // too wide, and none
		s.Answers[0].CPU.Verdict, s.Answers[0].CPU.Lo, s.Answers[0].CPU.Hi = verdict.Undecided, c.lo, c.hi
		require.Contains(t, s.Results(false).Notes, table.NoSize(c.lo, c.hi), "a dash says why")
	}
	s.Over = ""
	require.Contains(t, headings(s), writeHeading, "two workloads leave room")
	s.Answers = append(s.Answers, s.Answers[0])
	require.NotContains(t, headings(s), writeHeading, "many do not")
}

// A picture says of what machine and of which callers, connections and processes it is; what differs is left out.
func TestWiring(t *testing.T) {
	wired := func(with Wired, workloads ...string) Summary {
		s := swept()
		for _, w := range workloads {
			a := swept("5000 0.5").Answers[0]
			a.Workload, a.BaseFacts, a.Facts = w, &Counts{Connections: 100}, &Counts{Connections: 1}
			a.Wired, a.BaseLoad.Completed = with, 1
			s.Answers = append(s.Answers, a)
		}
		s.Environment = []string{"date=2026-11-26", "go=go1.27.4", "cpu=AMD-EPYC", "cores=2"}
		return s
	}
	apart := wired(Wired{Callers: 100, Apart: true}, "apart.rate.1000", "apart.rate.5000", "apart.saturated")
	apart.Answers[2].Value, apart.Answers[2].BaseLoad.Completed = Saturated, 0
	conns := wired(Wired{Callers: 50, Apart: true}, "apart.callers.50.conns.5", "apart.callers.50.conns.20")
	conns.Answers[0].Facts, conns.Answers[0].BaseFacts = &Counts{Connections: 5}, &Counts{Connections: 5}
	one := wired(Wired{Callers: 100}, "rate.1000")
	one.Answers[0].Facts = nil
	remote := wired(Wired{Callers: 1}, "callers.1")
	remote.Remote = true
	for want, s := range map[string]Summary{
		"100 callers; JSON on 100 connections, gRPC on 1 connection; client and server in two processes": apart,
		"50 callers; client and server in two processes":                                                 conns,
		"100 callers; JSON on 100 connections; client and server in one process":                         one,
		"1 caller; JSON on 100 connections, gRPC on 1 connection; servers in other programs":             remote,
		"100 callers": wired(Wired{Callers: 100}, "rate.1000", "apart.rate.5000"),
	} {
		if want == "100 callers" {
			s.Answers[0].BaseFacts, s.Answers[0].Facts, s.Answers[1].Apart = nil, nil, true
		}
		require.Equal(t, want, s.Wiring())
	}
	said := func(machines ...Machine) (all string) {
		for _, w := range Draw(machines...).Words {
			all += " " + w.Text
		}
		return all
	}
	require.Contains(t, said(Machine{"small", apart}, Machine{"2 kB", apart}), " AMD EPYC, 2 CPUs, go1.27.4, 2026-11-26. "+
		apart.Wiring()+". With")
	require.Contains(t, said(Machine{"small", apart}, Machine{"2 kB", conns}), " 2 kB: AMD EPYC, 2 CPUs, go1.27.4, "+
		"2026-11-26. "+conns.Wiring()+". With")
}
