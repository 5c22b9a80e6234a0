// Package table has tables as values, which text, Markdown and HTML show.
package table

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"unicode"
)

// Table has rows of as many cells as it has columns. A row of one cell is a heading of the rows below it. A cell may
// hold any text. Notes stand below, each with its number.
type Table struct {
	Columns []Column
	Rows    [][]string
	Notes   []string
	Colour  bool // of text: classes have colours
}

// Column has a name, with its unit. Figures stand on the right, and words on the left.
type Column struct {
	Name  string
	Words bool
	Class bool // of HTML: the first word of a cell is its class, and its text may wrap
	Line  bool // of HTML alone: a cell has the points of a line
	Spare bool // of text: left out where there is no room
}

// New makes a table with columns of these names. The first ones, as many as words says, hold words.
func New(words int, names ...string) *Table {
	t := new(Table)
	for i, name := range names {
		t.Columns = append(t.Columns, Column{Name: name, Words: i < words})
	}
	return t
}

// Of is a column of a table with a row for each item: its name, and the cell of an item.
type Of[T any] struct {
	Column
	cell func(T) string
}

// Words is a column of text, and Figures is one of figures. The cells of Classes begin with their class. Those of Lines
// are the points of a line.
func Words[T any](name string, cell func(T) string) Of[T] {
	return Of[T]{Column{Name: name, Words: true}, cell}
}

func Classes[T any](name string, cell func(T) string) Of[T] {
	return Of[T]{Column{Name: name, Words: true, Class: true}, cell}
}

func Figures[T any](name string, cell func(T) string) Of[T] { return Of[T]{Column{Name: name}, cell} }

func Lines[T any](name string, cell func(T) string) Of[T] {
	return Of[T]{Column{Name: name, Words: true, Line: true}, cell}
}

// Fill adds columns to a table without any, and a row for each item. It returns the table.
func Fill[T any](t *Table, items []T, columns ...Of[T]) *Table {
	for _, c := range columns {
		t.Columns = append(t.Columns, c.Column)
	}
	for _, item := range items {
		var row []string
		for _, c := range columns {
			row = append(row, c.cell(item))
		}
		t.Add(row...)
	}
	return t
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Noted returns a cell's text with the numbers of its notes. Cells with the same note share its number.
func (t *Table) Noted(text string, notes ...string) string {
	for _, note := range notes {
		if !slices.Contains(t.Notes, note) {
			t.Notes = append(t.Notes, note)
		}
		text += fmt.Sprintf(" [%d]", slices.Index(t.Notes, note)+1)
	}
	return text
}

// Filled removes the columns that have no text in any row.
func (t *Table) Filled() *Table {
	for i := len(t.Columns) - 1; i > 0; i-- {
		if slices.ContainsFunc(t.Rows, func(row []string) bool { return len(row) > i && row[i] != "" }) {
			continue
		}
		t.Columns = slices.Delete(t.Columns, i, i+1)
		for j, row := range t.Rows {
			if len(row) > i {
				t.Rows[j] = slices.Delete(row, i, i+1)
			}
		}
	}
	return t
}

// shown are the columns that Markdown has, with the cells of a row, or with the names if row is nil.
func (t Table) shown(row []string, text func(any) string) (cells []string) {
	for i, c := range t.Columns {
		switch {
		case c.Line:
		case row == nil:
			cells = append(cells, text(c.Name))
		case len(row) == 1 && i == 0:
			cells = append(cells, "**"+text(row[0])+"**")
		case len(row) == 1:
			cells = append(cells, "")
		default:
			cells = append(cells, text(row[i]))
		}
	}
	return cells
}

// Markdown is the table as GitHub reads it.
func (t Table) Markdown() string {
	var b strings.Builder
	rule := ""
	for _, c := range t.Columns {
		if !c.Line {
			if c.Words {
				rule += "---|"
			} else {
				rule += "---:|"
			}
		}
	}
	for i, row := range append([][]string{nil}, t.Rows...) {
		b.WriteString("| " + strings.Join(t.shown(row, Cell), " | ") + " |\n")
		if i == 0 {
			b.WriteString("|" + rule + "\n")
		}
	}
	for i, note := range t.Notes {
		fmt.Fprintf(&b, "%s- [%d] %s.\n", strings.Repeat("\n", max(0, 1-i)), i+1, Cell(note))
	}
	return b.String()
}

// HTML is an element that scrolls where it is too wide for the page.
func (t Table) HTML() string {
	var b strings.Builder
	b.WriteString(`<div class="wide"><table>` + "\n<tr>")
	for i, c := range t.Columns {
		b.WriteString("<th" + class(i, c, "") + ">" + html.EscapeString(c.Name))
	}
	for _, row := range t.Rows {
		b.WriteString("</tr>\n<tr>")
		if len(row) == 1 {
			fmt.Fprintf(&b, `<th class="l" colspan="%d">%s`, len(t.Columns), html.EscapeString(row[0]))
			continue
		}
		for i, c := range t.Columns {
			text := html.EscapeString(row[i])
			if c.Line && text != "" {
				text = `<svg viewBox="-2 0 124 24"><polyline points="` + text + `"/></svg>`
			}
			b.WriteString("<td" + class(i, c, row[i]) + ">" + text)
		}
	}
	b.WriteString("</tr>\n</table></div>")
	for i, note := range t.Notes {
		fmt.Fprintf(&b, "\n<p class=\"note\">[%d] %s.</p>", i+1, html.EscapeString(note))
	}
	return b.String()
}

func class(i int, c Column, text string) string {
	switch word := strings.TrimFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }); {
	case i == 0 || !c.Words: // the first column is on the left
		return ""
	case c.Class && text != "":
		word = word[:strings.IndexFunc(word+" ", func(r rune) bool { return !unicode.IsLetter(r) })]
		return ` class="l w ` + word + `"`
	}
	return ` class="l"`
}

// Cell is text for a cell of Markdown, Line is text on a line of its own. Neither has a mark-up of its own.
func Cell(text any) string {
	return strings.NewReplacer("\\", "\\\\", "<", "&lt;", "|", "\\|").Replace(Line(text))
}

// Line has a space in place of each control character, and of those that no picture may have.
func Line(text any) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == 0xFFFE || r == 0xFFFF {
			return ' '
		}
		return r
	}, fmt.Sprint(text))
}
