package pages

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/explain/layers"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
	"github.com/rpcbench/rpcbench/study/codecs"
)

// tables are those that a block may name, by what they take, and how many words at least.
func (m *maker) tables() map[string]struct {
	words int
	of    func(words []string) string
} {
	type made = struct {
		words int
		of    func(words []string) string
	}
	return map[string]made{
		"answers": {2, m.answersTable}, "codec-rows": {5, m.codecRowsTable}, "codec-releases": {4, m.codecReleasesTable},
		"codecs": {0, m.codecsTable}, "differences": {1, m.differencesTable}, "towers": {3, m.towersTable},
		"price": {1, m.priceTable},
	}
}

// table makes a table anew. That of claims has columns of its own, which a person writes.
func (m *maker) table(b block) string {
	if b.name == "claims" {
		return m.claimsTable(b.body)
	}
	t, known := m.tables()[b.name]
	if !known {
		fail("no table is called %q: there are claims, %s", b.name, strings.Join(slices.Sorted(maps.Keys(m.tables())), ", "))
	}
	if len(b.args) < t.words {
		fail("table %s takes at least %d words", b.name, t.words)
	}
	return strings.TrimSpace(t.of(b.args))
}

type column = table.Of[string]

// code is a name as Markdown's code.
func code(name string) string { return "`" + name + "`" }

func (m *maker) codecRowsTable(of []string) string {
	s, cores := m.environment(m.path(of[0]))
	name := fmt.Sprintf("%s, %s on %s, %s", of[1], cores, machine(s), noted(s, "go"))
	if of[2] == "size" { // which is the same everywhere
		name = of[1] + ", " + noted(s, "go")
	}
	columns := []column{table.Words(name, code)}
	for codec := range strings.FieldsSeq(of[4]) {
		columns = append(columns, table.Figures(code(codec), func(message string) string {
			return m.spread(m.path(of[0]), of[2], message, codec)
		}))
	}
	return table.Fill(new(table.Table), strings.Fields(of[3]), columns...).Markdown()
}

// codecReleasesTable divides what an op takes in one file of rows by what it takes in another.
func (m *maker) codecReleasesTable(of []string) string {
	before, now := m.path(of[0]), m.path(of[1])
	columns := []column{table.Words("message", code)}
	for codec := range strings.FieldsSeq(of[3]) {
		for _, op := range []string{"marshal", "unmarshal"} {
			columns = append(columns, table.Figures(op+" "+code(codec), func(message string) string {
				return apart(m.codec(now, op, message, codec), m.codec(before, op, message, codec)).String()
			}))
		}
	}
	return table.Fill(new(table.Table), strings.Fields(of[2]), columns...).Markdown() + "\n" + m.measuredAt(now) +
		",\ndivided by\n" + m.measuredAt(before) + "."
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
		table.Words("codec", func(c codecs.Row) string { return code(c.Name) }),
		table.Words("library", func(c codecs.Row) string { return m.versioned(c.New().Traits().Library) }),
		table.Words("invalid UTF-8 encoded, decoded", func(c codecs.Row) string {
			encodes, decodes := fmt.Sprint(c.New().Traits().InvalidUTF8), fmt.Sprint(c.Decodes)
			if encodes == decodes {
				return encodes
			}
			return encodes + ", " + decodes
		}),
		table.Words("not bit-equal", func(c codecs.Row) string { return losses(c.New().Traits().Lossy) })).Markdown()
}

func (m *maker) differencesTable(of []string) string {
	columns := []column{table.Words("layer", func(layer string) string { return layer })}
	there := map[string]bool{}
	for _, file := range of {
		d := m.difference(m.path(file))
		name := code(d.Stack) + " minus " + code(d.Base)
		if d.Workload != "small" {
			name += ", " + d.Workload
		}
		for layer := range d.Layers {
			there[layer] = true
		}
		columns = append(columns, table.Figures(name, func(layer string) string { return cmp.Or(d.Layers[layer], "–") }))
	}
	all := slices.DeleteFunc(append(layers.Names(), "sum"), func(layer string) bool { return !there[layer] })
	return table.Fill(new(table.Table), all, columns...).Markdown()
}

// hour is what a report says of a machine that was not quiet, without the advice that docs/limits.md gives: of absolute
// figures, and of ratios of which one is undecided.
func hour(s report.Summary, absolute bool) string {
	said := s.Unrest()
	if said == "" || !absolute && !slices.ContainsFunc(s.Led(), undecided) {
		return ""
	}
	if rest, others := strings.CutPrefix(said, "other"); others { // else the name of the base begins it
		said = "Other" + rest
	}
	return said + "."
}

func undecided(l report.Led) bool { return l.Figure.Verdict == verdict.Undecided }

// rowProcs finds the GOMAXPROCS of a file's first row.
var rowProcs = regexp.MustCompile(`(?m)^Benchmark\S*?(?:-(\d+))?\s`)

// environment is what a file of rows says of where they were measured, and their GOMAXPROCS.
func (m *maker) environment(file string) (s report.Summary, cores string) {
	procs := rowProcs.FindStringSubmatch(m.read(file))
	if procs == nil {
		fail("%s has no row", file)
	}
	if s = m.header(file); s.Environment == nil {
		fail("%s does not say where it was measured", file)
	}
	return s, "GOMAXPROCS " + cmp.Or(procs[1], "1")
}

// measuredAt says where and when the rows of a file were measured, and links it.
func (m *maker) measuredAt(file string) string {
	s, cores := m.environment(file)
	return fmt.Sprintf("%s on [%s, %s, %s](%s)", cores, machine(s), noted(s, "go"), noted(s, "date"), m.link(file))
}
