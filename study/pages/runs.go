package pages

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
	"github.com/rpcbench/rpcbench/stacks"
)

// comparison is an answer with one of its figures, as report.Led has them, but with the names of both where templates
// find them.
type comparison struct {
	report.Answer
	verdict.Figure
	OfCPU bool

	again []comparison // the same in all recorded runs of its kind, of which sentences give the range
}

func comparisonOf(l report.Led) comparison {
	return comparison{Answer: l.Answer, Figure: l.Figure, OfCPU: l.OfCPU}
}

// led is the comparison as reports have it.
func (c comparison) led() report.Led {
	return report.Led{Answer: c.Answer, Figure: c.Figure, OfCPU: c.OfCPU}
}

func comparisonsOf(all []report.Led) (made []comparison) {
	for _, l := range all {
		made = append(made, comparisonOf(l))
	}
	return made
}

// Micro is by how many microseconds a call of the stack takes longer, and Paired is how long it takes by the ratio.
func (c comparison) Micro() float64  { return c.led().Micro() }
func (c comparison) Paired() float64 { return c.led().Paired() }

// run returns the summary of a run.
func (m *maker) run(dir string) report.Summary {
	s, err := m.readRun(dir)
	if err != nil {
		fail("%w", err)
	}
	return s
}

// readRun is run, for what no template calls.
func (m *maker) readRun(dir string) (report.Summary, error) {
	if s, known := m.summaries[dir]; known {
		return s, nil
	}
	s, err := report.Read(filepath.Join(m.root, dir))
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
		if _, err := os.Stat(filepath.Join(m.root, dir, part, "summary.json")); err == nil {
			dirs = append(dirs, path.Join(dir, part))
		}
	}
	if len(dirs) == 0 {
		fail("%s has no run", dir)
	}
	return dirs
}

// first returns what a folder has of a stack at a workload, and the run that asked first. Both are nothing if none did.
func (m *maker) first(dir, work, stack string) (report.Summary, *comparison) {
	dirs := m.within(dir)
	for i, s := range m.runs(dirs) {
		for _, a := range comparisonsOf(s.Timed()) {
			if a.Workload == work && a.Stack == stack {
				m.show(dirs[i], a.Answer)
				return s, &a
			}
		}
	}
	return report.Summary{}, nil
}

// find is first without the run.
func (m *maker) find(dir, work, stack string) *comparison {
	_, a := m.first(dir, work, stack)
	return a
}

// asked is find, where a run must have asked.
func (m *maker) asked(dir, work, stack string) *comparison {
	a := m.find(dir, work, stack)
	if a == nil {
		fail("%s has not measured %s at %s", dir, stack, work)
	}
	return a
}

// answer is find, where a run must have a ratio.
func (m *maker) answer(dir, work, stack string) *comparison {
	a := m.asked(dir, work, stack)
	if a.Ratio == 0 {
		fail("%s has no ratio of %s at %s", dir, stack, work)
	}
	a.again = m.repeats(dir, work, stack)
	return a
}

// repeats are a recorded comparison in all runs of its kind.
func (m *maker) repeats(dir, work, stack string) (all []comparison) {
	if in, err := filepath.Rel(m.results, dir); err != nil || strings.HasPrefix(in, "..") {
		return nil
	}
	for _, r := range m.among(dir, stack, work) {
		all = append(all, r.comparison)
	}
	return all
}

// led is answer by the figure that its question asks for: CPU time or time.
func (m *maker) led(dir, work, stack string) *comparison {
	asked := m.answer(dir, work, stack)
	a := comparisonOf(asked.Led())
	a.again = asked.again
	return &a
}

// repeat is an answer of a recorded run, by the figure that its question asks for.
type repeat struct {
	folder, machine string
	comparison
}

// kin are the recorded runs of one kind that made the same comparison, the lowest ratio first.
type kin []repeat

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
func (m *maker) recorded() map[kind]kin {
	if m.kins != nil {
		return m.kins
	}
	m.kins = map[kind]kin{}
	results := os.DirFS(filepath.Join(m.root, m.results))
	if err := fs.WalkDir(results, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "summary.json" {
			return err
		}
		s := m.run(path.Join(m.results, path.Dir(name)))
		folder, _, _ := strings.Cut(name, "/")
		for _, a := range s.Answers {
			if led := comparisonOf(a.Led()); led.Ratio > 0 {
				of := kindOf(s, a)
				m.kins[of] = append(m.kins[of], repeat{folder, machine(s), led})
			}
		}
		return nil
	}); err != nil {
		fail("%w", err)
	}
	for _, k := range m.kins {
		slices.SortFunc(k, func(a, b repeat) int { return cmp.Compare(a.Ratio, b.Ratio) })
	}
	return m.kins
}

// kin returns the recorded runs of a comparison that a folder has an answer of.
func (m *maker) kin(dir string, a comparison) kin {
	s, asked := m.first(dir, a.Workload, a.Stack)
	return m.recorded()[kindOf(s, asked.Answer)]
}

// Least and Most are the smallest ratio of the runs, and the largest.
func (k kin) Least() float64 { return k[0].Ratio }
func (k kin) Most() float64  { return k[len(k)-1].Ratio }

// Range is both, the smallest first.
func (k kin) Range() string { return fmt.Sprintf("%.1f to %.1f", k.Least(), k.Most()) }

// release returns a release of Go, such as 1.27, which all runs of a folder are of.
func (m *maker) release(dir, release string) string {
	for _, s := range m.runs(m.within(dir)) {
		if found := noted(s, "go"); !strings.HasPrefix(found+".", "go"+release+".") {
			fail("%s is of %s, and not of %s", dir, found, release)
		}
	}
	return release
}

// among are the recorded runs that asked one question, by one of several workloads, in the conditions in which a folder
// asked it, and on a machine that others left alone. Where the folder's run found an ordinary load, they are of that
// rate. A rate that was not kept does not count.
func (m *maker) among(dir, stack string, works ...string) (all kin) {
	by := slices.IndexFunc(works, func(work string) bool { return m.find(dir, work, stack) != nil })
	if by < 0 {
		fail("%s has not measured %s at %s", dir, stack, strings.Join(works, " or "))
	}
	s, asked := m.first(dir, works[by], stack)
	left := func(r repeat) bool {
		return r.Others > verdict.BusyMachine || !r.Kept() || asked.Rate > 0 && r.Rate > 0 && r.Rate != asked.Rate
	}
	for of, k := range m.recorded() {
		if slices.Contains(works, of.workload) && of.stack == stack && of.conditions == conditionsOf(s, asked.Answer) {
			all = append(all, slices.DeleteFunc(slices.Clone(k), left)...)
		}
	}
	slices.SortFunc(all, func(a, b repeat) int { return cmp.Compare(a.Ratio, b.Ratio) })
	return all
}

// alike are those of among that asked at one rate, 0 for callers who call again at once, and with one number of
// connections of JSON and of the stack.
func (m *maker) alike(dir, stack string, rate, base, own int, works ...string) kin {
	return slices.DeleteFunc(m.among(dir, stack, works...), func(r repeat) bool {
		return rate > 0 && r.Rate > 0 && int(r.Rate) != rate || r.BaseFacts == nil || r.Facts == nil ||
			int(r.BaseFacts.Connections) != base || int(r.Facts.Connections) != own
	})
}

// Cores is a sentence of how much more of a core a stack uses than the base, at so many calls a second.
func (k kin) Cores(rate float64) string {
	var all []float64
	for _, r := range k {
		all = append(all, r.Micro()*rate/1e6)
	}
	if slices.Min(all) < 0 {
		fail("%s doesn't always use more of a core", k[0].Stack)
	}
	return report.Label(k[0].Stack) + " uses " + tenths(all) + " of a CPU core more"
}

// One is one of the runs, a decided one if there is any, for a sentence that has the range of them all.
func (k kin) One() *comparison {
	one := k[max(0, slices.IndexFunc(k, func(r repeat) bool { return sure(r.Figure) }))].comparison
	one.again = nil
	for _, r := range k {
		one.again = append(one.again, r.comparison)
	}
	return &one
}

// Calls is the range of how many calls a second a stack answers, in times the base's.
func (k kin) Calls() string {
	var all []float64
	for _, r := range k {
		all = append(all, 1/r.Timed().Figure.Ratio)
	}
	return tenths(all)
}

// Saved is the range of how much less than the base a stack takes, in percent.
func (k kin) Saved() string {
	var all []float64
	for _, r := range k {
		all = append(all, 100*(1-r.Ratio))
	}
	if slices.Min(all) <= 0 {
		fail("%s saves nothing in one of these runs", k[0].Stack)
	}
	return fmt.Sprintf("%.0f to %.0f%%", slices.Min(all), slices.Max(all))
}

// each are the runs of several folders that asked one question about messages of their own, so that no range of records
// has them both.
func (m *maker) each(work, stack string, dirs ...string) (all kin) {
	for i, dir := range dirs {
		if slices.Contains(dirs[:i], dir) {
			fail("%s is named twice", dir)
		}
		s, _ := m.first(dir, work, stack)
		all = append(all, repeat{dir, machine(s), *m.led(dir, work, stack)})
	}
	return all
}

// bodies is the range of the JSON of request and reply together, in kB, over runs with messages of their own.
func (m *maker) bodies(dirs ...string) string {
	var all []float64
	for _, dir := range dirs {
		b := m.run(dir).Call.Bodies[0]
		all = append(all, kilo(b.Request+b.Reply))
	}
	return tenths(all)
}

// tenths is a range of figures, or one figure if both ends round to it.
func tenths(all []float64) string {
	lo, hi := fmt.Sprintf("%.1f", slices.Min(all)), fmt.Sprintf(" to %.1f", slices.Max(all))
	return lo + strings.TrimSuffix(hi, " to "+lo)
}

// perSecond is how many calls a second a call's time makes, to the next hundred.
func perSecond(ns float64) float64 { return math.Round(1e7/ns) * 100 }

// calls says how many calls a second callers made who call again at once, of JSON and of a stack.
func (m *maker) calls(dir, work, stack string) string {
	a := m.answer(dir, work, stack)
	return grouped(perSecond(a.BaseNs)) + " and " + grouped(perSecond(a.Paired()))
}

// String is the range of the ratios and the number of runs.
func (k kin) String() string {
	if len(k) == 0 {
		return "–"
	}
	lo, hi := fmt.Sprintf("%.2f", k[0].Ratio), fmt.Sprintf("–%.2f", k[len(k)-1].Ratio)
	return fmt.Sprintf("%s%s (%d)", lo, strings.TrimSuffix(hi, "–"+lo), len(k))
}

// decided are the runs that say less or more: less first.
func (k kin) decided() kin {
	return slices.DeleteFunc(slices.Clone(k), func(r repeat) bool {
		return r.Verdict != verdict.Less && r.Verdict != verdict.More
	})
}

// contrary is whether one run says less and another one more.
func (k kin) contrary() bool {
	d := k.decided()
	return len(d) > 0 && d[0].Verdict != d[len(d)-1].Verdict
}

// differs says why the runs have no verdict in common, and nothing where all lie on one side of 1.
func (k kin) differs() string {
	switch {
	case k.contrary():
		return "some recorded runs say less, and others more"
	case len(k) > 0 && k[0].Ratio < 1 && k[len(k)-1].Ratio > 1:
		return "the recorded runs lie on both sides of 1, and no two verdicts are contrary"
	}
	return ""
}

// Factor is how many times as far from 1 the second run's ratio is as the first one's.
func (k kin) Factor() float64 { return (k[1].Ratio - 1) / (k[0].Ratio - 1) }

// directions are what is known of the comparisons that two folders of results have, or more.
type directions struct {
	Repeated int // on machines of one name
	Parted   int // of these, with two intervals that don't meet
	Decided  int
	Contrary []string // whose direction changed
	apart    []kin    // of the others, the two runs on two machines with the largest factor; by that
}

// Median and Most are the two runs of the factor in the middle, and of the largest.
func (d directions) Median() kin { return d.apart[len(d.apart)/2] }
func (d directions) Most() kin   { return d.apart[len(d.apart)-1] }

// directions reads all recorded runs.
func (m *maker) directions() (d directions) {
	byName := func(a, b kind) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	for _, of := range slices.SortedFunc(maps.Keys(m.recorded()), byName) {
		all := m.recorded()[of]
		if parted, repeated := all.parted(); repeated {
			d.Repeated++
			d.Parted += map[bool]int{true: 1}[parted]
		}
		k := all.decided()
		if !slices.ContainsFunc(k, func(r repeat) bool { return r.folder != k[0].folder }) {
			continue
		}
		d.Decided++
		if k.contrary() {
			d.Contrary = append(d.Contrary, fmt.Sprintf("`%s` at %s", k[0].Stack, k[0].Does))
			continue
		}
		var pairs []kin
		for _, a := range k {
			for _, b := range k {
				if a.machine != b.machine {
					pairs = append(pairs, kin{a, b})
				}
			}
		}
		if pairs != nil {
			d.apart = append(d.apart, slices.MaxFunc(pairs, byFactor))
		}
	}
	slices.SortFunc(d.apart, byFactor)
	return d
}

// parted tells whether two intervals don't meet, of folders that one machine filled, if there are two.
func (k kin) parted() (parted, repeated bool) {
	for i, a := range k {
		for _, b := range k[:i] { // whose ratio is lower
			if a.machine == b.machine && a.folder != b.folder {
				parted, repeated = parted || b.Hi < a.Lo, true
			}
		}
	}
	return parted, repeated
}

func byFactor(a, b kin) int { return cmp.Compare(a.Factor(), b.Factor()) }

// quotient is one ratio to a base by another, as independent figures.
func quotient(a, b *comparison) *comparison {
	width := math.Exp(math.Hypot(math.Log(a.Hi/a.Lo)/2, math.Log(b.Hi/b.Lo)/2))
	var q comparison
	q.Workload, q.Stack, q.GOMAXPROCS, q.Apart, q.OfCPU = a.Workload, a.Stack, a.GOMAXPROCS, a.Apart, a.OfCPU
	q.Ratio = a.Ratio / b.Ratio
	q.Lo, q.Hi = q.Ratio/width, q.Ratio*width
	q.Verdict = verdict.Undecided
	if floor := 1 + max(a.NoiseFloor, b.NoiseFloor); q.Hi < 1/floor {
		q.Verdict = verdict.Less
	} else if q.Lo > floor {
		q.Verdict = verdict.More
	}
	return &q
}

// where says where the runs of a folder were made, and links the folder, or the report of a run.
func (m *maker) where(dir string) string {
	words, link := m.origin(dir)
	return "[" + words + "](" + link + ")"
}

// origin is where without Markdown.
func (m *maker) origin(dir string) (words, link string) {
	run, page := m.run(m.within(dir)[0]), ""
	if _, err := os.Stat(filepath.Join(m.root, dir, "summary.json")); err == nil {
		page = "/report.md"
	}
	return fmt.Sprintf("%s, %s, %s", machine(run), noted(run, "go"), noted(run, "date")), m.link(dir) + page
}

// source says where the runs of the first folder were made, and what kind of hour the folders' runs had.
func (m *maker) source(dirs ...string) string {
	all := m.run(dirs[0])
	for _, dir := range dirs[1:] {
		all.Answers = slices.Concat(all.Answers, m.run(dir).Answers)
	}
	return strings.TrimSuffix(m.where(dirs[0])+".\n"+hour(all, false), "\n")
}

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

// ratio is a ratio alone, and times is a ratio with its interval.
func ratio(a *comparison) string { return table.Ratio(a.Ratio) }
func times(a *comparison) string { return sized(*a) }

// micro is by how many microseconds a call takes longer.
func micro(a *comparison) float64 { return a.Micro() }

// servers is the CPU time of a call in the server alone, with JSON and with a stack. It has no interval.
func servers(a *comparison) string {
	if a.BaseMeans.ServerCPUNs == 0 || a.StackMeans.ServerCPUNs == 0 {
		fail("%s has no CPU of servers alone", a.Workload)
	}
	of := func(ns float64, stack string) string {
		return fmt.Sprintf("%.0f µs with %s", ns/1000, report.Label(stack))
	}
	return of(a.BaseMeans.ServerCPUNs, "httpjson") + " and " + of(a.StackMeans.ServerCPUNs, a.Stack)
}
