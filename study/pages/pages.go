// Package pages keeps the figures of README.md, docs and study those of the records.
//
// Pages are written by hand. A table of figures, a picture and a terminal's output are blocks in a page, between
// <!-- table … --> and <!-- end -->, which [Make] makes anew. A figure in a sentence has a line in the page's ledger,
// study/figures/PAGE.txt: the phrase as it stands in the page, and where its figure comes from. Make writes the figure
// that the records have, if the phrase still says the truth, and else refuses. .github/figures.md says what blocks and
// ledgers take.
package pages

//go:generate go run ./write

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report"
)

// maker makes the files of a repository.
type maker struct {
	root      string                          // the repository's folder
	made      map[string]string               // the files, by their paths from root
	page      string                          // the page's path
	summaries map[string]report.Summary       // what was read, by folder
	rows      map[string]map[string][]float64 // what was read, by file and unit
	results   string                          // the folder of all recorded runs, from root
	kins      map[kind][]comparison           // the answers there, once read
	lead      lead                            // the folder that leads
	shown     []shown                         // what the page shows
	counted   map[string]int                  // claims by their verdict, once judged
	stale     []error                         // figures that the records have otherwise
}

func in(root string) *maker {
	return &maker{root: root, made: map[string]string{}, summaries: map[string]report.Summary{},
		rows: map[string]map[string][]float64{}, results: "study/results"}
}

// Made is what the records make of a repository.
type Made struct {
	Files    map[string]string // pages, ledgers and pictures as they should be, by paths from the root
	Stale    []error           // figures that Files has otherwise than the pages, each with the page and its line
	Problems []error           // what a person has to mend, each with a file and its line
}

// Make makes all pages anew.
func Make(root string) Made {
	m := in(root)
	if err := try(m.readLead); err != nil {
		return Made{Problems: []error{err}}
	}
	var problems []error
	for _, name := range m.pages() {
		problems = append(problems, m.make(name)...)
	}
	return Made{m.made, m.stale, append(problems, m.pageless()...)}
}

// ofPages are the patterns of their paths.
var ofPages = []string{"README.md", "docs/*.md", "study/*.md"}

// pages are the paths of all pages.
func (m *maker) pages() (names []string) {
	for _, pattern := range ofPages {
		found, _ := filepath.Glob(filepath.Join(m.root, pattern)) // whose patterns are right
		for _, file := range found {
			name, _ := filepath.Rel(m.root, file)
			names = append(names, filepath.ToSlash(name))
		}
	}
	return names
}

// ledgerOf is the path of a page's ledger.
func ledgerOf(page string) string { return "study/figures/" + strings.TrimSuffix(page, ".md") + ".txt" }

// settings has what no record has on any page, and claimed the figures of study/claims.md.
const (
	settings = "study/figures/settings.txt"
	claimed  = "study/figures/claimed.txt"
	leader   = "study/figures/lead.txt"
)

// pageless are the ledgers of pages that aren't there.
func (m *maker) pageless() (problems []error) {
	known := []string{settings, claimed, leader}
	for _, page := range m.pages() {
		known = append(known, ledgerOf(page))
	}
	for _, pattern := range []string{"*", "*/*"} {
		found, _ := filepath.Glob(filepath.Join(m.root, "study/figures", pattern))
		for _, file := range found {
			name, _ := filepath.Rel(m.root, file)
			if name = filepath.ToSlash(name); path.Ext(name) == ".txt" && !slices.Contains(known, name) {
				problems = append(problems, fmt.Errorf("%s:1: there is no page of this name", name))
			}
		}
	}
	return problems
}

// make makes a page with its ledger.
func (m *maker) make(name string) (problems []error) {
	m.page, m.shown = name, nil
	text, err := m.blocks(m.read(name))
	if err != nil {
		return []error{err}
	}
	l, problems := m.ledger(ledgerOf(name))
	common, more := m.ledger(settings)
	problems = append(problems, more...)
	p := page{name: name, text: text}
	for i := range l.lines {
		if err := m.keep(&p, &l, i); err != nil {
			problems = append(problems, err)
		}
	}
	for _, line := range common.lines {
		p.cover(line)
	}
	problems = append(problems, p.escaped()...)
	if name == "README.md" {
		if err := m.misled(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", leader, err))
		}
	}
	m.made[name] = p.text
	if l.text != nil {
		m.made[ledgerOf(name)] = strings.Join(l.text, "\n") + "\n"
	}
	return problems
}

// Write writes all files and says what it changes, or writes none if a person has to mend something.
func Write(root string, said io.Writer) error {
	if err := Newest(root); err != nil {
		return err
	}
	made := Make(root)
	if made.Problems != nil {
		return errors.Join(made.Problems...)
	}
	for _, stale := range made.Stale {
		fmt.Fprintln(said, stale)
	}
	for name, text := range made.Files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Newest fails unless this program is built by the last release of .ci/releases. Other releases lack stacks and codecs
// that the pages list.
func Newest(root string) error {
	data, err := os.ReadFile(filepath.Join(root, ".ci", "releases"))
	if err != nil {
		return err
	}
	releases := strings.Fields(string(data))
	if newest := releases[len(releases)-1]; runtime.Version() != newest {
		return fmt.Errorf("pages are made with %s, and this is %s: set GOTOOLCHAIN=%[1]s", newest, runtime.Version())
	}
	return nil
}

// failure is what fail panics with, and try returns.
type failure struct{ error }

// fail ends what try calls.
func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// try returns what a function fails with.
func try(do func()) (err error) {
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case failure:
			err = failed.error
		default:
			panic(failed)
		}
	}()
	do()
	return nil
}

// read returns the text of a file.
func (m *maker) read(file string) string {
	data, err := os.ReadFile(filepath.Join(m.root, file))
	if err != nil {
		fail("%w", err)
	}
	return string(data)
}

// path is the path from the root of what a block or a ledger names: below the folder that leads, below the results if
// it begins with a day, or as it stands.
func (m *maker) path(name string) string {
	switch first, rest, _ := strings.Cut(name, "/"); {
	case first == "lead":
		return path.Join(m.results, m.lead.folder, rest)
	case dated.MatchString(name):
		return path.Join(m.results, name)
	}
	return name
}

// link is the path from the page to a file or folder.
func (m *maker) link(file string) string {
	link, err := filepath.Rel(path.Dir(m.page), file)
	if err != nil {
		fail("%w", err)
	}
	return filepath.ToSlash(link)
}
