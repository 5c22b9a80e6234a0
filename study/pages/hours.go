package pages

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// leading is what a page shows by the rule of study/results/README.md: the hour that leads, the machine that it names,
// and what it shows of it.
type leading struct {
	hour, machine string
	shown         []shown
}

// shown is a comparison of a run that a page shows.
type shown struct{ run, workload, stack string }

// leads takes a folder for the one that leads on a machine, such as "AMD EPYC, 2 virtual cores", and returns its path.
// When the page is made, and what it shows is known, misled tells whether the folder does lead.
func (m *maker) leads(folder, machine string) string {
	m.leading.hour, m.leading.machine = folder, machine
	return folder
}

// show notes a comparison that the page shows.
func (m *maker) show(run string, a report.Answer) {
	m.leading.shown = append(m.leading.shown, shown{run, a.Workload, a.Stack})
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

// misled is an error unless the folder that the page shows is the one of the rule in study/results/README.md: of the
// folders on that machine that have all parts, the newest.
func (m *maker) misled() error {
	if m.leading.hour == "" {
		return nil
	}
	script, err := os.ReadFile(filepath.Join(m.root, "study", "measure.sh"))
	if err != nil {
		return err
	}
	hour := listed.FindSubmatch(script)
	if hour == nil {
		return fmt.Errorf("study/measure.sh does not list the parts of an hour as hour=(...)")
	}
	leads, err := m.newest(m.leading.hour, strings.Fields(string(hour[1])))
	if err == nil && path.Base(m.leading.hour) != leads {
		return fmt.Errorf("%s does not lead: by the rule of study/results/README.md %s does", m.leading.hour, leads)
	}
	return err
}

// newest is the name of the newest folder that has all parts and counts, for a page that shows another one.
func (m *maker) newest(shown string, parts []string) (leads string, err error) {
	folders, err := os.ReadDir(filepath.Join(m.root, m.results))
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
			_, err := os.Stat(filepath.Join(m.root, run, file))
			return err == nil
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
	state, err := os.ReadFile(filepath.Join(m.root, folder, "state.txt"))
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
	if machine(s) != m.leading.machine || noted(s, quota) != "" {
		return false
	}
	return !slices.ContainsFunc(s.Answers, func(a report.Answer) bool {
		return a.Others >= verdict.BusyMachine && slices.Contains(m.leading.shown, shown{run, a.Workload, a.Stack})
	})
}

// middle is the median of figures.
func middle(of []float64) float64 {
	slices.Sort(of)
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}

// varied is by how much the base's CPU varied in the median row of runs.
func (m *maker) varied(dirs ...string) string {
	var all []float64
	for _, dir := range dirs {
		for _, a := range m.whole(dir).Led() {
			all = append(all, a.Figure.BaseVaried)
		}
	}
	return table.Percent(middle(all))
}
