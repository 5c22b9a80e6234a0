package pages

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/rpcbench/rpcbench/internal/report/table"
)

// ruled is when the rule of study/results/README.md was committed: it chooses among the hours that began later.
const ruled = "2026-11-26, 02:54"

// hour is a folder of results, and what the rule asks of it: medians over the rows of all its runs.
type hour struct {
	folder         string
	begun          string // day and minute, from state.txt
	rows           int
	others, varied float64 // the share of the machine that other programs used, and by how much the base varied
}

// Qualifies is whether the machine was quiet enough for the hour to lead.
func (h hour) Qualifies() bool { return h.others < 0.05 && h.varied < 0.15 }

// Warning says what the hour lacks, for a page that shows its figures. It is nothing if the hour qualifies.
func (h hour) Warning() string {
	if h.Qualifies() {
		return ""
	}
	return fmt.Sprintf("The machine was not steady in the hour that began at %s UTC: in the median of its %d comparisons "+
		"the base's own time varied by %s between processes, while other programs used %s of the machine.",
		h.begun, h.rows, table.Percent(h.varied), table.Percent(h.others))
}

var clock = regexp.MustCompile(`\d\d:\d\d`)

// hour reads a folder below study/results.
func (m *maker) hour(folder string) hour {
	h := hour{folder: folder}
	state, err := os.ReadFile(filepath.Join(m.root, m.results, folder, "state.txt"))
	if err != nil {
		fail("%w", err)
	}
	h.begun = folder[:min(len("2026-11-26"), len(folder))] + ", " + clock.FindString(string(state))
	var others, varied []float64
	for _, comparisons := range m.recorded() {
		for _, r := range comparisons {
			if r.folder == folder {
				others, varied = append(others, r.Others), append(varied, r.BaseVaried)
			}
		}
	}
	if len(others) == 0 {
		fail("%s has no comparison", folder)
	}
	h.rows, h.others, h.varied = len(others), middle(others), middle(varied)
	return h
}

// middle is the median of figures.
func middle(of []float64) float64 {
	slices.Sort(of)
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}

// leads returns a folder's path, and fails unless the rule says that it leads: the newest hour that qualifies, or the
// newest of all if none does.
func (m *maker) leads(folder string) string {
	folders, err := fs.ReadDir(os.DirFS(filepath.Join(m.root, m.results)), ".")
	if err != nil {
		fail("%w", err)
	}
	var leading hour
	for _, entry := range folders {
		if !entry.IsDir() || entry.Name() < ruled[:len("2026-11-26")] {
			continue
		}
		h := m.hour(entry.Name())
		if h.begun <= ruled {
			continue
		}
		newer, better := h.begun > leading.begun, h.Qualifies() && !leading.Qualifies()
		if leading.folder == "" || better || newer && h.Qualifies() == leading.Qualifies() {
			leading = h
		}
	}
	if path.Base(folder) != leading.folder {
		fail("%s does not lead: by the rule of study/results/README.md %s does", folder, leading.folder)
	}
	return folder
}

// varied is by how much the base's CPU varied in the median row of runs.
func (m *maker) varied(dirs ...string) string {
	var all []float64
	for _, dir := range dirs {
		for _, a := range m.run(dir).Led() {
			all = append(all, a.BaseVaried)
		}
	}
	return table.Percent(middle(all))
}

// warning is that of the hour of a folder.
func (m *maker) warning(folder string) string { return m.hour(path.Base(folder)).Warning() }
