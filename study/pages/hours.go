package pages

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// lead is the folder of results that leads by the rule of study/results/README.md, and the machine that it names.
type lead struct{ folder, machine string }

// readLead reads study/figures/lead.txt: a line with the folder, a space and the machine.
func (m *maker) readLead() {
	for text := range strings.Lines(m.read(leader)) {
		if text = strings.TrimSpace(text); text != "" && !strings.HasPrefix(text, "#") {
			m.lead.folder, m.lead.machine, _ = strings.Cut(text, " ")
		}
	}
	if m.lead.machine == "" {
		fail("%s:1: it has no line with the folder that leads and its machine", leader)
	}
}

// shown is a comparison of a run that a page shows.
type shown struct{ run, workload, stack string }

// show notes a comparison that the page shows.
func (m *maker) show(run string, a report.Answer) {
	m.shown = append(m.shown, shown{run, a.Workload, a.Stack})
}

// whole is a run of which the page shows all comparisons.
func (m *maker) whole(dir string) report.Summary {
	s := m.run(dir)
	for _, a := range s.Answers {
		m.show(dir, a)
	}
	return s
}

var (
	listed = regexp.MustCompile(`(?m)^hour=\(([^)]*)\)`)
	dated  = regexp.MustCompile(`^\d{4}-\d\d-\d\d`)
	clock  = regexp.MustCompile(`\d\d:\d\d`)
)

// misled is an error unless the folder that leads is the one of the rule in study/results/README.md: of the folders on
// that machine that have all parts, the newest.
func (m *maker) misled() error {
	script, err := os.ReadFile(m.file("study/measure.sh"))
	if err != nil {
		return err
	}
	hour := listed.FindSubmatch(script)
	if hour == nil {
		return fmt.Errorf("study/measure.sh does not list the parts of an hour as hour=(...)")
	}
	leads, err := m.newest(m.path("lead"), strings.Fields(string(hour[1])))
	if err == nil && m.lead.folder != leads {
		return fmt.Errorf("%s does not lead: by the rule of study/results/README.md %s does", m.lead.folder, leads)
	}
	return err
}

// newest is the name of the newest folder that has all parts and counts, for a page that shows another one.
func (m *maker) newest(shown string, parts []string) (leads string, err error) {
	folders, err := os.ReadDir(m.file(m.results))
	if err != nil {
		return "", err
	}
	newest, leads := "", "none"
	for _, entry := range folders {
		begun, err := m.complete(path.Join(m.results, entry.Name()), shown, parts)
		switch {
		case err != nil:
			return "", err
		case begun > newest:
			newest, leads = begun, entry.Name()
		}
	}
	return leads, nil
}

// complete returns the day and minute at which a folder with all parts began, and nothing for any other folder. Each
// part is a name, and perhaps its minutes as in study/measure.sh.
func (m *maker) complete(folder, shows string, parts []string) (begun string, err error) {
	for _, part := range parts {
		name, _, _ := strings.Cut(part, ":")
		run := path.Join(folder, name)
		there := func(file string) bool {
			return m.there(path.Join(run, file))
		}
		switch {
		case there("rows.txt"): // of go test, and no comparison
			continue
		case !there("summary.json"):
			return "", nil
		}
		if s, err := m.readRun(run); err != nil || !m.counts(s, path.Join(shows, name)) {
			return "", err
		}
	}
	day := dated.FindString(path.Base(folder))
	state, err := os.ReadFile(m.file(path.Join(folder, "state.txt")))
	minute := clock.Find(state)
	if day == "" || err != nil || minute == nil {
		return "", fmt.Errorf("%s is a complete hour: it needs a day as its name begins, and a state.txt with the minute "+
			"that it began at", folder)
	}
	return day + ", " + string(minute), nil
}

// counts tells whether a part was measured on the machine that the page names, and in no container, and whether what
// the page shows of this part, from another folder perhaps, had nearly all of the machine. What the page calls by a
// name that the part lacks does not matter: the page has to follow the rule.
func (m *maker) counts(s report.Summary, run string) bool {
	if machine(s) != m.lead.machine || noted(s, quota) != "" {
		return false
	}
	return !slices.ContainsFunc(s.Answers, func(a report.Answer) bool {
		return a.Others >= verdict.BusyMachine && slices.Contains(m.shown, shown{run, a.Workload, a.Stack})
	})
}
