package pages

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report"
)

var (
	marker = regexp.MustCompile(`(?s)<!-- (table|picture|terminal|printed)\b(.*?)-->\n`)
	ending = "<!-- end -->"
	words  = regexp.MustCompile(`[a-z]+="[^"]*"|"[^"]*"|\S+`)
)

// block is what stands between two markers.
type block struct {
	kind string   // table, picture, terminal or printed
	name string   // of a table
	args []string // a word each; in quotes it may have spaces
	body string   // as it stands
}

// blocks makes the blocks of a text anew.
func (m *maker) blocks(text string) (string, error) {
	var made strings.Builder
	at := 0 // what is made so far
	line := func(i int) int { return 1 + strings.Count(text[:i], "\n") }
	for {
		found := marker.FindStringSubmatchIndex(text[at:])
		stray := strings.Index(text[at:], ending)
		if stray >= 0 && (found == nil || stray < found[0]) {
			return "", fmt.Errorf("%s:%d: an end without a block", m.page, line(at+stray))
		} else if found == nil {
			break
		}
		begin, body := at+found[0], at+found[1]
		end, next := strings.Index(text[body:], ending), marker.FindStringIndex(text[body:])
		if end < 0 || next != nil && next[0] < end {
			return "", fmt.Errorf("%s:%d: a block without %s", m.page, line(begin), ending)
		}
		b := block{kind: text[at+found[2] : at+found[3]], args: split(text[at+found[4] : at+found[5]]),
			body: text[body : body+end]}
		var anew string
		if err := try(func() { anew = m.block(b) }); err != nil {
			return "", fmt.Errorf("%s:%d: %w", m.page, line(begin), err)
		}
		made.WriteString(text[at:body] + strings.TrimSuffix(anew, "\n") + "\n" + ending)
		at = body + end + len(ending)
	}
	return made.String() + text[at:], nil
}

// split are the words of a marker, without quotes.
func split(text string) (all []string) {
	for _, word := range words.FindAllString(text, -1) {
		all = append(all, strings.ReplaceAll(word, `"`, ""))
	}
	return all
}

// block makes what stands in a block.
func (m *maker) block(b block) string {
	need := func(n int, what string) {
		if len(b.args) < n {
			fail("%s needs %s", b.kind, what)
		}
	}
	switch b.kind {
	case "picture":
		need(3, "a file, and of each run its folder and how the picture calls it")
		return m.picture(b)
	case "terminal":
		need(1, "the folder of a run")
		return m.terminal(m.path(b.args[0]))
	case "printed":
		need(2, "a file of go test, and names of benchmarks")
		return m.printed(m.path(b.args[0]), b.args[1:]...)
	}
	need(1, "the name of a table")
	b.name, b.args = b.args[0], b.args[1:]
	return m.table(b)
}

// picture draws runs of all workloads, or sweeps over the same thing: of each a folder, and how the picture calls it.
// The page itself says how it shows the picture.
func (m *maker) picture(b block) string {
	file, named := b.args[0], b.args[1:]
	if !strings.Contains(b.body, m.link(file)) {
		fail("the page doesn't show %s here", file)
	}
	var runs []report.Machine
	for i := 0; i+1 < len(named); i += 2 {
		s := m.whole(m.path(named[i]))
		if len(runs) > 0 && s.Over != runs[0].Over {
			fail("%s is over %q, and %s over %q", named[0], runs[0].Over, named[i], s.Over)
		}
		runs = append(runs, report.Machine{Name: named[i+1], Summary: s})
	}
	var svg bytes.Buffer
	if err := report.Draw(runs...).SVG(&svg); err != nil {
		fail("%w", err)
	}
	m.made[file] = svg.String()
	return b.body
}

// terminal is what rpcbench run printed of a run, on a terminal of 100 columns.
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

// setting is a word such as at=2000.
func setting(word string) (name, value string, is bool) {
	name, value, is = strings.Cut(word, "=")
	return name, value, is && name != ""
}

// number is what a word says.
func number(word string) float64 {
	n, err := strconv.ParseFloat(strings.ReplaceAll(word, ",", ""), 64)
	if err != nil {
		fail("%q is no number", word)
	}
	return n
}
