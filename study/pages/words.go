package pages

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// amount is a figure of an answer with the words around its percentage: the verb before it, what follows if it is lower
// than the base's and if it is higher, and what it is of. A page gets a figure and these words from here, together.
type amount struct {
	of                        func(a comparison) verdict.Figure
	verb, lower, higher, name string
}

var amounts = map[string]amount{
	"CPU":           {ofCPU, "uses", "less", "more", "CPU"},
	"time":          {ofTime, "takes", "less", "more", "time"},
	"median":        {ofMedian, "has a", "lower", "higher", "median latency"},
	"p99":           {ofP99, "has a", "lower", "higher", "p99 latency"},
	"calls":         {ofCalls, "answers", "fewer", "more", "calls per second"},
	"calls of JSON": {ofTime, "answers", "fewer", "more", "calls per second"},
}

func ofMedian(a comparison) verdict.Figure { return a.Waits(a.Percentiles.P50) }
func ofP99(a comparison) verdict.Figure    { return a.Waits(a.Percentiles.P99) }
func ofCalls(a comparison) verdict.Figure  { return a.Time.Inverse() }

// ofCPU is the figure of CPU. If client and server share one core, that is the time of a call.
func ofCPU(a comparison) verdict.Figure {
	if a.OfCPU || processes(a)*a.GOMAXPROCS == 1 {
		return a.Figure
	}
	return a.CPU
}

// ofTime is the figure of a call's time.
func ofTime(a comparison) verdict.Figure {
	if a.OfCPU {
		return a.Time
	}
	return a.Figure
}

// found is an amount of an answer and its figure.
func found(a comparison, name string) (amount, verdict.Figure) {
	of, known := amounts[name]
	if !known {
		fail("no amount is called %q", name)
	}
	f := of.of(a)
	if f.Ratio == 0 {
		fail("%s: %s has no %s", a.Workload, a.Stack, of.name)
	}
	return of, f
}

// says is what a stack does by a figure.
func (of amount) says(a comparison) string {
	if !sure(of.of(a)) {
		return "shows no clear difference in " + of.name
	}
	return of.verb + " " + of.brief(a) + " " + of.name
}

// brief is a figure and its direction, behind words that say what it is of. If recorded runs asked the same again, it
// is the range of their figures.
func (of amount) brief(a comparison) string {
	f := of.of(a)
	if !sure(f) {
		return "no clear difference"
	}
	least, most := of.ends(a)
	switch {
	case most <= 1:
		return percentRange(changed(most), changed(least)) + " " + of.lower
	case least >= 1:
		return percentRange(changed(least), changed(most)) + " " + of.higher
	}
	return changed(least) + " " + of.lower + " to " + changed(most) + " " + of.higher
}

// ends are the smallest ratio and the largest that recorded runs have of an amount, with the comparison's own.
func (of amount) ends(a comparison) (least, most float64) {
	least = of.of(a).Ratio
	most = least
	for _, other := range a.again {
		if r := of.of(other).Ratio; r > 0 {
			least, most = min(least, r), max(most, r)
		}
	}
	return least, most
}

// percentRange is a range of two percentages, which may be one.
func percentRange(near, far string) string {
	if near == far {
		return far
	}
	return strings.TrimSuffix(near, "%") + " to " + far
}

// sure tells whether a difference is decided.
func sure(f verdict.Figure) bool { return f.Verdict == verdict.Less || f.Verdict == verdict.More }

// told is a sentence of a stack: its figure, the direction, and what it is of. More are words for the end, and further
// answers about the same stack, each with words of its own: "gRPC uses 40% more CPU at 2,000 calls a second and 30%
// less when saturated".
func told(a *comparison, name string, more ...any) string {
	of, _ := found(*a, name)
	said := []string{report.Label(a.Stack) + " " + of.says(*a)}
	for _, m := range more {
		switch m := m.(type) {
		case string:
			said[len(said)-1] += " " + m
		case *comparison:
			if m.Stack != a.Stack {
				fail("a sentence about %s has a figure of %s", a.Stack, m.Stack)
			}
			found(*m, name)
			said = append(said, of.brief(*m))
		default:
			fail("a sentence about %s is of words and answers, and of no %T", a.Stack, m)
		}
	}
	last := len(said) - 1
	if last == 0 {
		return said[0]
	}
	return strings.Join(said[:last], ", ") + " and " + said[last]
}

// predicate is told where the sentence has its subject.
func predicate(a *comparison, name string) string {
	of, _ := found(*a, name)
	return of.says(*a)
}

// unclear is predicate of an answer that decides nothing. It fails if it does.
func unclear(a *comparison, name string) string {
	if of, f := found(*a, name); sure(f) {
		fail("%s: %s has a clear difference in %s", a.Workload, a.Stack, of.name)
	}
	return predicate(a, name)
}

// change is a figure, its direction and what it is of: 41% more CPU. It fails where nothing is decided.
func change(a *comparison, name string) string { return short(a, name) + " " + amounts[name].name }

// short is change where the sentence has said what the figure is of: 41% more.
func short(a *comparison, name string) string {
	of, f := found(*a, name)
	if !sure(f) {
		fail("%s: the %s of %s is not decided", a.Workload, of.name, a.Stack)
	}
	return of.brief(*a)
}

// saved is a figure that is lower than the base's, for a sentence that says that it is.
func saved(a *comparison, name string) string {
	of, f := found(*a, name)
	if f.Verdict != verdict.Less {
		fail("%s: %s saves no %s", a.Workload, a.Stack, of.name)
	}
	least, most := of.ends(*a)
	if most >= 1 {
		fail("%s: %s doesn't always save %s", a.Workload, a.Stack, of.name)
	}
	return percentRange(changed(most), changed(least))
}

// ci is a ratio with its interval, of what its sentence or its row names.
func ci(a *comparison, name string) string {
	_, f := found(*a, name)
	return sized(comparison{Figure: f})
}

// signed is a figure in a cell, in percent with its sign.
func signed(a comparison, name string) string {
	_, f := found(a, name)
	if !sure(f) {
		return "no clear difference"
	}
	return percents(f.Ratio)
}

func percents(ratio float64) string {
	return strings.Replace(fmt.Sprintf("%+.0f%%", 100*(ratio-1)), "-", "−", 1)
}

// shortTable is README's: what gRPC changes, in percent, with a quantity in each row and messages in each column. It
// takes for each column its head, the folder of a sweep, what the names of its workloads begin with, and older names
// of the one at 2,000 calls a second and of the saturated one.
func (m *maker) shortTable(of []string) string {
	type column struct {
		head, dir, prefix string
		older             map[string]string
	}
	var columns []column
	for ; len(of) > 4; of = of[5:] {
		columns = append(columns, column{of[0], of[1], of[2], map[string]string{"rate.2000": of[3], "saturated": of[4]}})
	}
	rates := map[string]int{"rate.2000": 2000}
	const pooled = "↳ over all our runs of this setup"
	rows := []struct{ head, load, amount string }{
		{"CPU per call at 2,000 calls/s", "rate.2000", "CPU"},
		{pooled, "rate.2000", "CPU"},
		{"median latency at 2,000 calls/s", "rate.2000", "median"},
		{"p99 latency at 10,000 calls/s", "rate.10000", "p99"},
		{"median latency, saturated", "saturated", "median"},
		{"p99 latency, saturated", "saturated", "p99"},
		{"calls per second, saturated", "saturated", "calls"},
		{pooled, "saturated", "calls"},
	}
	t := new(table.Table)
	heads := []table.Of[int]{text("gRPC compared with JSON", func(i int) string { return rows[i].head })}
	for _, c := range columns {
		heads = append(heads, figure(c.head, func(i int) string {
			r := rows[i]
			if r.head != pooled {
				return signed(*m.led(c.dir, c.prefix+r.load, "grpcprotobuf"), r.amount)
			}
			return m.alike(c.dir, "grpcprotobuf", rates[r.load], 100, 1, c.prefix+r.load, c.older[r.load]).pooled(r.amount)
		}))
	}
	table.Fill(t, []int{0, 1, 2, 3, 4, 5, 6, 7}, heads...)
	return t.Markdown()
}

// pooled is the range of an amount, in percent, and of how many runs.
func (k kin) pooled(name string) string {
	var all []float64
	for _, r := range k {
		_, f := found(r.comparison, name)
		all = append(all, f.Ratio)
	}
	least, most := percents(slices.Min(all)), percents(slices.Max(all))
	if least != most {
		most = least + " to " + most
	}
	return most + " (" + count(len(all), "run") + ")"
}

// terminal is what rpcbench run printed of a run, on a terminal of 100 columns, as a block of text.
func (m *maker) terminal(dir string) string {
	var said strings.Builder
	if err := m.run(dir).Text(&said, 100, false, false); err != nil {
		fail("%w", err)
	}
	return "```text\n" + strings.TrimRight(said.String(), "\n") + "\n```"
}

// printed is the first row of each benchmark in a file of go test, as it was printed.
func (m *maker) printed(file string, names ...string) string {
	var lines []string
	for _, name := range names {
		line, _ := m.line(file, []string{"Benchmark" + name + "-"})
		lines = append(lines, line)
	}
	return "```text\n" + strings.Join(lines, "\n") + "\n```"
}
