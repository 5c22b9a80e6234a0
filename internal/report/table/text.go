package table

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Width is how many columns text has where no terminal says it.
const Width = 100

// least is how narrow the first column may become for the others, and spare how narrow it becomes only if no column can
// be left out for it.
const least, spare = 20, 30

// Text writes columns of text, two spaces apart, in at most so many columns of a terminal. Where they don't fit, spare
// columns go, then cells of a last column of words stand below their rows and the first column wraps, and then each row
// becomes a list. No figure is broken.
func (t Table) Text(w io.Writer, width int) error {
	var b strings.Builder
	headed := slices.ContainsFunc(t.Rows, func(row []string) bool { return len(row) == 1 })
	indent := 0
	if headed {
		indent = 2
	}
	columns, widths := t.fit(width, indent)
	rest := 0
	for _, n := range widths[1:] {
		rest += 2 + n
	}
	below := 0 // how wide a row may be whose last cell of words can stand below it
	if last := len(columns) - 1; last > 0 && t.Columns[columns[last]].Words && !t.Columns[columns[last]].Class {
		if widths[0]+rest > width {
			below, rest = width, rest-widths[last]
		}
	}
	names, rows := []string{}, t.Rows
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	if headed && len(rows[0]) == 1 {
		names[0], rows = rows[0][0], rows[1:]
	}
	if room := width - rest; room >= min(max(least, t.longest(indent)), widths[0]) {
		widths[0] = min(widths[0], room)
		t.row(&b, names, columns, widths, below, false)
		for _, row := range rows {
			t.row(&b, row, columns, widths, below, headed)
		}
	} else {
		if headed {
			rows = append([][]string{names[:1]}, rows...)
		}
		t.list(&b, rows, columns, width)
	}
	for i, note := range t.Notes {
		b.WriteString(Wrap(fmt.Sprintf("[%d] %s.", i+1, Line(note)), width))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// fit returns the columns that text has, and how wide each is, with cells of the first one indented. What is left of
// the width is the first one's.
func (t Table) fit(width, indent int) (columns, widths []int) {
	for _, spared := range []bool{true, false} {
		columns, widths = nil, nil
		rest := 0
		for i, c := range t.Columns {
			if c.Line || c.Spare && !spared {
				continue
			}
			n := utf8.RuneCountInString(c.Name)
			for at, row := range t.Rows {
				switch {
				case i == 0 && (len(row) > 1 || at == 0): // other headings have the whole line
					n = max(n, indent+utf8.RuneCountInString(row[0]))
				case i > 0 && len(row) > i:
					n = max(n, utf8.RuneCountInString(row[i]))
				}
			}
			if columns, widths = append(columns, i), append(widths, n); i > 0 {
				rest += 2 + n
			}
		}
		if width-rest >= min(widths[0], max(spare, t.longest(indent))) {
			break
		}
	}
	return columns, widths
}

// longest is how wide the longest word of the first column is where a cell wraps, since no word is broken.
func (t Table) longest(indent int) (n int) {
	for _, row := range t.Rows {
		if len(row) > 1 {
			for word := range strings.FieldsSeq(row[0]) {
				n = max(n, indent+2+utf8.RuneCountInString(word))
			}
		}
	}
	return n
}

// row writes one row, whose first cell may take several lines, and whose last one may stand below. Rows below a heading
// are indented.
func (t Table) row(b *strings.Builder, row []string, columns, widths []int, below int, headed bool) {
	indent, room := "", widths[0]
	switch {
	case len(row) == 1:
		room = Width
	case headed:
		indent = "  "
	}
	first := strings.Split(strings.TrimSuffix(wrap(indent+Line(row[0]), room, indent+"  "), "\n"), "\n")
	line := first[0]
	if len(row) > 1 {
		line += strings.Repeat(" ", widths[0]-utf8.RuneCountInString(line))
		for at, i := range columns[1:] {
			cell := Line(row[i])
			if below > 0 && at == len(columns)-2 && utf8.RuneCountInString(line+cell)+2 > below {
				text := strings.TrimSuffix(wrap("    "+cell, below, "    "), "\n")
				first = append(first, strings.Split(text, "\n")...)
				break
			}
			blank := strings.Repeat(" ", widths[at+1]-utf8.RuneCountInString(cell))
			if cell = t.coloured(i, cell); t.Columns[i].Words {
				line += "  " + cell + blank
			} else {
				line += "  " + blank + cell
			}
		}
	}
	for _, line := range append([]string{line}, first[1:]...) {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// list writes each row as its first cell, with the others below it and their names. A class needs none.
func (t Table) list(b *strings.Builder, rows [][]string, columns []int, width int) {
	for _, row := range rows {
		if len(row) == 1 {
			b.WriteString(Wrap(Line(row[0]), width))
			continue
		}
		b.WriteString(wrap("  "+Line(row[0]), width, "    "))
		line := ""
		for _, i := range columns[1:] {
			cell := Line(row[i])
			if !t.Columns[i].Class && cell != "" {
				cell = Line(t.Columns[i].Name) + ": " + cell
			}
			switch {
			case cell == "":
				continue
			case utf8.RuneCountInString(cell)+4 > width:
				if line != "" {
					line += "\n"
				}
				b.WriteString(line + wrap("    "+cell, width, "      "))
				line = ""
				continue
			case line == "":
				line = "    "
			case utf8.RuneCountInString(line)+2+utf8.RuneCountInString(cell) > width:
				b.WriteString(line + "\n")
				line = "    "
			default:
				line += "  "
			}
			line += t.coloured(i, cell)
		}
		if line != "" {
			b.WriteString(line + "\n")
		}
	}
}

// coloured is the cell of a column of classes in the colour of its class.
func (t Table) coloured(column int, cell string) string {
	class, _, _ := strings.Cut(cell, " ")
	colour := map[string]string{"less": "34", "more": "33", "same": "2", "undecided": "2"}[class]
	if !t.Colour || !t.Columns[column].Class || colour == "" {
		return cell
	}
	return "\x1b[" + colour + "m" + cell + "\x1b[0m"
}

// figure holds what belongs to a figure beside it.
var figure = strings.NewReplacer(" %", "\x00%", " µs", "\x00µs", " ms", "\x00ms", "(SE ", "(SE\x00")

// Wrap breaks text at spaces, but not within a figure, so that no line is wider unless a word is. Lines but the first
// are indented.
func Wrap(text string, width int) string { return wrap(text, width, "  ") }

func wrap(text string, width int, indent string) string {
	var b strings.Builder
	line := text[:len(text)-len(strings.TrimLeft(text, " "))]
	begun := false
	for _, word := range strings.Fields(figure.Replace(text)) {
		word = strings.ReplaceAll(word, "\x00", " ")
		if begun && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			b.WriteString(line + "\n")
			line, begun = indent, false
		}
		if begun {
			line += " "
		}
		line, begun = line+word, true
	}
	return b.String() + line + "\n"
}
