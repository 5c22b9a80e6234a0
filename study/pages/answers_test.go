package pages

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// blockOf makes a block of a record.
func blockOf(t *testing.T, root, marker, body string) string {
	t.Helper()
	text, err := pageMaker(t, root).blocks("<!-- " + marker + " -->\n" + body + "<!-- end -->\n")
	require.NoError(t, err, marker)
	_, made, _ := strings.Cut(text, "-->\n")
	return strings.TrimSuffix(made, "<!-- end -->\n")
}

// TestAnswersTable: each cell is of its row and column, and written as they say. Somebody has read that each figure is
// of its stack and workload.
func TestAnswersTable(t *testing.T) {
	root := record(t)
	again(t, root, "rates", "rates", func(s *report.Summary) {
		s.Answers[1].CPU.Verdict, s.Answers[1].CPU.Reason = verdict.Undecided, verdict.Reason{Kind: verdict.NotCompleted,
			Found: 0.9, Needed: 0.98}
		s.Answers[1].BaseLoad.Completed, s.Answers[1].StackLoad.Completed = 0.9, 1
		s.Answers[0].CPU.BaseVaried = 0.6
	})
	require.Equal(t, `| calls | load | CPU, gRPC / JSON | JSON, µs | median | CPU | JSON/s | gRPC/s | CPU more | writes |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|
| small | full | 0.70 (0.63–0.77) | 55.0 | 0.80 | −30% | 25,000 | 35,700 | −16.5 | 0.40 |
| small | 900 | 1.40 (1.26–1.54) undecided [1] | 55.0 | 0.80 | no clear difference | – | – | no clear difference | 0.40 |

- [1] 90% of the planned calls were completed, and a verdict needs 98%.

[A Machine, 2 virtual cores, go1.26.8, 2026-11-23](../study/results/2026-11-23-rates).
100 callers; JSON on 100 connections, gRPC on 1 connection; client and server in two processes.
JSON's own time varied by 60%.
`, blockOf(t, root, `table answers in=2026-11-23-rates stack=grpcprotobuf
column "calls | load"
column "CPU, gRPC / JSON" of=CPU
column "JSON, µs" of="base CPU"
column "median"   of=median as=ratio
column "CPU"      of=CPU as=percent
column "JSON/s"   of="base calls"
column "gRPC/s"   of="stack calls"
column "CPU more" of=CPU as=more
column "writes"   of="stack writes" as=2
row "small | full" at=saturated
row "small | 900"  at=apart.rate.900
`, "something else\n"))

	rows := "# date=2026-11-23 go=go1.26.8 cpu=A-Machine cores=2\n"
	for i := range 6 {
		rows += fmt.Sprintf("BenchmarkCall/load=plain-2 1 5 ns/op %d cpu-ns/op\n", 10_000+i)
		rows += fmt.Sprintf("BenchmarkCall/load=tls-2 1 5 ns/op %d cpu-ns/op\n", 12_500+i)
		rows += fmt.Sprintf("BenchmarkCall/load=other-2 1 5 ns/op %d cpu-ns/op\n", 9_990+10*i)
	}
	write(t, root, at("price/rows.txt"), rows)
	write(t, root, at("older/rows.txt"), strings.ReplaceAll(rows, " 125", " 250"))
	require.Equal(t, `| calls | CPU | µs | share | more | by | spread | none |
|---|---:|---:|---:|---:|---:|---:|---:|
| tls | 12,502 | 12.5 | +25% | +2.5 | 0.50 (0.50–0.50) | 12.5 µs ±0% | – |
| other | 10,015 | 10.0 | no clear difference | no clear difference | 1.00 (1.00–1.01) | 10 µs ±0% | – |

A Machine, 2 virtual cores, go1.26.8, 2026-11-23: runs [1](../study/results/2026-11-23-price/rows.txt), [2](../study/results/2026-11-23-older/rows.txt).
`, blockOf(t, root, `table answers in=2026-11-23-price/rows.txt at=Call/load=$load of=cpu-ns/op
column calls column CPU column µs as=µs column share as=percent to=Call/load=plain column more as=more to=Call/load=plain
column by by=2026-11-23-older/rows.txt column spread as=spread column none of=p50-ns row tls load=tls row other load=other`, ""))
}

// TestStepsOfOneStack: calls of the base at one workload are compared with those at another, unpaired.
func TestStepsOfOneStack(t *testing.T) {
	root := record(t)
	again(t, root, "rates", "pools", func(s *report.Summary) {
		s.Over, s.Answers = "connections", []report.Answer{s.Answers[0], s.Answers[0]}
		for i, ns := range []float64{50_000, 25_000} {
			a := &s.Answers[i]
			a.Value, a.Workload = []string{"1", "4"}[i], []string{"one", "four"}[i]
			a.Time = verdict.Figure{Verdict: verdict.Less, Ratio: 0.5, Lo: 0.4, Hi: 0.8, BaseNs: ns,
				BasesNs: []float64{ns, ns, ns, ns, ns, ns}}
		}
	})
	require.Contains(t, blockOf(t, root, `table answers in=2026-11-23-pools stack=grpcprotobuf of="base calls" column n column x
column y to=1 row 1 at=1 row 4 at=4`, ""), "| 1 | 20,000 | – |\n| 4 | 40,000 | 2.00 (2.00–2.00) |\n")
	var v value
	quotient := `run("2026-11-23-pools", "four", "grpcprotobuf", "unpaired calls") / run("2026-11-23-pools", "1", "grpcprotobuf", "unpaired calls")`
	require.NoError(t, try(func() { v = pageMaker(t, root).eval(&ledger{}, parse(quotient)[0]) }))
	require.InDeltaSlice(t, []float64{2, 1, 4}, []float64{v.all[0], v.lo, v.hi}, 1e-9, "by all that the ratios varied")
	again(t, root, "pools", "pools", func(s *report.Summary) { s.Answers[0].Time.BasesNs = nil })
	err := try(func() { pageMaker(t, root).eval(&ledger{}, parse(quotient)[0]) })
	require.ErrorContains(t, err, "fewer than 6 processes")
}

// TestSpreads: times of three digits with how far their interval reaches.
func TestSpreads(t *testing.T) {
	for want, v := range map[string]value{
		"100 ns ±10%":  {all: []float64{100}, lo: 95, hi: 110},
		"12.3 µs ±10%": {all: []float64{12_345}, lo: 12_000, hi: 13_579},
		"1 ms ±5%":     {all: []float64{999_900}, lo: 950_000, hi: 1_000_000},
	} {
		require.Equal(t, want, spread(v))
	}
}

// TestPicture: a picture has the figures, the order and the words of the table of workloads, or those of sweeps. The
// page says itself how it shows it.
func TestPicture(t *testing.T) {
	m := pageMaker(t, record(t))
	titles := func(marker string) (all []string) {
		text := "<!-- picture docs/x.svg " + marker + " -->\n<img src=\"x.svg\">\n<!-- end -->\n"
		made, err := m.blocks(text)
		require.NoError(t, err)
		require.Equal(t, text, made)
		for _, title := range regexp.MustCompile(`<title>(.*)</title>`).FindAllStringSubmatch(m.made["docs/x.svg"], -1) {
			all = append(all, title[1])
		}
		return all
	}
	require.Equal(t, []string{
		"structured: calm Ada 0.50 (0.45–0.55), less", "structured: Bob 0.60 (0.54–0.66), less",
		"a small call, one core: calm Ada 1.20 (1.08–1.32), more",
		"a small call, one core: Bob 1.30 (1.17–1.43), undecided",
		"all cores: calm Ada 1.60 (1.44–1.76), more",
	}, titles(`2026-11-23-quiet/workloads "calm Ada" 2026-11-23-noisy/workloads Bob`))
	require.Equal(t, []string{
		"small call, 900 calls a second: 1.40 (1.26–1.54), more", "small call, saturated: 0.70 (0.63–0.77), less",
		"2.0 kB, 1000 calls a second: 0.90 (0.81–0.99), undecided",
	}, titles(`2026-11-23-rates "small call" 2026-11-23-rates2 "2.0 kB"`))
	require.Contains(t, m.made["docs/x.svg"], ">A Machine, 2 CPUs, go1.26.8, 2026-11-23. 100 callers; JSON ")
}

// TestClaims: the page's own table gets the figures of its claims, their records where these differ, and the verdicts.
func TestClaims(t *testing.T) {
	const page = "| | claim | source | here | verdict |\n|---:|---|---|---|---|\n" +
		"| 1 | dear | [A] |  |  |\n| 7 | equal | [B] | x | y |\n"
	root := record(t)
	again(t, root, "quiet/workloads", "later", func(s *report.Summary) {
		s.Environment = []string{"cpu=Another-One(R)", "cores=4", "go=go1.27.4", "date=2026-11-25"}
	})
	later := strings.Replace(dear, "quiet/workloads", "later", 1)
	write(t, root, claimed, "# of gRPC\n1 1.1–2 \"CPU, gRPC/JSON: `small`\" = "+dear+
		"\n1 >1 \"CPU, gRPC/JSON: `2kB`\" = "+cheap+
		"\n1 >1 \"CPU, gRPC/JSON: `small`\" = "+later+"\n7 ≈2 \"CPU, JSON/gRPC: `2kB`\" = 1 / "+cheap+"\n")
	made := blockOf(t, root, "table claims", page)
	require.Contains(t, made, "| 1 | dear | [A] | CPU, gRPC/JSON (1.1–2): `small`: 1.20 (1.08–1.32)<br>"+
		"CPU, gRPC/JSON (>1): `2kB`: 0.50 (0.45–0.55); `small`, Go 1.27.4, Another One, 4 CPUs, 2026-11-25: "+
		"**1.20 (1.08–1.32)** | **holds in part** |\n")
	require.Contains(t, made, "| 7 | equal | [B] | CPU, JSON/gRPC (≈2): `2kB`: **2.00 (1.82–2.22)** | **holds** |\n")
	m := pageMaker(t, root)
	for _, c := range []struct{ claims, page, want string }{
		{"1 >1 \"CPU: small\" = " + dear, page, "claim 7 has no figure"},
		{"8 >1 \"CPU: small\" = " + dear, strings.Join(strings.SplitAfter(page, "\n")[:2], ""), "figures of claim 8, which"},
		{"1 >1 CPU = " + dear, page, "claimed.txt:1: it isn't a number, limits"},
		{"1 >x \"CPU: small\" = " + dear, page, `claimed.txt:1: "x" is no number`},
		{"1 >1 \"CPU: small\" = " + dear, "| 1 | a | b |\n", "claim 1 has 3 columns"},
		{"1 >1 \"CPU: small\" = " + dear, strings.Join(strings.SplitAfter(page, "\n")[:2], "") + "| gRPC | 30% less |\n",
			"is no row of a claim"},
	} {
		write(t, root, claimed, c.claims+"\n")
		require.ErrorContains(t, try(func() { m.claimsTable(c.page) }), c.want)
	}
	require.ErrorContains(t, try(func() { m.claims("holds") }), "no claim is called")
}

// TestVerdictsOfClaims: a claim's figures are summed up.
func TestVerdictsOfClaims(t *testing.T) {
	of := func(value, lo, hi float64) reading {
		return reading{value: value, lo: lo, hi: hi, limits: limitsOf("1–3")}
	}
	holds, fails, more, open := of(2, 2, 2), of(.5, .5, .5), of(4, 4, 4), of(3, 2, 4)
	for want, readings := range map[string][]reading{
		"holds": {holds, holds}, "does not hold": {fails}, "more than claimed": {more}, "undecided": {open, open},
		"holds in part": {open, fails, holds}, "does not hold where it is decided": {open, fails},
		"holds where it is decided": {holds, open}, "void": {{limits: limitsOf("void")}, holds},
	} {
		require.Equal(t, want, overall(readings))
	}
	for reason, c := range map[string]struct {
		claimed string
		reading reading
		want    string
	}{
		"less is claimed, and it is far less":      {"0.3–0.6", reading{lo: 0.21, hi: 0.23}, "more than claimed"},
		"less is claimed, and it is more":          {"0.3–0.6", reading{lo: 1.31, hi: 1.42}, "does not hold"},
		"less is claimed, and a little less it is": {"0.6–0.8", reading{lo: 0.9, hi: 0.9}, "does not hold"},
		"the same is claimed, and it is less":      {"≈1", reading{lo: 0.4, hi: 0.6}, "does not hold"},
		"outside the noise floor":                  {">1", reading{lo: 1.04, hi: 1.10, floor: 0.03}, "holds"},
		"inside the noise floor":                   {">1", reading{lo: 1.01, hi: 1.03, floor: 0.05}, "undecided"},
		"into the noise floor":                     {">1", reading{lo: 1.04, hi: 1.10, floor: 0.05}, "undecided"},
		"a gain into the noise floor":              {"<1", reading{lo: 0.93, hi: 0.97, floor: 0.05}, "undecided"},
		"five times claimed, none proved":          {"5–9", reading{lo: 1.01, hi: 1.03, floor: 0.1}, "does not hold"},
		"the noise floor is nothing far from 1":    {">2", reading{lo: 2.03, hi: 2.24, floor: 0.9}, "holds"},
	} {
		c.reading.limits = limitsOf(c.claimed)
		require.Equal(t, c.want, c.reading.verdict(), reason)
	}
}

// TestAlike: a range is of runs that made one comparison under the same conditions. Hours in which other programs used
// the machine, and rates that were not kept, don't count.
func TestAlike(t *testing.T) {
	const grpcGo = "google.golang.org/grpc"
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
		"another release of Go":    {func(s *report.Summary) { s.Environment[2] = "go=go1.27.4" }, "1.60 (1)"},
		"a newer library":          {func(s *report.Summary) { s.Environment[5] = grpcGo + "@v1.90.0" }, "1.60–1.70 (2)"},
		"another major version":    {func(s *report.Summary) { s.Environment[5] = grpcGo + "/v2@v2.0.0" }, "1.60 (1)"},
		"another base":             {func(s *report.Summary) { s.Base = "rawtcp" }, "1.60 (1)"},
		"another stack":            {func(s *report.Summary) { s.Answers[0].Stack = "rawtcp" }, "1.60 (1)"},
		"another of its workloads": {func(s *report.Summary) { s.Answers[0].Workload = "alike" }, "1.60–1.70 (2)"},
		"a workload of another":    {func(s *report.Summary) { s.Answers[0].Workload = "other" }, "1.60 (1)"},
		"another method":           {func(s *report.Summary) { s.Call = &report.Call{Method: "a.B/C"} }, "1.60 (1)"},
		"other messages": {func(s *report.Summary) {
			s.Call = &report.Call{Bodies: []report.Body{{Request: 70, Reply: 7}}}
		}, "1.60 (1)"},
		"callers who last":           {func(s *report.Summary) { s.Answers[0].CPU.Verdict = verdict.Less }, "1.60 (1)"},
		"a server apart":             {func(s *report.Summary) { s.Answers[0].StackLoad.Switches = 1 }, "1.60 (1)"},
		"beside other programs":      {func(s *report.Summary) { s.Answers[0].Others = 0.5 }, "1.60 (1)"},
		"beside little of another's": {func(s *report.Summary) { s.Answers[0].Others = 0.01 }, "1.60–1.70 (2)"},
		"another rate":               {func(s *report.Summary) { s.Answers[0].Rate = 1000 }, "1.60 (1)"},
		"a rate that was not kept": {func(s *report.Summary) {
			s.Answers[0].BaseLoad.Completed, s.Answers[0].StackLoad.Completed = 0.45, 1
		}, "1.60 (1)"},
		"another of JSON's":            {func(s *report.Summary) { s.Answers[0].BaseFacts.Connections = 20 }, "1.60 (1)"},
		"another of gRPC's":            {func(s *report.Summary) { s.Answers[0].Facts.Connections = 100 }, "1.60 (1)"},
		"connections that were not it": {func(s *report.Summary) { s.Answers[0].Facts = nil }, "1.60 (1)"},
	} {
		root := record(t)
		again(t, root, "quiet/workloads", "more", func(s *report.Summary) {
			s.Answers = s.Answers[2:3]
			s.Answers[0].Time.Ratio = 1.7
			c.change(s)
		})
		require.Contains(t, blockOf(t, root, `table answers in=2026-11-23-quiet/workloads at=small-1-caller stack=grpcprotobuf
column a column b of=time over=runs also="alike elsewhere" row x`, ""), "| x | "+c.want+" |", reason)
		var all value
		require.NoError(t, try(func() {
			runs := parse(`runs("2026-11-23-quiet", "small-1-caller", "grpcprotobuf", "time", "alike")`)
			all = pageMaker(t, root).eval(&ledger{}, runs[0])
		}), reason)
		require.Len(t, all.all, map[bool]int{true: 2, false: 1}[strings.HasSuffix(c.want, "(2)")], reason)
	}
}

// TestCountingOfOneKind: windows that follow calls are another way of counting only where calls are too long for
// windows of 100 ms: of callers who last. Messages of JSON are told apart by their lengths.
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

// TestLeads: of complete hours on the machine that lead.txt names, the newest leads, if what README.md shows of it was
// not disturbed.
func TestLeads(t *testing.T) {
	const disturbed, next = 0.10, "2026-11-24-next does"
	for reason, c := range map[string]struct {
		change func(s *report.Summary)
		begun  string
		want   string
	}{
		"a complete hour": {func(*report.Summary) {}, "03:30",
			"does not lead: by the rule of study/results/README.md " + next},
		"an older minute":   {func(*report.Summary) {}, "", "2026-11-24-next is a complete hour: it needs"},
		"16 CPUs":           {func(s *report.Summary) { s.Environment[1] = "cores=16" }, "03:30", ""},
		"another processor": {func(s *report.Summary) { s.Environment[0] = "cpu=Another-One" }, "03:30", ""},
		"a container": {func(s *report.Summary) {
			s.Environment = append(s.Environment, "quota=2")
		}, "03:30", ""},
		"beside another program":   {func(s *report.Summary) { s.Answers[0].Others = disturbed }, "03:30", ""},
		"what is not shown of it":  {func(s *report.Summary) { s.Answers[1].Others = disturbed }, "03:30", next},
		"beside little of others'": {func(s *report.Summary) { s.Answers[0].Others = disturbed - 0.01 }, "03:30", next},
		"a base that varied":       {func(s *report.Summary) { s.Answers[0].Time.BaseVaried = 0.9 }, "03:30", next},
	} {
		root := pageOf(t, "", "")
		write(t, root, "README.md", "It uses 20% more CPU.\n")
		write(t, root, "study/figures/README.txt", `"20% more CPU" = run("lead", "small", "grpcprotobuf", "CPU")`+"\n")
		for _, part := range []string{"workloads", "jsoniter", "variants"} {
			again(t, root, "quiet/"+part, "next/"+part, func(s *report.Summary) {
				if part == "workloads" {
					c.change(s)
				}
			})
		}
		require.NoError(t, moved(root, "2026-11-23-next", "2026-11-24-next"))
		if c.begun != "" {
			write(t, root, "study/results/2026-11-24-next/state.txt", "workloads "+c.begun+" UTC, 113 s\n")
		}
		if err := errors.Join(Make(root).Problems...); c.want == "" {
			require.NoError(t, err, reason)
		} else {
			require.ErrorContains(t, err, c.want, reason)
		}
	}
	root := pageOf(t, "", "")
	write(t, root, "study/measure.sh", "parts=(run:2)\n")
	require.ErrorContains(t, errors.Join(Make(root).Problems...), "does not list the parts of an hour")
	write(t, root, "study/measure.sh", "hour=(workloads lacking)\n")
	require.ErrorContains(t, errors.Join(Make(root).Problems...), "README.md none does")
}
