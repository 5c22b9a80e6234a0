// Package pages keeps the figures of README.md and docs true. Sentences are written in the pages. Tables stand between
// markers, and are made of files of results:
//
//	<!-- begin NAME from FILE… as MACHINE, MACHINE -->
//	<!-- end NAME -->
//
// "as" names the machines of tables that compare some. A picture is drawn of the runs and machines of such a table, and
// stands below a comment:
//
//	<!-- picture FILE of NAME -->
//
// A sentence with a figure is followed by a comment that names the figure's place: a line of a file, found by a part of
// its text, below another line if there is a ">". The line and the sentence must have the figures in this order.
//
//	<!-- from FILE: a small call, one core > JSON: 32.9 -->
//
// A block of text that shows lines of a file follows a comment that names the file:
//
//	<!-- from FILE -->
//
// FILE is a path from the root of the repository. go test ./internal/pages -run TestPages -update writes the tables
// and the pictures.
package pages

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/workload"
)

// block is the place of one table.
type block struct {
	root     string   // the repository's folder
	from     []string // the files and folders that the table is made of
	machines []string // the words for the machines of the runs, in their order
	up       string   // from the page's folder to the root: "" or "../"
	page     string   // the text of the page
	old      string   // what stands there now; some tables keep cells of it
	err      error    // the first one of making the table
}

// tables make the text between markers, of at least so many files and machines, by the name in the marker.
var tables = map[string]struct {
	files, machines int
	make            func(*block) string
}{
	"workloads":   {2, 2, workloads},
	"main stacks": {1, 0, mainStacks},
	"costs":       {2, 2, costs},
	"pairs":       {1, 1, pairs},
	"builds":      {1, 0, builds},
	"cores":       {1, 0, grid("cores", grpc, "httpjsoniter")},
	"asked":       {1, 0, grid("more")},
	"publics":     {1, 0, publics},
	"files":       {1, 0, grid("files", grpc)},
	"stacks":      {0, 0, stackList},
	"codecs":      {0, 0, codecList},
	"codec times": {1, 0, codecTimes("codecs", shownMessages, timedCodecs)},
	"sonic":       {1, 0, codecTimes("sonic", []string{"user", "newsfeed"}, askedCodecs)},
	"codec sizes": {1, 0, codecSizes},
	"messages":    {0, 0, messageList},
	"claims":      {1, 0, verdicts},
	"readings":    {1, 0, readings},
	"differences": {1, 0, differences},
	"file":        {1, 0, func(b *block) string { return b.read(b.from[0]) }},
}

var begin = regexp.MustCompile(`(?m)^<!-- begin ([a-z ]+?)(?: from (.+?))?(?: as (.+))? -->\n`)

// Fill returns the text of a page with its tables made anew of the files of root.
func Fill(root, path, text string) (string, error) {
	var filled strings.Builder
	page := text
	for {
		at := begin.FindStringSubmatchIndex(text)
		if at == nil {
			filled.WriteString(text)
			return filled.String(), nil
		}
		m := begin.FindStringSubmatch(text)
		name, end := m[1], "<!-- end "+m[1]+" -->"
		old, rest, found := strings.Cut(text[at[1]:], end)
		table, known := tables[name]
		from, machines := places(m)
		if !found || !known || len(from) < table.files || len(machines) != table.machines {
			return "", fmt.Errorf("%s: %q names no table, or lacks files, machines or an end", path, strings.TrimSpace(m[0]))
		}
		b := &block{root: root, from: from, machines: machines, page: page, old: old,
			up: strings.Repeat("../", strings.Count(path, "/"))}
		made := table.make(b)
		if b.err != nil {
			return "", fmt.Errorf("%s: %s: %w", path, name, b.err)
		}
		filled.WriteString(text[:at[1]] + made + end)
		text = rest
	}
}

// places are the files and the machines that a match of begin names.
func places(m []string) (from, machines []string) {
	if m[3] != "" {
		machines = strings.Split(m[3], ", ")
	}
	return strings.Fields(m[2]), machines
}

// fail keeps the first error.
func (b *block) fail(format string, args ...any) { b.err = cmp.Or(b.err, fmt.Errorf(format, args...)) }

func (b *block) read(path string) string {
	data, err := os.ReadFile(filepath.Join(b.root, path))
	b.err = cmp.Or(b.err, err)
	return string(data)
}

// run reads the summary of a run.
func (b *block) run(dir string) report.Summary {
	s, err := report.Read(filepath.Join(b.root, dir))
	b.err = cmp.Or(b.err, err)
	return s
}

// answer returns what a run found of a stack at a workload.
func (b *block) answer(dir, work, stack string) report.Answer {
	for _, a := range b.run(dir).Answers {
		if a.Workload == work && a.Stack == stack && a.Ratio > 0 && a.Facts != nil && a.BaseFacts != nil {
			return a
		}
	}
	b.fail("%s has not measured %s at %s", dir, stack, work)
	return report.Answer{Facts: new(workload.Facts), BaseFacts: new(workload.Facts)}
}

var (
	cited    = regexp.MustCompile(`<!-- from (\S+): (.+): (.+?) -->`)
	shown    = regexp.MustCompile("<!-- from (\\S+) -->\n```text\n((?s:.*?))```")
	comment  = regexp.MustCompile(`(?s)<!--.*?-->`)
	blocks   = regexp.MustCompile("(?ms)^<!-- begin .*?^<!-- end .*?-->|^```.*?^```")
	spread   = regexp.MustCompile(`\d \(\d[\d.]*(?:–| to )\d[\d.]*\)|±\s?\d`)
	tableRow = regexp.MustCompile(`(?m)^\|.*$`)
	part     = regexp.MustCompile(`\n\s*\n|(?m)^\s*(?:[-*]|\d+\.) `)
)

// Check compares the figures of a page's sentences, and the lines that it shows, with the files that they name. A
// sentence with an interval must name a file.
func Check(root, path, text string) error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf(path+": "+format, args...))
	}
	for _, m := range shown.FindAllStringSubmatch(text, -1) {
		raw, err := os.ReadFile(filepath.Join(root, m[1]))
		if err != nil {
			fail("%w", err)
		}
		for line := range strings.Lines(m[2]) {
			if !strings.Contains(string(raw), strings.TrimSuffix(line, "\n")) {
				fail("%s lacks the line %q", m[1], line)
			}
		}
	}
	if n := strings.Count(text, "<!-- from "); n != len(shown.FindAllString(text, -1))+len(cited.FindAllString(text, -1)) {
		fail("a comment \"from\" is neither above a block of text nor cites a figure")
	}
	for _, sentence := range part.Split(blocks.ReplaceAllString(text, "\n\n"), -1) {
		prose := comment.ReplaceAllString(sentence, "")
		cites := cited.FindAllStringSubmatch(sentence, -1)
		for _, m := range cites {
			raw, err := os.ReadFile(filepath.Join(root, m[1]))
			if err != nil {
				fail("%w", err)
			} else if line := find(comment.ReplaceAllString(string(raw), ""), m[2]); line == "" {
				fail("%s has no line of %s", m[1], m[2])
			} else if figures := number.FindAllString(m[3], -1); !inOrder(line, figures) {
				fail("%s: the line of %q has not %q in this order: %s", m[1], m[2], figures, line)
			} else if !inOrder(prose, figures) {
				fail("the sentence has not %q of %s in this order: %s", figures, m[1], strings.TrimSpace(prose))
			}
		}
		if figure := spread.FindString(tableRow.ReplaceAllString(prose, "")); figure != "" && len(cites) == 0 {
			fail("a figure names no file: %q in: %s", figure, strings.TrimSpace(prose))
		}
	}
	return errors.Join(errs...)
}

// find returns the first line that begins with the last part of place, or else contains that, below lines of the parts
// before.
func find(text, place string) string {
	for _, part := range strings.Split(place, " > ") {
		_, rest, found := strings.Cut("\n"+text, "\n"+part)
		if !found {
			if _, rest, found = strings.Cut(text, part); !found {
				return ""
			}
		}
		text = part + rest
	}
	line, _, _ := strings.Cut(text, "\n")
	return line
}
