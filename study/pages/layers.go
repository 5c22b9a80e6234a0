package pages

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/rpcbench/rpcbench/internal/report/table"
)

var (
	workloadLine = regexp.MustCompile(`(?m)^# \S+: workload=(\S+)`)
	lessLine     = regexp.MustCompile(`(?m)^(\S+) (?:less|minus) (\S+)$`)
	layerLine    = regexp.MustCompile(`(?m)^(\S.*?)  +[-+]\S+ +[-+]\S+ +[-+]\S+ +([-+]\S+) +([\d.]+)`)
)

// difference is what rpcbench explain wrote of two stacks: by how much more CPU time a call of the one takes in each
// layer.
type difference struct {
	Stack, Base, Workload string
	Layers                map[string]string
}

func (m *maker) difference(file string) difference {
	text := m.read(file)
	at := lessLine.FindStringSubmatchIndex(text)
	workload := workloadLine.FindStringSubmatch(text)
	if at == nil || workload == nil {
		fail("%s compares no two stacks", file)
	}
	d := difference{text[at[2]:at[3]], text[at[4]:at[5]], workload[1], map[string]string{}}
	for _, m := range layerLine.FindAllStringSubmatch(text[at[1]:], -1) {
		d.Layers[m[1]] = m[2] + " ± " + m[3]
	}
	return d
}

// tower is what one kind of goroutine does, as a flame graph shows it: the beginnings of its outermost functions, and
// its share of the samples, in each of two profiles.
type tower struct {
	does  string
	roots [2][]string
	share [2]float64
}

// towersTable splits two CPU profiles among goroutines. Each row is given as "what it does|functions|functions", of the
// first profile and of the second. Functions have no path before their package.
func (m *maker) towersTable(of []string) string {
	files, rest := []string{m.path(of[0]), m.path(of[1])}, tower{does: "everything else"}
	var towers []tower
	for _, row := range of[2:] {
		c := strings.Split(row, "|")
		towers = append(towers, tower{does: c[0], roots: [2][]string{strings.Fields(c[1]), strings.Fields(c[2])}})
	}
	var columns []table.Of[tower]
	for i, file := range files {
		samples, all := m.outermost(file)
		rest.share[i] = 1
		for j := range towers {
			for _, root := range towers[j].roots[i] {
				towers[j].share[i] += share(file, samples, root) / all
			}
			rest.share[i] -= towers[j].share[i]
		}
		columns = append(columns, table.Words(code(strings.TrimSuffix(path.Base(file), ".pprof")), func(t tower) string {
			if len(t.roots[i]) == 0 {
				return "–"
			}
			return code(strings.Join(t.roots[i], "`, `"))
		}), table.Figures("share", func(t tower) string { return table.Known(t.share[i], table.Percent(t.share[i])) }))
	}
	columns = append([]table.Of[tower]{table.Words("goroutine", func(t tower) string { return t.does })}, columns...)
	return table.Fill(new(table.Table), append(towers, rest), columns...).Markdown()
}

// share is how many samples have an outermost function that begins with a root.
func share(file string, samples map[string]float64, root string) (n float64) {
	for name, count := range samples {
		if strings.HasPrefix(name, root) {
			n += count
		}
	}
	if n == 0 {
		fail("%s has no goroutine that begins with %s", file, root)
	}
	return n
}

// outermost are the samples of a CPU profile by the function that their goroutine began with, and their sum.
func (m *maker) outermost(file string) (samples map[string]float64, all float64) {
	data, err := os.ReadFile(filepath.Join(m.root, file))
	if err != nil {
		fail("%w", err)
	}
	p, err := profile.ParseData(data)
	if err != nil {
		fail("%s: %w", file, err)
	}
	samples = map[string]float64{}
	for _, s := range p.Sample {
		lines := s.Location[len(s.Location)-1].Line
		samples[path.Base(lines[len(lines)-1].Function.Name)] += float64(s.Value[0])
		all += float64(s.Value[0])
	}
	return samples, all
}
