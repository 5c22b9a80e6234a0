package pages

import (
	"cmp"
	"fmt"
	"go/token"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// place is where a cell of a table of answers is from, and how it's written: the settings of the table, of its row and
// of its column together, the later ones first. $name in a setting stands for another one.
//
//	in     folder of a run, or of its parts; or a file of rows
//	at     workload, or value of a sweep; or a row
//	stack  stack
//	of     quantity; or a unit
//	to     what it's divided by: the same at another workload, of the base alone; or another row
//	by     the same of another file of rows
//	as     ratio, percent, more (in µs), µs, spread or a number of places, in place of what the quantity has
//	over   runs: the range of all runs of the comparison
//	also   other names of the workload, which count in that range
type place map[string]string

var (
	ofPlaces = []string{"in", "at", "stack", "of", "to", "by", "as", "over", "also"}
	inPlace  = regexp.MustCompile(`\$(\w+)`)
)

// fill puts settings into others.
func (p place) fill() {
	for name, value := range p {
		p[name] = inPlace.ReplaceAllStringFunc(value, func(other string) string {
			if p[other[1:]] == "" {
				fail("%s=%s needs %s=", name, value, other[1:])
			}
			return p[other[1:]]
		})
	}
}

// axis is one row or one column.
type axis struct {
	label string
	place
}

// answersTable has a cell for each row and column of a marker: row "label" setting=value …, column "label" …. The first
// column has the labels of rows, of which " | " makes several cells.
func (m *maker) answersTable(words []string) string {
	common, axes := place{}, map[string][]axis{}
	known := slices.Clone(ofPlaces)
	for _, name := range inPlace.FindAllStringSubmatch(strings.Join(words, " "), -1) {
		known = append(known, name[1])
	}
	at := common
	for i := 0; i < len(words); i++ {
		switch name, value, is := setting(words[i]); {
		case is && !slices.Contains(known, name):
			fail("no setting is called %q", name)
		case is:
			at[name] = value
		case (name == "row" || name == "column") && i+1 < len(words):
			i++
			at = place{}
			axes[name] = append(axes[name], axis{words[i], at})
		default:
			fail("%q is neither row, column nor a setting such as stack=grpcprotobuf", words[i])
		}
	}
	rows, columns := axes["row"], axes["column"]
	if len(rows) == 0 || len(columns) < 2 {
		fail("a table of answers needs a row and two columns")
	}
	t := new(table.Table)
	for i, name := range strings.Split(columns[0].label, " | ") {
		t.Columns = append(t.Columns, table.Figures[axis](name, nil).Column)
		t.Columns[i].Words = true
	}
	for _, c := range columns[1:] {
		t.Columns = append(t.Columns, table.Figures[axis](c.label, nil).Column)
	}
	notes := cited{}
	for _, row := range rows {
		cells := strings.Split(row.label, " | ")
		for _, column := range columns[1:] {
			of := place{}
			for _, p := range []place{common, column.place, row.place} {
				for name, value := range p {
					of[name] = value
				}
			}
			if err := try(func() {
				of.fill()
				cells = append(cells, m.cell(t, of, &notes))
			}); err != nil {
				fail("row %q, column %q: %w", row.label, column.label, err)
			}
		}
		t.Add(cells...)
	}
	return t.Markdown() + "\n" + m.cite(notes)
}

// cited is what the caption of a table tells: the folders of its cells, and whether the machine was quiet.
type cited struct {
	folders  []string
	answers  report.Summary
	absolute bool // it has figures of one stack alone
}

// cell is what one place has, or a dash where nothing was measured or counted.
func (m *maker) cell(t *table.Table, of place, notes *cited) string {
	dir := m.path(of["in"])
	if !slices.Contains(notes.folders, dir) {
		notes.folders = append(notes.folders, dir)
	}
	if path.Ext(dir) == ".txt" {
		return m.rowCell(dir, of, notes)
	}
	q := quantityOf(of["of"])
	c := m.led(dir, of["at"], of["stack"])
	notes.answers.Base = c.of.Base
	notes.answers.Answers = append(notes.answers.Answers, c.Answer)
	switch {
	case of["to"] != "":
		if of["to"] == of["at"] {
			return "–"
		}
		other := m.led(dir, of["to"], of["stack"])
		gained := apart(bases(other), bases(c))
		return table.Sized(gained.all[0], gained.lo, gained.hi)
	case q.figure == nil:
		notes.absolute = true
		n := q.number(c)
		if n == 0 {
			return "–"
		}
		return as(of["as"], n, q.cell)
	case of["over"] != "" && of["over"] != "runs":
		fail("over=%s: a table has runs alone", of["over"])
	case of["over"] != "":
		return span(of["as"], q, m.alike(dir, of["at"], of["stack"], strings.Fields(of["also"])...))
	}
	return figure(t, of["as"], c, q.figure(c))
}

// rowCell is what a row of a file has, or its quotient by another row or file. The two aren't paired.
func (m *maker) rowCell(file string, of place, notes *cited) string {
	if m.measured(of["of"], file)[of["at"]] == nil {
		if len(m.measured("ns/op", file)[of["at"]]) == 0 {
			fail("%s has no row %s", file, of["at"])
		}
		return "–"
	}
	v := m.sampled(file, of["at"], of["of"])
	if of["to"] == "" && of["by"] == "" {
		if of["as"] == "spread" {
			return spread(v)
		}
		return as(of["as"], v.all[0], whole)
	}
	by := m.path(cmp.Or(of["by"], of["in"]))
	if !slices.Contains(notes.folders, by) {
		notes.folders = append(notes.folders, by)
	}
	other := m.sampled(by, cmp.Or(of["to"], of["at"]), of["of"])
	q := derived(token.QUO, v, other)
	f := verdict.Figure{Ratio: q.all[0], Lo: q.lo, Hi: q.hi, BaseNs: other.all[0]}
	if f.Verdict = f.Interval().Verdict(0); f.Verdict == verdict.Undecided && of["as"] == "" {
		return table.Sized(f.Ratio, f.Lo, f.Hi)
	}
	return figure(new(table.Table), of["as"], comparison{}, f)
}

// spread is a time of three digits with how far its interval reaches.
func spread(v value) string {
	s := benchmath.Summary{Center: v.all[0], Lo: v.lo, Hi: v.hi}
	for _, unit := range []struct {
		name string
		ns   float64
	}{{"ms", 1e6}, {"µs", 1e3}, {"ns", 1}} {
		if s.Center >= 0.9995*unit.ns {
			return fmt.Sprintf("%.3g %s ±%s", s.Center/unit.ns, unit.name, s.PctRangeString())
		}
	}
	return fmt.Sprintf("%.3g ns", s.Center)
}

// as writes a number.
func as(how string, n float64, usual func(float64) string) string {
	switch how {
	case "":
		return usual(n)
	case "µs":
		return table.Micros(n)
	case "ms": // of two or three digits
		return written(n/1e6, max(0, 1-int(math.Log10(n/1e6))))
	}
	return written(n, int(number(how)))
}

func whole(n float64) string { return written(n, 0) }

// figure writes a ratio: with its interval and, where it decides nothing, a word; alone; or as a difference.
func figure(t *table.Table, how string, c comparison, f verdict.Figure) string {
	switch {
	case !slices.Contains([]string{"", "ratio", "percent", "more"}, how):
		fail("as=%s: a ratio is written as ratio, percent or more, or with its interval", how)
	case f.Ratio == 0 || how == "ratio":
		return table.Known(f.Ratio, table.Ratio(f.Ratio))
	case (how == "percent" || how == "more") && !decides(f):
		return unclear
	case how == "percent":
		return signed(f.Ratio)
	case how == "more":
		return strings.Replace(fmt.Sprintf("%+.1f", f.BaseNs*(f.Ratio-1)/1000), "-", "−", 1)
	case !c.Kept():
		return t.Noted(table.Sized(f.Ratio, f.Lo, f.Hi)+" "+report.Says(f.Verdict), report.Because(f.Reason))
	case decides(f):
		return table.Sized(f.Ratio, f.Lo, f.Hi)
	}
	return table.Sized(f.Ratio, f.Lo, f.Hi) + " " + report.Says(f.Verdict)
}

// span is the range of a quantity over runs, with their number.
func span(how string, q quantity, all []comparison) string {
	if len(all) == 0 {
		return "–"
	}
	write, to := table.Ratio, "–"
	if how == "percent" {
		write, to = signed, " to "
	}
	var ratios []float64
	for _, c := range all {
		ratios = append(ratios, q.figure(c).Ratio)
	}
	least, most := write(slices.Min(ratios)), write(slices.Max(ratios))
	if least != most {
		least += to + most
	}
	return fmt.Sprintf("%s (%d)", least, len(all))
}

// cite says where the cells of a table were measured, and what may have changed their sizes.
func (m *maker) cite(notes cited) string {
	var all []string
	links := map[string][]string{}
	for _, dir := range notes.folders {
		words, link := m.origin(dir)
		if links[words] == nil {
			all = append(all, words)
		}
		links[words] = append(links[words], link)
	}
	var said []string
	for _, words := range all {
		if len(links[words]) == 1 {
			said = append(said, "["+words+"]("+links[words][0]+").")
			continue
		}
		for i, link := range links[words] {
			links[words][i] = fmt.Sprintf("[%d](%s)", i+1, link)
		}
		said = append(said, words+": runs "+strings.Join(links[words], ", ")+".")
	}
	if wiring := notes.answers.Wiring(); len(notes.answers.Stacks()) < 3 && wiring != "" {
		if rest, alone := strings.CutPrefix(wiring, "client"); alone {
			wiring = "Client" + rest
		}
		said = append(said, strings.TrimSpace(table.Wrap(wiring+".", 120)))
	}
	if hour := hour(notes.answers, notes.absolute); hour != "" {
		said = append(said, hour)
	}
	return strings.Join(said, "\n")
}
