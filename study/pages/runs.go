package pages

import (
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report"
)

// run returns the summary of a run.
func (m *maker) run(dir string) report.Summary {
	if _, known := m.summaries[dir]; !known {
		s, err := report.Read(filepath.Join(m.root, dir))
		if err != nil {
			fail("%w", err)
		}
		m.summaries[dir] = s
	}
	return m.summaries[dir]
}

// runs returns the summaries of runs that are of one machine.
func (m *maker) runs(dirs []string) (all []report.Summary) {
	for _, dir := range dirs {
		all = append(all, m.run(dir))
		if a, b := machine(all[0]), machine(m.run(dir)); a != b {
			fail("%s and %s are of two machines, %s and %s", dirs[0], dir, a, b)
		}
	}
	return all
}

// parts are the runs of a folder that study/measure.sh filled. The first one that asked has the answer, so a
// question has one number. "" is the folder itself, if it is a run.
var parts = []string{"", "workloads", "jsoniter", "stacks", "cores", "variants", "more", "files"}

// within returns the runs that a folder has, or is.
func (m *maker) within(dir string) (dirs []string) {
	for _, part := range parts {
		if _, err := os.Stat(filepath.Join(m.root, dir, part, "summary.json")); err == nil {
			dirs = append(dirs, path.Join(dir, part))
		}
	}
	if len(dirs) == 0 {
		fail("%s has no run", dir)
	}
	return dirs
}

// find returns what a folder has of a stack at a workload, or nil if no run asked.
func (m *maker) find(dir, work, stack string) *report.Answer {
	for _, s := range m.runs(m.within(dir)) {
		for i, a := range s.Answers {
			if a.Workload == work && a.Stack == stack {
				return &s.Answers[i]
			}
		}
	}
	return nil
}

// asked is find, where a run must have asked.
func (m *maker) asked(dir, work, stack string) *report.Answer {
	a := m.find(dir, work, stack)
	if a == nil {
		fail("%s has not measured %s at %s", dir, stack, work)
	}
	return a
}

// answer is find, where a run must have a ratio.
func (m *maker) answer(dir, work, stack string) *report.Answer {
	a := m.asked(dir, work, stack)
	if a.Ratio == 0 {
		fail("%s has no ratio of %s at %s", dir, stack, work)
	}
	return a
}

// led is answer by the figure that its question asks for: CPU time or time.
func (m *maker) led(dir, work, stack string) *report.Answer {
	a := m.answer(dir, work, stack).Leading()
	return &a
}

// ordered returns the answers of a run about one stack: the lowest ratio first, and last those without one.
func (m *maker) ordered(dir, stack string) []report.Answer {
	s := m.run(dir)
	unknown := slices.DeleteFunc(s.Of(stack), func(a report.Answer) bool { return a.Ratio > 0 })
	return append(s.ByRatio(stack), unknown...)
}

// works are the workloads of a run, each by its first answer.
func works(s report.Summary) (all []report.Answer) {
	for _, a := range s.Answers {
		if !slices.ContainsFunc(all, func(b report.Answer) bool { return b.Workload == a.Workload }) {
			all = append(all, a)
		}
	}
	return all
}

// disagree notes a stack whose recorded runs disagree on who is faster, with the folders of further runs. A grid of the
// page has the range of its ratios.
func (m *maker) disagree(stack string, runs ...string) string {
	m.unsettled[stack] = runs
	return ""
}

// span is the range of such a stack's ratios, or "" of another one.
func (m *maker) span(dir, work, stack string) string {
	if m.unsettled[stack] == nil {
		return ""
	}
	runs, ratios := []string{}, []float64{}
	for _, dir := range append([]string{dir}, m.unsettled[stack]...) {
		runs = append(runs, m.within(dir)...)
		ratios = append(ratios, m.answer(dir, work, stack).Ratio)
	}
	m.runs(runs) // of one machine
	return fmt.Sprintf("%.2f to %.2f in %d runs", slices.Min(ratios), slices.Max(ratios), len(ratios))
}

// quotient is one ratio to a base by another, as independent figures.
func quotient(a, b *report.Answer) *report.Answer {
	width := math.Exp(math.Hypot(math.Log(a.Hi/a.Lo)/2, math.Log(b.Hi/b.Lo)/2))
	var q report.Answer
	q.Ratio = a.Ratio / b.Ratio
	q.Lo, q.Hi = q.Ratio/width, q.Ratio*width
	return &q
}

// where says where the runs of a folder were made, and links the folder, or the report of a run.
func (m *maker) where(dir string) string {
	run, page := m.run(m.within(dir)[0]), ""
	if _, err := os.Stat(filepath.Join(m.root, dir, "summary.json")); err == nil {
		page = "/report.md"
	}
	commit := noted(run, "commit")
	if state, err := os.ReadFile(filepath.Join(m.root, dir, "state.txt")); err == nil { // changes are results alone
		first, _, _ := strings.Cut(string(state), "\n")
		_, commit, _ = strings.Cut(first, "at commit ")
	}
	return fmt.Sprintf("[%s, %s, %s, commit %s](%s%s)", machine(run), noted(run, "go"), noted(run, "date"), commit,
		m.link(dir), page)
}

// machine is the processor of a run, and how many cores it has.
func machine(s report.Summary) string {
	return fmt.Sprintf("%s, %s virtual cores", strings.ReplaceAll(noted(s, "cpu"), "-", " "), noted(s, "cores"))
}

// noted is a value of a run's environment.
func noted(s report.Summary, name string) string {
	for _, line := range s.Environment {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return value
		}
	}
	return ""
}

// ratio is a ratio alone, and times is a ratio with its interval.
func ratio(a *report.Answer) string { return fmt.Sprintf("%.2f", a.Ratio) }
func times(a *report.Answer) string { return ratio(a) + " (" + report.Interval(a.Lo, a.Hi) + ")" }

// micro is by how many microseconds a call takes longer, and saved by how many it takes less.
func micro(a *report.Answer) float64 { return a.Micro() }
func saved(a *report.Answer) float64 { return -a.Micro() }

// micros are microseconds, with as many digits as an interval of a percent carries.
func micros(ns float64) string {
	if ns < 100_000 {
		return fmt.Sprintf("%.1f", ns/1000)
	}
	return fmt.Sprintf("%.0f", ns/1000)
}

// notes collects what is to be said of a verdict, such as why there is none, and gives each text a mark.
type notes []string

// Two are two cells of a row: a ratio with its interval, and the verdict, with a mark where there is more to say.
// Without an answer both are dashes.
func (n *notes) Two(a *report.Answer) string {
	if a == nil {
		return "– | –"
	}
	ratio := times(a)
	if a.Ratio == 0 {
		ratio = "–"
	}
	said := strings.TrimPrefix(a.Said(), "undecided: ")
	if said == string(a.Verdict) {
		return ratio + " | " + said
	}
	if !slices.Contains(*n, said) {
		*n = append(*n, said)
	}
	return fmt.Sprintf("%s | %s [%d]", ratio, a.Verdict, slices.Index(*n, said)+1)
}

// Joined is Two as one cell.
func (n *notes) Joined(a *report.Answer) string { return strings.Replace(n.Two(a), " | ", " ", 1) }

func (n *notes) String() string {
	var b strings.Builder
	for i, said := range *n {
		fmt.Fprintf(&b, "\n- [%d] %s.", i+1, said)
	}
	if len(*n) > 0 {
		b.WriteString("\n")
	}
	return b.String()
}
