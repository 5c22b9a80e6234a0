// Package report makes the page that a run ends in: the answer in sentences, a picture and tables, as HTML, Markdown
// and SVG. Whatever a page says is made of a Summary, which is also what the run's summary.json has.
package report

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	text "text/template"
	"time"

	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// Release is of the files that this package writes and reads. Another number means other names or meanings.
const Release = 3

// Summary is what a run found. Durations are in nanoseconds, ratios are to the base. The 95 % intervals hold one by
// one, not together. docs/summary.md has the names of summary.json.
type Summary struct {
	Release     int      `json:"release"`
	Command     string   `json:"command"`
	Environment []string `json:"environment"`
	Notes       []string `json:"notes,omitempty"`
	Warnings    []string `json:"warnings,omitempty"`
	Base        string   `json:"base"`
	Estimator   string   `json:"estimator,omitempty"` // verdict.Estimator; none in older results
	Counting    string   `json:"counting,omitempty"`  // workload.Counting; none in older results
	Plan        Plan     `json:"plan"`
	Over        string   `json:"over,omitempty"` // of a sweep, what its values are of, such as "calls a second"
	Answers     []Answer `json:"answers"`
	Remote      bool     `json:"remote,omitempty"` // the servers ran elsewhere: a call takes what its caller waits

	Call   *Call  `json:"call,omitempty"`   // of a method of one's own
	Layers string `json:"layers,omitempty"` // of its first workload, as explain prints them

	Raw string `json:"-"` // benchmark output that the page has inside
}

// Plan is how a run was to be measured.
type Plan struct {
	Processes int    `json:"processes"`
	Layouts   int    `json:"layouts"`
	Seed      uint64 `json:"seed"`
}

// Answer is about one stack at one workload.
type Answer struct {
	Workload   string `json:"workload"`
	Does       string `json:"title"`
	Calls      string `json:"kind_of_calls,omitempty"` // what they are, where the title has their load too
	Value      string `json:"value,omitempty"`         // in a sweep: a number, or Saturated
	GOMAXPROCS int    `json:"gomaxprocs"`
	Stack      string `json:"stack"`
	Leads      string `json:"leads"` // ByTime, ByCPU or ByTail: the figure that the question asks for

	Wired
	verdict.Answer

	BaseFacts *Counts `json:"base_counts,omitempty"`
	Facts     *Counts `json:"stack_counts,omitempty"`

	Network *Network `json:"network,omitempty"` // that calls crossed, with a router

	OtherJSON string `json:"other_json,omitempty"` // how the stack's JSON differs from the base's
}

// Wired is what surrounded the calls of an answer, as its workload asked for it.
type Wired struct {
	Callers int           `json:"callers,omitzero"`  // at a time; 0 in older results
	Conns   int           `json:"conns,omitzero"`    // that each stack was asked for; 0 is as its library is wired
	Rate    float64       `json:"rate,omitzero"`     // planned calls a second; 0 if callers call again at once
	Chosen  bool          `json:"ordinary,omitzero"` // the run chose the rate
	Apart   bool          `json:"apart,omitzero"`    // the server had a process of its own
	Link    string        `json:"link,omitzero"`
	Wait    time.Duration `json:"wait_ns,omitzero"`    // of a handler
	Data    int           `json:"data_bytes,omitzero"` // that a call sent, of streams and large messages
}

// AtRate tells whether calls were planned.
func (w Wired) AtRate() bool { return w.Rate > 0 }

// Many tells whether several callers called at a time, each again at once.
func (w Wired) Many() bool { return w.Rate == 0 && w.Callers > 1 }

// Counts are workload.Facts, per call but for Calls and Connections, by the names that files have.
type Counts struct {
	Calls            int64   `json:"calls"`
	Sent             float64 `json:"sent_bytes"` // by the client, beneath TLS
	Received         float64 `json:"received_bytes"`
	Writes           float64 `json:"writes,omitzero"`
	Reads            float64 `json:"reads,omitzero"`
	Allocs           float64 `json:"allocs"`
	AllocBytes       float64 `json:"alloc_bytes"`
	Connections      int64   `json:"connections"`
	ServerAllocs     float64 `json:"server_allocs,omitzero"` // of a server that has a process of its own
	ServerAllocBytes float64 `json:"server_alloc_bytes,omitzero"`
	ServerWrites     float64 `json:"server_writes,omitzero"`
	ServerReads      float64 `json:"server_reads,omitzero"`
	Handled          float64 `json:"handled,omitzero"` // by the server, of a call; 0 if it doesn't count
}

// The values of Leads: what somebody waits for, what calls cost, and over a network with a router at a planned rate the
// 99th percentile of latencies.
const (
	ByTime = "time"
	ByCPU  = "cpu"
	ByTail = "p99"
)

// Fails says why an answer has too few processes.
func (a *Answer) Fails(why string) {
	for _, r := range []*verdict.Reason{&a.Time.Reason, &a.CPU.Reason} {
		if r.Kind == verdict.TooFew {
			r.Failed = why
		}
	}
}

// Led is an answer with one of its figures.
type Led struct {
	Answer Answer
	Figure verdict.Figure
	OfCPU  bool
}

// Led has the figure that the question asks for.
func (a Answer) Led() Led { return a.led(a.Leads == ByCPU) }

// Timed has the figure of time, or that of CPU at a planned rate, which has no other.
func (a Answer) Timed() Led { return a.led(false) }

func (a Answer) led(cpu bool) Led { return Led{a, a.Leading(cpu), a.ByCPU(cpu)} }

// Led are all answers with the figures that their questions ask for.
func (s Summary) Led() (all []Led) {
	for _, a := range s.Answers {
		all = append(all, a.Led())
	}
	return all
}

// Timed are all answers with their figures of time, or of CPU at a planned rate.
func (s Summary) Timed() (all []Led) {
	for _, a := range s.Answers {
		all = append(all, a.Timed())
	}
	return all
}

// measure is what the leading figures are of: CPU, time, or CPU or time.
func (s Summary) measure() string {
	by := map[bool]bool{}
	for _, l := range s.Led() {
		if l.Figure.Ratio > 0 {
			by[l.OfCPU] = true
		}
	}
	switch {
	case !by[true]:
		return "time"
	case len(by) == 1:
		return "CPU"
	}
	return "CPU or time"
}

// Micro is by how many microseconds a call of the stack takes longer, by the ratio.
func (l Led) Micro() float64 { return l.Figure.BaseNs * (l.Figure.Ratio - 1) / 1000 }

// Paired returns the base's time times the ratio. StackNs, the mean of the stack's own times, has the noise that pairs
// don't have.
func (l Led) Paired() float64 { return cmp.Or(l.Figure.BaseNs*l.Figure.Ratio, l.Figure.StackNs) }

// Label is how sentences call a stack. Of the build of a stack it keeps what tables have room for.
func Label(stack string) string {
	name, build, _ := strings.Cut(stack, "@")
	name, converts := strings.CutSuffix(name, ".converted")
	switch name {
	case "grpcprotobuf":
		name = "gRPC"
	case "httpjson":
		name = "JSON"
	}
	if converts { // messages for a handler that takes others
		name += " with conversion"
	}
	if build != "" {
		name += " with " + short(build)
	}
	return table.Line(name)
}

// short is a build as tables have room for: what follows the last slash, or KEY=VALUE. A long one is cut in the middle,
// so that both ends stay, the value above all.
func short(build string) string {
	const most, end, value = 24, 10, 16
	before, _, variable := strings.Cut(build, "=")
	if !variable {
		before, build = "", path.Base(build)
	}
	all, kept := []rune(build), end
	if len(all) <= most {
		return build
	}
	if variable {
		kept = min(max(kept, len(all)-len([]rune(before))), value)
	}
	return string(all[:most-1-kept]) + "…" + string(all[len(all)-kept:])
}

// Builds has a line for each build whose name tables cut.
func (s Summary) Builds() (lines []string) {
	for _, stack := range append([]string{s.Base}, s.Stacks()...) {
		if label := Label(stack); strings.Contains(label, "…") && !strings.Contains(stack, "…") {
			lines = append(lines, label+" is "+table.Line(stack)+".")
		}
	}
	return lines
}

// Stacks are the compared ones, in their order.
func (s Summary) Stacks() (names []string) {
	for _, a := range s.Answers {
		if !slices.Contains(names, a.Stack) {
			names = append(names, a.Stack)
		}
	}
	return names
}

// Of returns the answers about one stack.
func (s Summary) Of(stack string) []Answer {
	return slices.DeleteFunc(slices.Clone(s.Answers), func(a Answer) bool { return a.Stack != stack })
}

// ByRatio returns those about one stack that have a ratio, the lowest first.
func ByRatio(all []Led, stack string) []Led {
	own := slices.DeleteFunc(slices.Clone(all), func(l Led) bool { return l.Answer.Stack != stack || l.Figure.Ratio == 0 })
	slices.SortStableFunc(own, func(a, b Led) int { return cmp.Compare(a.Figure.Ratio, b.Figure.Ratio) })
	return own
}

// restless is how far the base varies in an hour that sentences name first. Beyond it the noise floor exceeds
// verdict.Margin, so that no answer is the same.
const restless = 0.25

// Machine is the environment without the libraries, which Libraries are.
func (s Summary) Machine() []string {
	return slices.DeleteFunc(slices.Clone(s.Environment), library)
}

func (s Summary) Libraries() []string {
	return slices.DeleteFunc(slices.Clone(s.Environment), func(line string) bool { return !library(line) })
}

// library tells path@version from name=value.
func library(line string) bool {
	name, _, _ := strings.Cut(line, "=")
	return strings.Contains(name, "@")
}

// Hour says of a machine that was not quiet what a reader should make of the figures. It is empty if that is nothing.
func (s Summary) Hour() string {
	if said := s.Unrest(); said != "" {
		return "on a noisy machine: " + said + ", so expect other ratios on a quiet one"
	}
	return ""
}

// Unrest is what may have changed sizes, by the figures of both CPU and time: what other programs used of the machine,
// and how far the base varied. It is empty if the machine was quiet.
func (s Summary) Unrest() string {
	others, varied := 0.0, 0.0
	for _, l := range slices.Concat(s.Led(), s.Timed()) {
		others, varied = max(others, l.Answer.Others), max(varied, l.Figure.BaseVaried)
	}
	var said []string
	if others > verdict.BusyMachine {
		said = append(said, fmt.Sprintf("other programs used up to %s of it", table.Percent(others)))
	}
	switch {
	case varied > 1:
		said = append(said, Label(s.Base)+"'s own time varied by more than a factor of two")
	case varied > restless:
		said = append(said, fmt.Sprintf("%s's own time varied by %s", Label(s.Base), table.Percent(varied)))
	}
	return strings.Join(said, ", and ")
}

// unquiet tells whether the machine may have decided what a line says: other programs used much of it, or nothing is
// decided and the base varied.
func (l Led) unquiet() bool {
	return l.Answer.Others > verdict.BusyMachine || l.Figure.Verdict == verdict.Undecided && l.Figure.BaseVaried > restless
}

// cpu is the heading of CPU time: servers elsewhere tell none.
func (s Summary) cpu() string {
	return either(s.Remote, clientHeading, cpuHeading)
}

// rows matches the output of benchmarks.
var rows = regexp.MustCompile(`(?m)^Benchmark\S*\s+\d+\s+\S+ ns/op`)

// Read reads what a run left in a folder.
func Read(from string) (s Summary, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("report: %w", err)
		}
	}()
	if s, _, err = readSummary(from); err == nil && !s.Counted() {
		s.Raw, err = readFile(filepath.Join(from, "bench.txt"))
	}
	return s, err
}

// readSummary reads the summary.json of a folder, and returns its text too.
func readSummary(from string) (s Summary, data string, err error) {
	if info, err := os.Stat(from); err == nil && !info.IsDir() {
		text, _ := readFile(from) // of one that can't be read nothing is said
		if rows.MatchString(text) {
			return s, "", fmt.Errorf("%s has rows of go test -bench, which benchstat reads: name the folder that rpcbench run "+
				"made", from)
		}
		return s, "", fmt.Errorf("%s is a file: name the folder that rpcbench run made", from)
	}
	data, err = readFile(filepath.Join(from, "summary.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return s, "", fmt.Errorf("%s has no summary.json: name a folder that rpcbench run made", from)
	}
	if err == nil {
		s, err = Parse(from, data)
	}
	return s, data, err
}

// Parse reads the summary.json of a folder, which has all but the raw data.
func Parse(from, data string) (s Summary, err error) {
	none := json.Unmarshal([]byte(data), &struct{ Release *int }{&s.Release})
	if s.Release == Release && none == nil {
		none = json.Unmarshal([]byte(data), &s)
	}
	switch {
	case none != nil:
		return s, fmt.Errorf("%s: summary.json is no summary of a run: %w", from, none)
	case s.Release != Release:
		return s, fmt.Errorf("%s was made by another release of rpcbench (%d, this one reads %d): "+
			"make the report with that one", from, s.Release, Release)
	case !s.Measured() && !s.Counted():
		return s, fmt.Errorf("%s has no answers: nothing was measured", from)
	}
	for _, a := range s.Answers {
		if !sound(a.Answer) {
			return s, fmt.Errorf("%s: what %s of %s has are no figures of a comparison", from, a.Workload, a.Stack)
		}
	}
	return s, nil
}

// Measured tells whether any process has measured anything.
func (s Summary) Measured() bool {
	return slices.ContainsFunc(s.Answers, func(a Answer) bool { return a.Processes.Counted > 0 })
}

// sound tells figures of a comparison from other numbers. A ratio of 0 is none.
func sound(a verdict.Answer) bool {
	for _, f := range []verdict.Figure{a.Time, a.CPU} {
		for _, v := range []float64{f.Ratio, f.Lo, f.Hi, f.NoiseFloor, f.CopyDiffers, f.BaseVaried, f.BaseNs, f.StackNs} {
			if !(v >= 0 && v <= math.MaxFloat64) {
				return false
			}
		}
		for _, ns := range f.BasesNs {
			if !(ns > 0 && ns <= math.MaxFloat64) {
				return false
			}
		}
		interval := 0 < f.Lo && f.Lo <= f.Ratio && f.Ratio <= f.Hi && f.CopyDiffers < 1e6 && f.BaseVaried < 1e6 &&
			f.NoiseFloor < 1e6
		if none := f.Ratio == 0 && f.Lo == 0 && f.Hi == 0; !none && !interval {
			return false
		}
	}
	for _, v := range []float64{a.Others, a.BaseMeans.CPUNs, a.StackMeans.CPUNs} {
		if !(v >= 0 && v <= math.MaxFloat64) {
			return false
		}
	}
	for _, p := range []verdict.Percentile{a.Percentiles.P50, a.Percentiles.P95, a.Percentiles.P99, a.Percentiles.P999} {
		const most = 1e18 // a picture has no place for more
		if !(p.BaseNs >= 0 && p.BaseNs < most && p.StackNs >= 0 && p.StackNs < most) || (p.BaseNs == 0) != (p.StackNs == 0) {
			return false
		}
	}
	return true
}

// readFile reads a file that a page can hold.
func readFile(name string) (string, error) {
	const most = 64 << 20
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is no file", name)
	case info.Size() > most:
		return "", fmt.Errorf("%s has %d MB: a page takes %d at most", name, info.Size()>>20, most>>20)
	}
	data, err := os.ReadFile(name)
	return string(data), err
}

// Save writes summary.json in dir, in place of one that is there.
func (s Summary) Save(dir string) error {
	text, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return put(filepath.Join(dir, "summary.json"), append(text, '\n'))
}

// Write makes report.html, report.md and answer.svg in dir, or none if one of them is there. Of calls that were counted
// alone it makes report.md.
func (s Summary) Write(dir string) error {
	names, pages := []string{"report.html", "report.md", "answer.svg"}, []func(io.Writer) error{s.HTML, s.Markdown, s.SVG}
	if s.Counted() {
		names, pages = names[1:2], pages[1:2]
	}
	return write(dir, names, pages)
}

// write makes files in dir, or none if one of them is there.
func write(dir string, names []string, pages []func(io.Writer) error) error {
	made := make([]bytes.Buffer, len(names))
	for i, to := range pages {
		names[i] = filepath.Join(dir, names[i])
		if err := to(&made[i]); err != nil {
			return err
		}
		if _, err := os.Lstat(names[i]); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("report: %s is there already: delete it, or name another folder with -out", names[i])
		}
	}
	for i, name := range names {
		if err := put(name, made[i].Bytes()); err != nil {
			for _, begun := range names[:i] {
				_ = os.Remove(begun)
			}
			return err
		}
	}
	return nil
}

// put writes a file beside its place and renames it, so that a full disk leaves no half of one.
func put(name string, data []byte) error {
	part := name + ".part"
	err := os.WriteFile(part, data, 0o644)
	if err == nil {
		err = os.Rename(part, name)
	}
	if err != nil {
		_ = os.Remove(part)
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

//go:embed report.html.tmpl report.md.tmpl counts.md.tmpl pooled.html.tmpl pooled.md.tmpl answer.svg.tmpl words.tmpl
var files embed.FS

func functions(tables func(*table.Table) any) map[string]any {
	return map[string]any{"label": Label, "join": strings.Join, "cell": table.Cell, "line": table.Line, "lines": lines,
		"table": tables}
}

// HTML writes a page that needs nothing else.
func (s Summary) HTML(w io.Writer) error { return draw(w, "report.html.tmpl", s) }

// SVG writes the picture alone.
func (s Summary) SVG(w io.Writer) error { return s.Picture().SVG(w) }

// SVG writes the picture.
func (p Picture) SVG(w io.Writer) error { return draw(w, "picture", p) }

func draw(w io.Writer, name string, data any) error {
	tables := func(t *table.Table) any { return template.HTML(t.HTML()) } // whose cells are escaped
	pages, err := template.New("").Funcs(functions(tables)).ParseFS(files, "report.html.tmpl", "pooled.html.tmpl",
		"answer.svg.tmpl", "words.tmpl")
	return template.Must(pages, err).ExecuteTemplate(w, name, data)
}

// Markdown writes the same as HTML, without the picture and the raw data.
func (s Summary) Markdown(w io.Writer) error {
	name := "report.md.tmpl"
	if s.Counted() {
		name = "counts.md.tmpl"
	}
	return markdown(w, name, s)
}

func markdown(w io.Writer, name string, data any) error {
	page, err := text.New("").Funcs(functions(func(t *table.Table) any { return t.Markdown() })).ParseFS(files, name,
		"words.tmpl")
	return text.Must(page, err).ExecuteTemplate(w, name, data)
}

// flight is a number of calls at once.
func flight(calls float64) string { return table.Known(calls, fmt.Sprintf("%.3g", calls)) }

func others(share float64) string { return table.Known(share, table.Percent(share)) }

// lines is text of several lines, without a mark-up of its own.
func lines(text string) string {
	var all []string
	for l := range strings.Lines(strings.TrimSpace(text)) {
		all = append(all, strings.TrimRight(strings.ReplaceAll(table.Line(l), "`", "'"), " "))
	}
	return strings.Join(all, "\n")
}
