package pages

import (
	"fmt"
	"go/token"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"github.com/rpcbench/rpcbench/internal/idle"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// source makes a value of the arguments of a ledger's call.
type source func(name string, args []value) value

// sources are those of ledgers, as .github/figures.md lists them.
func (m *maker) sources() map[string]source {
	stands := func(string, []value) value { return value{} }
	return map[string]source{
		"run":  func(name string, args []value) value { return m.asked(texts(name, args, 4)) },
		"runs": func(name string, args []value) value { return m.repeated(texts(name, args, 4)) },
		"list": func(_ string, args []value) (v value) {
			v.typed = true
			for _, a := range args {
				v.all, v.figures, v.typed = append(v.all, a.all...), append(v.figures, a.figures...), v.typed && a.typed
			}
			return v
		},
		"rows": func(name string, args []value) value {
			of := texts(name, args, 3)
			v := m.sampled(m.path(of[0]), of[1], of[2])
			for _, unit := range of[3:] { // whose sum it is
				v = derived(token.ADD, v, m.sampled(m.path(of[0]), of[1], unit))
			}
			return v
		},
		"codec": func(name string, args []value) (v value) {
			of := texts(name, args, 4)
			for op := range strings.FieldsSeq(of[1]) {
				for message := range strings.FieldsSeq(of[2]) {
					s := m.codec(m.path(of[0]), op, message, of[3])
					v.all, v.lo, v.hi = append(v.all, s.Center), s.Lo, s.Hi
				}
			}
			if v.from = m.header(m.path(of[0])); len(v.all) > 1 || of[1] == "size" { // which is counted
				v.lo, v.hi = 0, 0
			}
			return v
		},
		"idle": func(name string, args []value) value {
			of := texts(name, args, 5)
			return one(m.resting(m.path(of[0]), of[1], of[2], of[3], of[4]).Mean)
		},
		"line": m.lineOf,
		"samples": func(name string, args []value) value {
			of := texts(name, args, 2)
			return one(m.share(m.path(of[0]), of[1:]))
		},
		"sized": func(name string, args []value) value {
			if len(args) != 3 {
				fail("sized takes a number and the ends of its interval")
			}
			return value{all: args[0].all, lo: args[1].all[0], hi: args[2].all[0],
				typed: args[0].typed || args[1].typed || args[2].typed}
		},
		"where": func(name string, args []value) value {
			return value{text: m.where(m.path(texts(name, args, 1)[0]))}
		},
		"above": bounded, "below": bounded, "between": bounded,
		"days":    func(name string, args []value) value { return m.predicts(texts(name, args, 2)) },
		"claims":  func(name string, args []value) value { return one(m.claims(texts(name, args, 1)[0])) },
		"setting": stands, "theirs": stands, "commit": stands,
	}
}

// bounded is a number with where it has to lie for its words to be true: above(n, least), below(n, most) or
// between(n, least, most).
func bounded(name string, args []value) value {
	if len(args) < 2 || len(args) < 3 && name == "between" {
		fail("%s takes a source, and where it ends", name)
	}
	v, bounds := args[0], [2]float64{math.Inf(-1), math.Inf(1)}
	for i, a := range args[1:] {
		if len(a.all) != 1 {
			fail("%s ends at numbers", name)
		}
		if name == "below" {
			i = 1
		}
		bounds[i] = a.all[0]
	}
	return value{all: v.all, figures: v.figures, typed: v.typed, bounds: &bounds}
}

func sourceNames(m *maker) []string { return slices.Sorted(maps.Keys(m.sources())) }

// texts are the arguments of a source that takes texts alone, at least so many.
func texts(name string, args []value, least int) (all []string) {
	for _, a := range args {
		if a.all != nil {
			fail("%s takes texts in quotes alone", name)
		}
		all = append(all, a.text)
	}
	if len(all) < least {
		fail("%s takes %d texts", name, least)
	}
	return all
}

// lineOf is the nth number behind texts in a line of a file: line("file", 2, "text", ...).
func (m *maker) lineOf(_ string, args []value) value {
	if len(args) < 3 || args[1].all == nil {
		fail("line takes a file, which number of the line, and the texts before it")
	}
	for _, pages := range ofPages {
		if is, _ := path.Match(pages, args[0].text); is && args[0].text != "docs/service.md" { // whose bodies a test checks
			fail("%s is a page, and no record", args[0].text)
		}
	}
	return one(m.figure(m.path(args[0].text), int(args[1].all[0]), texts("line", args[2:], 1)...))
}

// quantity is what a source or a table may take of an answer: a ratio to the base with its verdict, or a number and how
// tables write it.
type quantity struct {
	figure func(comparison) verdict.Figure
	number func(comparison) float64
	cell   func(float64) string
}

// quantities are all of them, by their names in ledgers and tables. The base's and the stack's have that before the
// name.
var quantities = quantitiesOf()

func quantitiesOf() map[string]quantity {
	percentile := func(of func(verdict.Percentiles) verdict.Percentile) func(comparison) verdict.Figure {
		return func(c comparison) verdict.Figure { return c.Waits(of(c.Percentiles)) }
	}
	ratios := map[string]func(comparison) verdict.Figure{
		"CPU": ofCPU, "time": ofTime,
		"median": percentile(func(p verdict.Percentiles) verdict.Percentile { return p.P50 }),
		"p95":    percentile(func(p verdict.Percentiles) verdict.Percentile { return p.P95 }),
		"p99":    func(c comparison) verdict.Figure { return c.P99() },
		"p99.9":  percentile(func(p verdict.Percentiles) verdict.Percentile { return p.P999 }),
	}
	all := map[string]quantity{"calls": {figure: func(c comparison) verdict.Figure { return ofTime(c).Inverse() }}}
	for name, figure := range ratios {
		all[name] = quantity{figure: figure}
		all["base "+name] = quantity{number: func(c comparison) float64 { return figure(c).BaseNs }, cell: table.Micros}
		all["stack "+name] = quantity{cell: table.Micros, number: func(c comparison) float64 {
			f := figure(c)
			return f.BaseNs * f.Ratio
		}}
	}
	both := func(name string, number func(c comparison, side int) float64, cell func(float64) string) {
		for i, side := range []string{"base ", "stack "} {
			all[side+name] = quantity{number: func(c comparison) float64 { return number(c, i) }, cell: cell}
		}
	}
	perCall := func(of func(report.Counts) float64) func(comparison, int) float64 {
		return func(c comparison, side int) float64 { return of(c.counts(side)) }
	}
	both("calls", func(c comparison, side int) float64 {
		if f := ofTime(c); f.BaseNs > 0 {
			return perSecond(f.BaseNs * []float64{1, f.Ratio}[side])
		}
		return 0
	}, grouped)
	both("server CPU", func(c comparison, side int) float64 {
		return []verdict.Means{c.BaseMeans, c.StackMeans}[side].ServerCPUNs
	}, table.Micros)
	both("switches", func(c comparison, side int) float64 {
		return []verdict.Load{c.BaseLoad, c.StackLoad}[side].Switches
	}, places(2))
	both("writes", perCall(func(n report.Counts) float64 { return n.Writes }), places(2))
	both("sent", perCall(func(n report.Counts) float64 { return n.Sent }), grouped)
	both("received", perCall(func(n report.Counts) float64 { return n.Received }), grouped)
	both("allocations", perCall(func(n report.Counts) float64 { return n.Allocs }), grouped)
	both("allocated", perCall(func(n report.Counts) float64 { return n.AllocBytes }), grouped)
	both("connections", perCall(func(n report.Counts) float64 { return float64(n.Connections) }), grouped)
	both("body", func(c comparison, side int) float64 {
		if c.of.Call == nil || len(c.of.Call.Bodies) <= side {
			return 0
		}
		return c.of.Call.Bodies[side].Request + c.of.Call.Bodies[side].Reply
	}, grouped)
	all["noise floor"] = quantity{number: func(c comparison) float64 { return c.NoiseFloor }, cell: table.Percent}
	all["CPU noise floor"] = quantity{number: func(c comparison) float64 { return c.CPU.NoiseFloor }, cell: table.Percent}
	all["base varied"] = quantity{number: func(c comparison) float64 { return c.BaseVaried }, cell: table.Percent}
	return all
}

func places(n int) func(float64) string { return func(v float64) string { return written(v, n) } }

// quantityOf finds a quantity.
func quantityOf(name string) quantity {
	q, known := quantities[name]
	if !known {
		fail("no quantity is called %q: there are %s", name, strings.Join(slices.Sorted(maps.Keys(quantities)), ", "))
	}
	return q
}

// value is the quantity of comparisons. What one of them lacks is an error.
func (q quantity) value(name string, all ...comparison) (v value) {
	var figures []verdict.Figure
	for _, c := range all {
		n := 0.0
		if q.figure != nil {
			f := q.figure(c)
			figures, n = append(figures, f), f.Ratio
		} else {
			n = q.number(c)
		}
		if n == 0 {
			fail("%s at %s has no %s", c.Stack, c.Workload, name)
		}
		v.all = append(v.all, n)
	}
	if q.figure != nil {
		v = ratio(figures...)
		v.of = name
	}
	return v
}

// asked is a quantity of one run: folder, workload, stack and quantity.
func (m *maker) asked(of []string) value {
	c := m.led(m.path(of[0]), of[1], of[2])
	if of[3] == "unpaired calls" { // of two workloads, which were not paired
		s := calls(c)
		return value{all: []float64{1 / s.Center}, lo: 1 / s.Hi, hi: 1 / s.Lo, from: c.of}
	}
	v := quantityOf(of[3]).value(of[3], c)
	v.from = c.of
	return v
}

// repeated is a quantity of all recorded runs of what a folder asked, its own with them: folder, workload, stack,
// quantity, and other names of the workload.
func (m *maker) repeated(of []string) value {
	own := m.led(m.path(of[0]), of[1], of[2])
	all := m.alike(m.path(of[0]), of[1], of[2], of[4:]...)
	if !slices.ContainsFunc(all, func(c comparison) bool { return c.Ratio == own.Ratio && c.Lo == own.Lo }) {
		all = append(all, own)
	}
	return quantityOf(of[3]).value(of[3], all...)
}

// sampled is the median of a row's values with its interval, or its only value. Words in braces make several rows:
// load={2000,saturated}.
func (m *maker) sampled(file, row, unit string) (v value) {
	before, rest, several := strings.Cut(row, "{")
	if !several {
		values := m.measured(unit, file)[row]
		if len(values) == 1 {
			return one(values[0])
		}
		s := m.summary(unit, file, row)
		return value{all: []float64{s.Center}, lo: s.Lo, hi: s.Hi}
	}
	words, behind, _ := strings.Cut(rest, "}")
	for word := range strings.SplitSeq(words, ",") {
		v.all = append(v.all, m.sampled(file, before+word+behind, unit).all...)
	}
	return v
}

// resting is a figure of memory at rest, by the state, such as "calls, TLS", the stack, the side and the unit.
func (m *maker) resting(dir, state, stack, side, unit string) idle.Figure {
	name, tls := strings.CutSuffix(state, ", TLS")
	r, err := idle.Read(m.file(dir))
	if err != nil {
		fail("%w", err)
	}
	for _, row := range r.Rows {
		f := row.Figures[unit]
		if row.State == idle.State(name) && row.TLS == tls && row.Stack == stack && row.Side == side && f.Mean > 0 {
			return f
		}
	}
	fail("%s has no %s of %s, %s, in %s", dir, unit, stack, side, state)
	return idle.Figure{}
}

// apart compares two medians. They are not paired: the machine may have changed between their runs. The interval is
// from the lower end of the one by the upper end of the other to the reverse, so it is wider than 95%.
func apart(x, y benchmath.Summary) value {
	return value{all: []float64{x.Center / y.Center}, lo: x.Lo / y.Hi, hi: x.Hi / y.Lo}
}

// where says where the runs of a folder were made, and links the folder, or the report of a run.
func (m *maker) where(dir string) string {
	words, link := m.origin(dir)
	return "[" + words + "](" + link + ")"
}

// origin is where without Markdown. A file of rows says it itself.
func (m *maker) origin(dir string) (words, link string) {
	if path.Ext(dir) == ".txt" {
		s := m.header(dir)
		return fmt.Sprintf("%s, %s, %s", machine(s), noted(s, "go"), noted(s, "date")), m.link(dir)
	}
	run, page := m.run(m.within(dir)[0]), ""
	if m.there(dir + "/report.md") {
		page = "/report.md"
	}
	return fmt.Sprintf("%s, %s, %s", machine(run), noted(run, "go"), noted(run, "date")), m.link(dir) + page
}
