package report

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/verdict"
)

// PoolRelease is of pooled.json. Another number means other names or meanings.
const PoolRelease = 1

// Pool is the answer of several runs, which pooled.json has. Ratios are to the base, and the 95% intervals hold one by
// one, not together.
type Pool struct {
	Release   int        `json:"release"` // PoolRelease
	Command   string     `json:"command"`
	Questions []Question `json:"questions"`
}

// Question is what several runs were asked: with one base, on one machine and with one Go release.
type Question struct {
	Base        string       `json:"base"`
	Machine     []string     `json:"machine"` // the same for all runs, as name=value
	Runs        []Run        `json:"runs"`
	Comparisons []Comparison `json:"comparisons"`

	all    Summary  // as of one run, with the answers of the comparisons
	single []string // workloads that one run has, by their titles
}

// Run is one of several, in a folder.
type Run struct {
	Folder   string   `json:"folder"` // as much of its path as tells it from the others
	Date     string   `json:"date,omitempty"`
	Commit   string   `json:"commit,omitempty"`
	Warnings []string `json:"warnings,omitempty"`

	Summary Summary `json:"-"`
}

// Comparison is a figure of a stack at a workload, which at least two runs have. Runs are those that it pools, and
// with fewer than verdict.FewestRuns there is no ratio.
type Comparison struct {
	Workload string `json:"workload"`
	Title    string `json:"title"`
	Stack    string `json:"stack"`
	Of       string `json:"of"`    // what the ratio is of, in the words of a heading; of calls a second, more is better
	Leads    bool   `json:"leads"` // it's the figure that the workload asks for
	verdict.Pooled
	Found []Found `json:"found"`

	answer Answer
}

// Found is what one run found of a comparison.
type Found struct {
	Folder     string          `json:"folder"`
	Ratio      float64         `json:"ratio"`
	Lo         float64         `json:"lo"`
	Hi         float64         `json:"hi"`
	NoiseFloor float64         `json:"noise_floor"`
	Verdict    verdict.Verdict `json:"verdict"`
	Processes  int             `json:"processes"`          // that count
	LeftOut    verdict.Kind    `json:"left_out,omitempty"` // why it isn't pooled
}

// ReadRuns reads what runs left in folders. Of each that can't be combined with others there is an error instead.
func ReadRuns(folders []string) (runs []Run, refused []error) {
	texts := map[string]string{} // folders by what they have
	for _, folder := range folders {
		s, text, err := readSummary(folder)
		switch first, twice := texts[text]; {
		case err != nil:
		case twice && filepath.Clean(first) == filepath.Clean(folder):
			err = fmt.Errorf("%s is named twice: it counts once", folder)
		case twice:
			err = fmt.Errorf("%s has the same summary.json as %s: a run counts once", folder, first)
		case s.Counted():
			err = fmt.Errorf("%s has counts, which are the same in each run: leave it out", folder)
		case slices.Contains(s.Warnings, "interrupted"):
			err = fmt.Errorf("%s is of a run that was interrupted: measure it again, or leave it out", folder)
		}
		if err != nil {
			refused = append(refused, fmt.Errorf("report: %w", err))
			continue
		}
		texts[text] = folder
		runs = append(runs, Run{Folder: folder, Date: s.Date(), Commit: s.noted("commit"), Warnings: s.Warnings, Summary: s})
	}
	distinguish(runs)
	return runs, refused
}

// distinguish shortens the names of folders to what tells them apart: the last parts of their paths, but for those that
// all have, as in monday/run and tuesday/run.
func distinguish(runs []Run) {
	var paths [][]string
	for _, r := range runs {
		whole, err := filepath.Abs(r.Folder)
		if err != nil {
			return
		}
		paths = append(paths, strings.Split(filepath.ToSlash(whole), "/"))
	}
	differ := func(path []string) bool { return path[len(path)-1] != paths[0][len(paths[0])-1] }
	for len(paths) > 1 && !slices.ContainsFunc(paths, differ) {
		for i, path := range paths {
			paths[i] = path[:len(path)-1]
		}
	}
	last := func(path []string, n int) string { return strings.Join(path[max(0, len(path)-n):], "/") }
	for i, path := range paths {
		for n := 1; n <= len(path); n++ {
			runs[i].Folder = last(path, n)
			if !slices.ContainsFunc(slices.Delete(slices.Clone(paths), i, i+1), func(other []string) bool {
				return last(other, n) == runs[i].Folder
			}) {
				break
			}
		}
	}
}

// asked has what has to be the same in two runs whose figures are compared, as name=value.
func (r Run) asked() []string {
	s := r.Summary
	all := []string{"base=" + s.Base}
	if s.Remote {
		all = append(all, "server=remote")
	}
	if s.Call != nil {
		all = append(all, "call="+s.Call.Method)
	}
	return append(all, s.setting()...)
}

// setting is the machine as it has to be the same in two runs that are compared.
func (s Summary) setting() []string {
	return slices.DeleteFunc(s.Machine(), func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		return slices.Contains([]string{"date", "commit", "kernel"}, name)
	})
}

// Combine pools runs by what they were asked. Of each run that is compared with none there is an error.
func Combine(command string, runs []Run) (p Pool, refused []error) {
	p = Pool{Release: PoolRelease, Command: command}
	var groups [][]Run
	for _, r := range runs {
		i := slices.IndexFunc(groups, func(g []Run) bool { return slices.Equal(g[0].asked(), r.asked()) })
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	for _, group := range groups {
		if len(group) == 1 {
			refused = append(refused, alone(group[0], groups))
			continue
		}
		q, without := question(group)
		for _, r := range without {
			refused = append(refused, fmt.Errorf("report: %s has no workload that another folder has: leave it out", r.Folder))
		}
		if len(q.Comparisons) > 0 {
			p.Questions = append(p.Questions, q)
		}
	}
	return p, refused
}

// alone says why a run is compared with no other: by what it differs from the largest group of them.
func alone(r Run, groups [][]Run) error {
	var most []Run
	for _, g := range groups {
		if g[0].Folder != r.Folder && len(g) > len(most) {
			most = g
		}
	}
	if most == nil {
		return fmt.Errorf("report: %s is the only run that is left: name another folder beside it", r.Folder)
	}
	own, theirs := r.asked(), most[0].asked()
	has, instead := "", ""
	for _, line := range slices.Concat(own, theirs) {
		name, _, _ := strings.Cut(line, "=")
		if has, instead = valued(own, name), valued(theirs, name); has != instead {
			break
		}
	}
	return fmt.Errorf("report: %s can't be compared: it has %s, and %s has %s: leave it out, or name another run like it",
		r.Folder, has, most[0].Folder, instead)
}

// valued is the line name=value of a name.
func valued(lines []string, name string) string {
	for _, line := range lines {
		if strings.HasPrefix(line, name+"=") {
			return line
		}
	}
	return "no " + name
}

// kept is what tells one comparison from others of a question.
type kept struct {
	workload, does, value, stack, heading string
	procs                                 int
	wired                                 Wired
}

// question pools runs that were asked the same. Those without a comparison are left out.
func question(runs []Run) (q Question, without []Run) {
	first := runs[0].Summary
	q = Question{Base: first.Base, Machine: first.setting(),
		all: Summary{Base: first.Base, Environment: first.Environment, Remote: first.Remote, Over: first.Over}}
	places, estimates := map[kept]int{}, [][]verdict.Estimate(nil)
	for _, heading := range []string{first.cpu(), rateHeading, waitHeading, tailHeading, timeHeading} {
		for _, r := range runs {
			for _, a := range r.Summary.Answers {
				l := a.line(heading)
				if l.led.Figure.Ratio == 0 {
					continue
				}
				key := kept{a.Workload, a.Does, a.Value, a.Stack, heading, a.GOMAXPROCS, a.Wired}
				i, there := places[key]
				if !there {
					i = len(q.Comparisons)
					places[key], estimates = i, append(estimates, nil)
					q.Comparisons = append(q.Comparisons, Comparison{Workload: a.Workload, Title: a.does(), Stack: a.Stack,
						Of: heading, Leads: a.leads(heading), answer: a})
				}
				f, e := r.found(a, l.led.Figure)
				q.Comparisons[i].Found = append(q.Comparisons[i].Found, f)
				if f.LeftOut == "" {
					estimates[i] = append(estimates[i], e)
				}
			}
		}
	}
	for i := range q.Comparisons {
		q.Comparisons[i].Pooled = verdict.Pool(estimates[i])
	}
	alone := func(c Comparison) bool { return len(c.Found) < 2 }
	all := q.Comparisons
	q.Comparisons = slices.DeleteFunc(slices.Clone(all), alone)
	for _, c := range all {
		same := func(other Comparison) bool { return other.Title == c.Title }
		if alone(c) && !slices.ContainsFunc(q.Comparisons, same) && !slices.Contains(q.single, c.Title) {
			q.single = append(q.single, c.Title)
		}
	}
	for _, r := range runs {
		if slices.ContainsFunc(q.Comparisons, func(c Comparison) bool { return c.has(r) }) {
			q.Runs = append(q.Runs, r)
		} else {
			without = append(without, r)
		}
	}
	for _, c := range q.Comparisons {
		q.all.Answers = append(q.all.Answers, c.answer)
	}
	return q, without
}

// leads tells whether a heading has the figure that the answer's question asks for.
func (a Answer) leads(heading string) bool {
	if a.byTail() {
		return heading == tailHeading
	}
	if a.ByCPU(a.Leads == ByCPU) {
		return heading == cpuHeading || heading == clientHeading
	}
	return heading == rateHeading || heading == timeHeading
}

// found is what the run found of an answer's figure, and the same as a mean takes it.
func (r Run) found(a Answer, f verdict.Figure) (Found, verdict.Estimate) {
	one := Found{Folder: r.Folder, Ratio: f.Ratio, Lo: f.Lo, Hi: f.Hi, NoiseFloor: f.NoiseFloor, Verdict: f.Verdict,
		Processes: a.Processes.Counted}
	oneLayout := r.Summary.Plan.Layouts < 2 && a.Stack != r.Summary.Base
	e, ok := f.Estimate(a.Processes.Counted, oneLayout)
	if !ok {
		one.LeftOut = verdict.TooFew
		if f.Refused() {
			one.LeftOut = f.Reason.Kind
		}
	}
	return one, e
}

// has tells whether the run is in the comparison.
func (c Comparison) has(r Run) bool {
	return slices.ContainsFunc(c.Found, func(f Found) bool { return f.Folder == r.Folder })
}

// Write makes report.html, report.md, answer.svg and pooled.json in dir, or none if one of them is there.
func (p Pool) Write(dir string) error {
	return write(dir, []string{"report.html", "report.md", "answer.svg", "pooled.json"},
		[]func(io.Writer) error{p.HTML, p.Markdown, p.SVG, p.JSON})
}

// JSON writes it for other programs.
func (p Pool) JSON(w io.Writer) error {
	text, err := json.MarshalIndent(p, "", "\t")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// HTML writes a page that needs nothing else.
func (p Pool) HTML(w io.Writer) error { return draw(w, "pooled.html.tmpl", p) }

// Markdown writes the same, without the picture.
func (p Pool) Markdown(w io.Writer) error { return markdown(w, "pooled.md.tmpl", p) }

// SVG writes the picture alone.
func (p Pool) SVG(w io.Writer) error { return p.Picture().SVG(w) }
