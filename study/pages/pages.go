// Package pages makes README.md, the pages of docs and of the study that have figures, tables or a picture of results,
// and that picture.
// Each page has a template in the folder templates, in the language of text/template. A template asks for a figure by
// its place: a run, a workload, a stack and what of it, or a line of a file. New results are another folder in the
// template. A template that asks for what is not there fails, and no file is written.
//
// The functions of a template are those of maker.functions. Folders and files are paths from the repository's root. A
// folder is that of a run, or one that study/measure.sh filled with runs.
package pages

//go:generate go run ./write

import (
	"bytes"
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"text/template"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/report/table"
)

// maker makes the files of a repository.
type maker struct {
	root      string                          // the repository's folder
	made      map[string][]byte               // the files, by their paths from root
	folder    string                          // the page's, from root
	summaries map[string]report.Summary       // what was read, by folder
	rows      map[string]map[string][]float64 // what was read, by file and unit
	results   string                          // the folder of all recorded runs, from root
	kins      map[kind]kin                    // the runs there, once read
	leading   leading                         // what the page shows by a rule, if it asks
}

func in(root string) *maker {
	return &maker{root: root, made: map[string][]byte{}, summaries: map[string]report.Summary{},
		rows: map[string]map[string][]float64{}, results: "study/results"}
}

// Make returns what the templates of a repository make, by paths from its root.
func Make(root string) (map[string][]byte, error) {
	m := in(root)
	templates := os.DirFS(filepath.Join(root, "study", "pages", "templates"))
	err := fs.WalkDir(templates, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(templates, name)
		if err != nil {
			return err
		}
		return m.page(name, string(text))
	})
	return m.made, err
}

// page makes the page of a template such as docs/stacks.md.tmpl.
func (m *maker) page(name, text string) error {
	m.folder, m.leading = path.Dir(name), leading{}
	page, err := template.New(name).Funcs(m.functions()).Parse(text)
	if err != nil {
		return err
	}
	var made bytes.Buffer
	if err := page.Execute(&made, nil); err != nil {
		return err
	}
	if m.leading.machine != "" {
		if err := m.misled(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	m.made[strings.TrimSuffix(name, ".tmpl")] = made.Bytes()
	return nil
}

// Write writes all files, or none if one of them can't be made.
func Write(root string) error {
	if err := Newest(root); err != nil {
		return err
	}
	made, err := Make(root)
	if err != nil {
		return err
	}
	for name, data := range made {
		if err := os.WriteFile(filepath.Join(root, name), data, 0o644); err != nil {
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

// functions are those of all templates.
func (m *maker) functions() template.FuncMap {
	return template.FuncMap{
		// Figures of runs and files, and how to write them, beside printf.
		"answer": m.answer, "led": m.led, "quotient": quotient, "figure": m.figure, "row": m.row,
		"interval": m.interval, "samples": m.samples, "saves": m.saves, "resting": m.resting, "kB": inKB, "codec": m.median,
		"difference": m.difference, "told": told, "predicate": predicate, "unclear": unclear, "change": change,
		"short": short, "saved": saved, "ci": ci,
		"signed": func(a *comparison, name string) string { return signed(*a, name) },
		"ratio":  ratio, "times": times, "micro": micro, "servers": servers, "rests": m.rests, "kilo": kilo,
		"grouped": grouped,
		"passing": m.passing, "turns": m.turns, "again": m.again, "more": more,
		"percent": table.Percent, "spans": m.spans, "over": func(a, b float64) float64 { return a / b },
		"sum":    func(a, b float64) float64 { return a + b },
		"center": func(file, row, unit string) float64 { return m.summary(unit, file, row).Center },

		// Tables, and a picture.
		"table": m.table, "directions": m.directions, "claims": m.claims,
		"bears": bears, "about": about, "above": above, "below": below, "between": between, "nothing": nothing,
		"picture": m.picture,
		"run":     m.whole, "release": m.release, "kin": m.kin, "among": m.among, "alike": m.alike, "served": m.calls,
		"each": m.each, "bodies": m.bodies, "terminal": m.terminal, "printed": m.printed,
		"leads": m.leads, "varied": m.varied, "link": m.link, "where": m.where, "source": m.source,
	}
}

// fail ends a template's function. Package template returns what a function panics with as an error that names the
// template's file and line.
func fail(format string, args ...any) { panic(fmt.Errorf(format, args...)) }

// read returns the text of a file, without the end of its last line.
func (m *maker) read(file string) string {
	data, err := os.ReadFile(filepath.Join(m.root, file))
	if err != nil {
		fail("%w", err)
	}
	return strings.TrimSuffix(string(data), "\n")
}

// picture draws runs of all workloads, or sweeps over the same thing: of each a folder, and how the picture calls it.
// It returns the picture's path from the page.
func (m *maker) picture(file string, machines ...string) string {
	var runs []report.Machine
	for i := 0; i+1 < len(machines); i += 2 {
		s := m.whole(m.within(machines[i])[0])
		if len(runs) > 0 && s.Over != runs[0].Over {
			fail("%s is over %q, and %s over %q", machines[0], runs[0].Over, machines[i], s.Over)
		}
		runs = append(runs, report.Machine{Name: machines[i+1], Summary: s})
	}
	var svg bytes.Buffer
	if err := report.Draw(runs...).SVG(&svg); err != nil {
		fail("%w", err)
	}
	m.made[file] = svg.Bytes()
	return m.link(file)
}

// link is the path from the page to a file or folder.
func (m *maker) link(file string) string {
	link, err := filepath.Rel(m.folder, file)
	if err != nil {
		fail("%w", err)
	}
	return filepath.ToSlash(link)
}
