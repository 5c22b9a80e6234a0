package pages

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
		"answers": {2, m.answersTable}, "codecs": {0, m.codecsTable},
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

// code is a name as Markdown's code.
func code(name string) string { return "`" + name + "`" }

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
