package pages

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/explain/layers"
	"github.com/rpcbench/rpcbench/internal/idle"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
	"github.com/rpcbench/rpcbench/stacks"
	"github.com/rpcbench/rpcbench/study/codecs"
)

// tables are those that a template names, each of folders, files and words.
func (m *maker) tables() map[string]func(of []string) string {
	return map[string]func([]string) string{
		"workloads": m.workloadsTable, "answer": m.answerTable, "turn": m.turnTable, "agree": m.agreeTable,
		"connections": m.connectionsTable, "costs": m.costsTable,
		"grid": m.gridTable, "publics": m.publicsTable, "builds": m.buildsTable, "codec rows": m.codecRowsTable,
		"codec releases": m.codecReleasesTable, "codecs": m.codecsTable, "differences": m.differencesTable,
		"towers": m.towersTable, "settings": m.settingsTable, "short": m.shortTable, "cores": m.coresTable,
		"price": m.priceTable, "proxied": m.proxiedTable, "pools": m.poolsTable,
	}
}

// table makes a table.
func (m *maker) table(name string, of ...string) string {
	made := m.tables()[name]
	if made == nil {
		fail("no table is called %q", name)
	}
	return strings.TrimSpace(made(of))
}

type named = table.Of[string]

func text[T any](name string, cell func(T) string) table.Of[T]   { return table.Words(name, cell) }
func figure[T any](name string, cell func(T) string) table.Of[T] { return table.Figures(name, cell) }

// code is a name as Markdown's code.
func code(name string) string { return "`" + name + "`" }

// says is a word if a figure is neither less nor more, with a note where there is more to say, such as why it is
// undecided. There is no verdict if the recorded runs of the comparison differ.
func says(t *table.Table, a comparison, k kin) string {
	word, notes, differs := report.Says(a.Verdict), a.led().Notes(), k.differs()
	if a.Verdict == verdict.Less || a.Verdict == verdict.More {
		word = ""
	}
	switch {
	case differs != "":
		return t.Noted("differs", differs)
	case a.Verdict == verdict.Same || notes == nil:
		return word
	}
	return t.Noted(word, strings.Join(notes, "; "))
}

// sized is a ratio with its interval.
func sized(a comparison) string { return table.Sized(a.Ratio, a.Lo, a.Hi) }

// joined is a ratio, and a word if it is neither less nor more. Runs that differ have their range in place of a ratio.
func joined(t *table.Table, a comparison, k kin) string {
	ratio := sized(a)
	if k.differs() != "" {
		ratio = k.String()
	}
	return strings.TrimSpace(ratio + " " + strings.TrimSpace(says(t, a, k)))
}

// workloadsTable has all that is known of each workload, but columns that say nothing. The workloads behind a | are the
// same with other callers or without TLS, and only their records count in the range.
func (m *maker) workloadsTable(of []string) string {
	dir, t := of[0], new(table.Table)
	var all []comparison
	ranges := map[string]string{}
	for _, question := range of[1:] {
		works := strings.Split(question, "|")
		a := *m.led(dir, works[0], "grpcprotobuf")
		all, ranges[a.Workload] = append(all, a), m.among(dir, "grpcprotobuf", works...).String()
	}
	mixed := slices.ContainsFunc(all, func(a comparison) bool { return waits(a) != waits(all[0]) })
	ratio := figure("gRPC / JSON (95% CI)", decided)
	if !mixed {
		ratio = shows(map[bool]string{true: "time", false: "CPU"}[waits(all[0])], itself)
	}
	told, wired := "", ways(m.run(m.within(dir)[0]).Base, all)
	if len(wired) == 1 {
		told = wired[0]
	}
	apart := func(cell func(comparison) string) func(comparison) string {
		return func(a comparison) string { return map[bool]string{true: cell(a)}[told == ""] }
	}
	table.Fill(t, all,
		text("calls", does),
		text("processes×cores", apart(place)),
		text("connections, JSON/gRPC", apart(onConnections)),
		text("figure", func(a comparison) string { return map[bool]string{true: measured(a)}[mixed] }),
		shows("JSON", itself),
		ratio,
		figure("all runs", func(a comparison) string { return ranges[a.Workload] }),
		shows("p50", itself), shows("p99", itself), shows("calls", itself))
	return t.Filled().Markdown() + "\n" + m.caption(dir, told, true, all)
}

// answerTable is README's: calls at rates and saturated, of one wiring, which stands above. For each sweep it takes the
// folder, how the table calls its messages, and a workload for each row. Workloads behind a | are the same one under
// another name, and their records count in the range. A rate that was not kept has no row.
func (m *maker) answerTable(of []string) string {
	t := new(table.Table)
	var dirs, names []string
	var all []atRate
	for len(of) > 0 {
		if _, err := os.Stat(filepath.Join(m.root, of[0], "summary.json")); err == nil {
			dirs, names, of = append(dirs, of[0]), append(names, of[1]), of[2:]
			continue
		}
		if a := m.atRate(dirs[len(dirs)-1], names[len(names)-1], strings.Split(of[0], "|")); a.Kept() {
			all = append(all, a)
		}
		of = of[1:]
	}
	led := func(a atRate) comparison { return a.comparison }
	table.Fill(t, all,
		text("calls", func(a atRate) string { return a.calls }),
		shows("JSON", led), shows("CPU", led),
		figure("all runs", func(a atRate) string { return a.records.String() }),
		shows("p50", led), shows("p99", led), shows("calls", led))
	made := m.wired(dirs, names) + "\n\n" + t.Markdown()
	for i, dir := range dirs {
		if said := hour(m.run(dir), true); said != "" {
			made += "\n" + names[i] + ": " + said
		}
	}
	return made
}

// atRate is a row of a sweep over calls a second: by CPU, with the records of the same calls and connections.
type atRate struct {
	comparison
	calls   string
	records kin
}

func (m *maker) atRate(dir, messages string, works []string) (row atRate) {
	row.comparison = *m.led(dir, works[0], "grpcprotobuf")
	if !row.OfCPU {
		fail("%s has no CPU of %s", dir, works[0])
	}
	row.records = slices.DeleteFunc(m.among(dir, row.Stack, works...), func(r repeat) bool {
		return connections(r.Answer) != connections(row.Answer)
	})
	if row.Value == report.Saturated {
		row.calls = messages + ", saturated"
		return row
	}
	if !row.AtRate() {
		fail("%s: %s is at no rate", dir, works[0])
	}
	row.calls = messages + ", " + grouped(row.Rate) + " a second"
	return row
}

// connections are those of the base and of the stack, or none if they were not counted.
func connections(a report.Answer) (n [2]int64) {
	if a.BaseFacts != nil && a.Facts != nil {
		n = [2]int64{a.BaseFacts.Connections, a.Facts.Connections}
	}
	return n
}

// uncounted tells whether the connections of an answer are not known.
func uncounted(a report.Answer) bool { return connections(a) == [2]int64{} }

// wired says where sweeps were made, and with what around their calls, which they must have in common.
func (m *maker) wired(dirs, names []string) string {
	var made, links []string
	var wiring string
	for i, s := range m.runs(dirs) {
		if w := s.Wiring(); i > 0 && w != wiring {
			fail("%s has %s, and %s has %s", dirs[0], wiring, dirs[i], w)
		} else if wiring = w; slices.ContainsFunc(s.Answers, uncounted) {
			fail("%s does not tell its connections", dirs[i])
		}
		words, link := m.origin(dirs[i])
		made, links = append(made, words), append(links, "["+names[i]+"]("+link+")")
	}
	return strings.Join(slices.Compact(made), " and ") + ".\n" + wiring + ".\nRuns: " + strings.Join(links, ", ") + "."
}

func (m *maker) turnTable(of []string) string {
	dir, t := of[0], new(table.Table)
	var all []comparison
	for _, a := range m.run(dir).Of("grpcprotobuf") {
		all = append(all, comparisonOf(a.Timed()))
	}
	table.Fill(t, all,
		figure("calls a second", func(a comparison) string { return a.Value }),
		figure(heads["CPU"].head, func(a comparison) string {
			said := heads["CPU"].cell(a)
			if !a.Kept() {
				said = t.Noted(said, report.Because(a.CPU.Reason))
			}
			return said
		}),
		shows("switches of JSON", itself), shows("switches of gRPC", itself), shows("writes of gRPC", itself))
	return t.Markdown() + "\n" + m.source(dir)
}

// connectionsTable has a row for each folder and workload, by the connections that were counted. All rows but the last
// are of one folder.
func (m *maker) connectionsTable(of []string) string {
	t, all, other := new(table.Table), []comparison(nil), ""
	for i := 0; i+1 < len(of); i += 2 {
		all = append(all, *m.led(of[i], of[i+1], "grpcprotobuf"))
		if of[i] != of[0] {
			other = "The last row is of [" + path.Base(of[i]) + "](" + m.link(of[i]) + "/report.md)."
		}
	}
	table.Fill(t, all,
		figure("connections", func(a comparison) string {
			if a.BaseFacts.Connections != a.Facts.Connections {
				return fmt.Sprintf("JSON %d, gRPC %d", a.BaseFacts.Connections, a.Facts.Connections)
			}
			return fmt.Sprint(a.Facts.Connections)
		}),
		shows("CPU", itself), shows("p99", itself), shows("calls of JSON", itself), shows("calls of gRPC", itself))
	return t.Filled().Markdown() + "\n" + m.caption(of[0], other, true, all)
}

func (m *maker) agreeTable(of []string) string {
	dir, t := of[0], new(table.Table)
	outside := func(nth int) func([3]string) string {
		return func(row [3]string) string {
			file := fmt.Sprintf("%s/outside-%s-%d.txt", dir, row[1], nth)
			read := func(n int) float64 { return m.figure(file, n, "CPU gRPC/JSON") }
			return table.Sized(read(1), read(3), read(4))
		}
	}
	table.Fill(t, [][3]string{
		{"small, 5,000 a second", "small-5000", "apart.rate.5000"},
		{"small, saturated", "small-0", "apart.saturated"},
		{"structured, 5,000 a second", "structured-5000", "apart.message.flex.2kB.rate.5000"},
		{"structured, saturated", "structured-0", "apart.message.flex.2kB.saturated"},
	},
		text("CPU, gRPC / JSON (95% CI)", func(row [3]string) string { return row[0] }),
		figure("the other program, before", outside(1)),
		figure("rpcbench", func(row [3]string) string {
			message, _, _ := strings.Cut(row[1], "-")
			return sized(*m.led(dir+"/"+message, row[2], "grpcprotobuf"))
		}),
		figure("the other program, after", outside(2)))
	return t.Markdown()
}

// held is a state of memory at rest.
type held struct {
	state idle.State
	tls   bool
}

// figure finds that of a stack and a side, by its unit.
func (h held) figure(r idle.Result, stack, side, unit string) (f idle.Figure, there bool) {
	for _, row := range r.Rows {
		if row.State == h.state && row.TLS == h.tls && row.Stack == stack && row.Side == side {
			return row.Figures[unit], true
		}
	}
	return f, false
}

// rest reads what rpcbench idle has left.
func (m *maker) rest(dir string) idle.Result {
	r, err := idle.Read(filepath.Join(m.root, dir))
	if err != nil {
		fail("%w", err)
	}
	return r
}

// inKB is a figure of bytes in thousands of them.
func inKB(f idle.Figure) string { return fmt.Sprintf("%.1f", f.Mean/1000) }

// resting is a figure of memory at rest, by the state, such as "calls, TLS", the stack, the side and the unit.
func (m *maker) resting(dir, state, stack, side, unit string) idle.Figure {
	name, tls := strings.CutSuffix(state, ", TLS")
	f, there := held{idle.State(name), tls}.figure(m.rest(dir), stack, side, unit)
	if !there || f.Mean == 0 {
		fail("%s has no %s of %s, %s, in %s", dir, unit, stack, side, state)
	}
	return f
}

// rests is what a server's connection or call holds in memory, with JSON and with gRPC.
func (m *maker) rests(dir, state string) string {
	of := func(stack string) string {
		return inKB(m.resting(dir, state, stack, "server", "resident-B")) + " kB with " + report.Label(stack)
	}
	return of("httpjson") + " and " + of("grpcprotobuf")
}

func (m *maker) costsTable(of []string) string {
	dir, t := of[0], new(table.Table)
	fact := func(of func(*report.Counts) float64) func(comparison) string {
		return func(a comparison) string { return table.Size(of(a.Facts)) }
	}
	var all []comparison
	for _, s := range stacks.All() {
		if a := m.find(dir, "small", s.Name); a != nil && a.Facts != nil {
			all = append(all, *a)
		}
	}
	table.Fill(t, all,
		text("stack", func(a comparison) string { return code(a.Stack) }),
		text("CPU, stack / JSON (95% CI)", func(a comparison) string { return joined(t, a, m.kin(dir, a)) }),
		figure("sent, B", fact(func(f *report.Counts) float64 { return f.Sent })),
		figure("received, B", fact(func(f *report.Counts) float64 { return f.Received })),
		figure("allocations", fact(func(f *report.Counts) float64 { return f.Allocs })))
	return t.Markdown() + "\n" + m.caption(dir, how("httpjson", all), false, all)
}

// gridTable has the ratio of each stack at one workload.
func (m *maker) gridTable(of []string) string {
	dir, work, t := of[0], of[1], new(table.Table)
	var all []comparison
	for _, stack := range of[2:] {
		all = append(all, *m.asked(dir, work, stack))
	}
	table.Fill(t, all,
		text("stack", func(a comparison) string { return code(a.Stack) }),
		text(does(all[0]), func(a comparison) string { return joined(t, a, m.kin(dir, a)) }))
	base := m.run(m.within(dir)[0]).Base
	return t.Markdown() + "\nCompared with " + report.Label(base) + ": " + m.caption(dir, how(base, all), false, all)
}

func (m *maker) publicsTable(of []string) string {
	t, works := new(table.Table), m.runs(of)[0].Of("grpcprotobuf")
	body := func(i int) func(string) string {
		return func(dir string) string { b := m.run(dir).Call.Bodies[i]; return table.Size(b.Request + b.Reply) }
	}
	all := report.Summary{Base: m.run(of[0]).Base}
	for _, s := range m.runs(of) {
		all.Answers = append(all.Answers, s.Answers...)
	}
	columns := []named{
		text("method", func(dir string) string {
			return "[" + m.run(dir).Call.Method + "](" + m.link(dir) + "/report.md)"
		}),
		figure("JSON, B", body(0)), figure("protobuf, B", body(1)),
	}
	caption := "Ratios are gRPC's CPU divided by JSON's:\n"
	for _, w := range works {
		columns = append(columns, text(w.Does, func(dir string) string {
			a := m.led(dir, w.Workload, "grpcprotobuf")
			return joined(t, *a, m.kin(dir, *a))
		}))
		caption += "\n- " + wired(w)
	}
	return table.Fill(t, of, columns...).Markdown() + "\n" + caption + "\n\n" + m.where(of[0]) + ".\n" + hour(all, false)
}

// wired says between which processes the calls of an answer went, and over how many connections.
func wired(a report.Answer) string {
	processes := map[bool]string{true: "two processes", false: "one process"}[a.Apart]
	return fmt.Sprintf("*%s*: %s with GOMAXPROCS %d, connections of JSON and gRPC: %d and %d", a.Does, processes,
		a.GOMAXPROCS, a.BaseFacts.Connections, a.Facts.Connections)
}

// buildsTable has runs that compare builds. Their intervals hold for these builds.
func (m *maker) buildsTable(of []string) string {
	type built struct {
		base string
		comparison
	}
	var all []built
	var led []comparison
	captions := ""
	for _, dir := range of {
		run := m.run(dir)
		for _, a := range comparisonsOf(run.Led()) {
			all, led = append(all, built{report.Label(run.Base), a}), append(led, a)
		}
		captions += m.caption(dir, "", false, comparisonsOf(run.Led())) + "\n"
	}
	t := table.Fill(new(table.Table), all,
		text("calls", func(b built) string { return does(b.comparison) }),
		text("compared", func(b built) string { return report.Label(b.Stack) + " / " + b.base }),
		figure("ratio (95% CI)", func(b built) string { return decided(b.comparison) }))
	return t.Markdown() + "\n" + captions + how("", led) + "\nThe intervals are [of builds](" +
		m.link("docs/method.md") + "#layouts-and-builds), and may be too narrow."
}

func (m *maker) codecRowsTable(of []string) string {
	s, cores := m.environment(of[0])
	name := fmt.Sprintf("%s, %s on %s, %s", of[1], cores, machine(s), noted(s, "go"))
	if of[2] == "size" { // which is the same everywhere
		name = of[1] + ", " + noted(s, "go")
	}
	columns := []named{text(name, code)}
	for codec := range strings.FieldsSeq(of[4]) {
		columns = append(columns, figure(code(codec), func(message string) string {
			return m.spread(of[0], of[2], message, codec)
		}))
	}
	return table.Fill(new(table.Table), strings.Fields(of[3]), columns...).Markdown()
}

// codecReleasesTable divides what an op takes in one file of rows by what it takes in another.
func (m *maker) codecReleasesTable(of []string) string {
	columns := []named{text("message", code)}
	for codec := range strings.FieldsSeq(of[3]) {
		for _, op := range []string{"marshal", "unmarshal"} {
			columns = append(columns, figure(op+" "+code(codec), func(message string) string {
				return apart(m.codec(of[1], op, message, codec), m.codec(of[0], op, message, codec)).figure()
			}))
		}
	}
	return table.Fill(new(table.Table), strings.Fields(of[2]), columns...).Markdown() + "\n" + m.measuredAt(of[1]) +
		",\ndivided by\n" + m.measuredAt(of[0]) + "."
}

// losses are the kinds of values that do not come back bit-equal.
func losses[T ~string](all []T) string {
	if len(all) == 0 {
		return "–"
	}
	var names []string
	for _, loss := range all {
		names = append(names, string(loss))
	}
	return strings.Join(names, ", ")
}

func (m *maker) codecsTable([]string) string {
	return table.Fill(new(table.Table), codecs.All(),
		text("codec", func(c codecs.Row) string { return code(c.Name) }),
		text("library", func(c codecs.Row) string { return m.versioned(c.New().Traits().Library) }),
		text("invalid UTF-8 encoded, decoded", func(c codecs.Row) string {
			encodes, decodes := fmt.Sprint(c.New().Traits().InvalidUTF8), fmt.Sprint(c.Decodes)
			if encodes == decodes {
				return encodes
			}
			return encodes + ", " + decodes
		}),
		text("not bit-equal", func(c codecs.Row) string { return losses(c.New().Traits().Lossy) })).Markdown()
}

func (m *maker) differencesTable(of []string) string {
	columns := []named{text("layer", func(layer string) string { return layer })}
	there := map[string]bool{}
	for _, file := range of {
		d := m.difference(file)
		name := code(d.Stack) + " minus " + code(d.Base)
		if d.Workload != "small" {
			name += ", " + d.Workload
		}
		for layer := range d.Layers {
			there[layer] = true
		}
		columns = append(columns, figure(name, func(layer string) string { return cmp.Or(d.Layers[layer], "–") }))
	}
	all := slices.DeleteFunc(append(layers.Names(), "sum"), func(layer string) bool { return !there[layer] })
	return table.Fill(new(table.Table), all, columns...).Markdown()
}
