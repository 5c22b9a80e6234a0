package pages

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/verdict"
	"github.com/rpcbench/rpcbench/stacks"
)

// comparison is an answer of a run with one of its figures, as report.Led has them.
type comparison struct {
	report.Answer
	verdict.Figure
	OfCPU bool

	of report.Summary // the run
}

func comparisonOf(s report.Summary, l report.Led) comparison {
	return comparison{Answer: l.Answer, Figure: l.Figure, OfCPU: l.OfCPU, of: s}
}

// counts are what was counted of a call of the base (0) or the stack (1), and nothing if it wasn't.
func (c comparison) counts(side int) report.Counts {
	if n := []*report.Counts{c.BaseFacts, c.Facts}[side]; n != nil {
		return *n
	}
	return report.Counts{}
}

// ofCPU is the figure of CPU. If client and server share one core, that is the time of a call.
func ofCPU(c comparison) verdict.Figure {
	if c.OfCPU || !c.Apart && c.GOMAXPROCS == 1 {
		return c.Figure
	}
	return c.CPU
}

// ofTime is the figure of a call's time.
func ofTime(c comparison) verdict.Figure {
	if c.OfCPU {
		return c.Time
	}
	return c.Figure
}

// run returns the summary of a run.
func (m *maker) run(dir string) report.Summary {
	s, err := m.readRun(dir)
	if err != nil {
		fail("%w", err)
	}
	return s
}

// readRun is run with an error.
func (m *maker) readRun(dir string) (report.Summary, error) {
	if s, known := m.summaries[dir]; known {
		return s, nil
	}
	data, err := os.ReadFile(m.file(path.Join(dir, "summary.json")))
	if errors.Is(err, fs.ErrNotExist) {
		return report.Summary{}, fmt.Errorf("%s has no summary.json", dir)
	} else if err != nil {
		return report.Summary{}, err
	}
	s, err := report.Parse(dir, string(data))
	if err == nil {
		m.summaries[dir] = s
	}
	return s, err
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
var parts = []string{"", "workloads", "workloads-1", "workloads-2", "jsoniter", "stacks", "cores", "variants", "more",
	"files"}

// within returns the runs that a folder has, or is.
func (m *maker) within(dir string) (dirs []string) {
	for _, part := range parts {
		if m.there(path.Join(dir, part, "summary.json")) {
			dirs = append(dirs, path.Join(dir, part))
		}
	}
	if len(dirs) == 0 {
		fail("%s has no run", dir)
	}
	return dirs
}

// find is what a folder has of a stack at a workload, or at a value of a sweep, by the figure that its question asks
// for. The run that asked first has the answer. It is nothing if none did.
func (m *maker) find(dir, at, stack string) *comparison {
	dirs := m.within(dir)
	for i, s := range m.runs(dirs) {
		for _, l := range s.Led() {
			if l.Answer.Stack == stack && (l.Answer.Workload == at || s.Over != "" && l.Answer.Value == at) {
				m.show(dirs[i], l.Answer)
				found := comparisonOf(s, l)
				return &found
			}
		}
	}
	return nil
}

// led is find, where a run must have a ratio.
func (m *maker) led(dir, at, stack string) comparison {
	found := m.find(dir, at, stack)
	if found == nil {
		fail("%s has not measured %s at %s", dir, stack, at)
	}
	if found.Ratio == 0 {
		fail("%s has no ratio of %s at %s", dir, stack, at)
	}
	return *found
}

// kind is a comparison and how it was made.
type kind struct {
	workload, stack string
	conditions
}

// conditions are what the comparisons of a range have in common: a range pools neither two releases of Go nor two major
// versions of a library, nor machines of two numbers of CPUs, nor two ways of counting calls.
type conditions struct{ base, release, majors, messages, cpus, counted string }

func kindOf(s report.Summary, a report.Answer) kind {
	return kind{a.Workload, a.Stack, conditionsOf(s, a)}
}

// counted is how the calls of an answer were counted, as far as its run tells. Whoever changes how calls are counted
// adds here what tells the old way from the new one: figures of both are no range of one quantity. Callers who last
// have a ratio of CPU time, which bursts of calls had not, and servers apart have a load. The estimator is left out: it
// says how a process's ratio was made of its counts.
//
// Windows have followed calls since a summary has a Counting. That is another way only of callers whose calls are too
// long for windows of 100 ms.
func counted(s report.Summary, a report.Answer) string {
	const long = 10e6 // ns; ten of them take 100 ms
	lasting, windows := a.Time.There() && a.CPU.There(), ""
	if lasting && max(a.Percentiles.P50.BaseNs, a.Percentiles.P50.StackNs) > long {
		windows = s.Counting
	}
	return fmt.Sprintf("lasting=%t apart=%t %s", lasting, a.StackLoad != verdict.Load{}, windows)
}

func conditionsOf(s report.Summary, a report.Answer) conditions {
	messages := ""
	if s.Call != nil {
		messages = s.Call.Method // which is the same for all messages that were given as JSON
		if bodies := s.Call.Bodies; len(bodies) > 0 {
			messages += fmt.Sprintf(" %.0f %.0f", bodies[0].Request, bodies[0].Reply)
		}
	}
	return conditions{s.Base, noted(s, "go"), majors(s, a.Stack), messages, cpus(s), counted(s, a)}
}

// majors are the major versions that a run had of a stack's libraries. They are unknown of the build of a stack, and of
// stacks in another module.
func majors(s report.Summary, stack string) string {
	found, err := stacks.Find(stack)
	if err != nil {
		return ""
	}
	t := found[0].Traits
	var all []string
	for _, library := range slices.Concat(t.ClientLibraries, t.ServerLibraries, []string{t.Codec}) {
		for _, line := range s.Environment {
			if path, version, there := strings.Cut(line, "@"); there && path == library {
				major, _, _ := strings.Cut(version, ".")
				all = append(all, library+"@"+major)
			}
		}
	}
	return strings.Join(all, " ")
}

// recorded returns all recorded answers with a ratio, by their kind.
func (m *maker) recorded() map[kind][]comparison {
	if m.kins != nil {
		return m.kins
	}
	m.kins = map[kind][]comparison{}
	results := os.DirFS(filepath.Join(m.root, m.results))
	if err := fs.WalkDir(results, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "summary.json" {
			return err
		}
		s := m.run(path.Join(m.results, path.Dir(name)))
		for _, a := range s.Answers {
			if led := comparisonOf(s, a.Led()); led.Ratio > 0 {
				of := kindOf(s, a)
				m.kins[of] = append(m.kins[of], led)
			}
		}
		return nil
	}); err != nil {
		fail("%w", err)
	}
	return m.kins
}

// alike are the recorded runs of a comparison that a folder made: at one workload, or one of other names for it, in the
// same conditions, at the same rate, with as many connections, and on a machine that others left alone. A rate that was
// not kept does not count.
func (m *maker) alike(dir, at, stack string, others ...string) (all []comparison) {
	asked := m.led(dir, at, stack)
	others = append(others, asked.Workload)
	differs := func(c comparison) bool {
		return c.Others > verdict.BusyMachine || !c.Kept() || c.Rate != asked.Rate || connections(c) != connections(asked)
	}
	for of, k := range m.recorded() {
		alike := of.stack == stack && of.conditions == conditionsOf(asked.of, asked.Answer)
		if alike && slices.Contains(others, of.workload) {
			all = append(all, slices.DeleteFunc(slices.Clone(k), differs)...)
		}
	}
	slices.SortFunc(all, func(a, b comparison) int { return cmp.Compare(a.Ratio, b.Ratio) })
	return all
}

// connections are those of the base and of the stack, or none if they were not counted. One for each call is a number
// of its own.
func connections(c comparison) (n [2]int64) {
	for side := range n {
		if n[side] = c.counts(side).Connections; n[side] > 1 && n[side] == c.counts(side).Calls {
			n[side] = -1
		}
	}
	return n
}

// perSecond is how many calls a second a call's time makes, to the next hundred.
func perSecond(ns float64) float64 { return math.Round(1e7/ns) * 100 }

// machine is the processor of a run, and how many cores it has.
func machine(s report.Summary) string {
	return fmt.Sprintf("%s, %s virtual cores", strings.ReplaceAll(noted(s, "cpu"), "-", " "), noted(s, "cores"))
}

// quota is noted of a container that may use fewer CPUs than the machine has: how many.
const quota = "quota"

// cpus is how many CPUs a run could use.
func cpus(s report.Summary) string { return cmp.Or(noted(s, quota), noted(s, "cores")) }

// noted is a value of a run's environment.
func noted(s report.Summary, name string) string {
	for _, line := range s.Environment {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return value
		}
	}
	return ""
}

// file is where a path of the repository is, and there tells whether there is one.
func (m *maker) file(name string) string { return filepath.Join(m.root, name) }

func (m *maker) there(name string) bool {
	_, err := os.Stat(m.file(name))
	return err == nil
}

// bases are the times of the base's calls in the processes of a comparison, with their interval.
func bases(c comparison) benchmath.Summary {
	f := ofTime(c)
	if len(f.BasesNs) < verdict.Fewest {
		fail("%s has fewer than %d processes", c.Workload, verdict.Fewest)
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(f.BasesNs, &benchmath.DefaultThresholds), 0.95)
	s.Center = f.BaseNs // as in the calls a second
	return s
}

// calls are the times of the stack's calls. Two of one stack are not paired, so the interval is the widest that the
// base's processes and the ratio allow.
func calls(c comparison) benchmath.Summary {
	s, f := bases(c), ofTime(c)
	return benchmath.Summary{Center: f.BaseNs * f.Ratio, Lo: s.Lo * f.Lo, Hi: s.Hi * f.Hi}
}
