// Package report makes the page that a run ends in: the answer in sentences, a picture and tables, as HTML, Markdown and
// SVG. Whatever a page says is made of a Summary, which is also what the run's summary.json has.
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
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	text "text/template"

	"golang.org/x/perf/benchfmt"

	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
)

// Release is of the files that this package writes and reads. Another number means other names or meanings.
const Release = 1

// Summary is what a run found. Durations are in nanoseconds, ratios are to the base. The 95 % intervals hold one by
// one, not together.
type Summary struct {
	Release     int      `json:"release"`
	Command     string   `json:"command"`
	Environment []string `json:"environment"`
	Notes       []string `json:"notes,omitempty"`
	Warnings    []string `json:"warnings,omitempty"`
	Base        string   `json:"base"`
	Seed        uint64   `json:"seed"`
	Processes   int      `json:"processes"`
	Layouts     int      `json:"layouts"`
	Answers     []Answer `json:"answers"`

	Raw string `json:"-"` // benchmark output that the page has inside
}

// Answer is about one stack at one workload. Ratio and what goes with it are 0 if too few processes measured.
type Answer struct {
	Workload   string         `json:"workload"`
	Does       string         `json:"does"`
	Bytes      *int           `json:"bytes,omitempty"` // of payload, of workloads that differ in nothing else
	GOMAXPROCS int            `json:"gomaxprocs"`
	Stack      string         `json:"stack"`
	Processes  int            `json:"processes"`
	BaseNs     float64        `json:"base_ns"`
	BaseCPUNs  float64        `json:"base_cpu_ns"`
	Ns         float64        `json:"ns"`
	CPUNs      float64        `json:"cpu_ns"`
	Ratio      float64        `json:"ratio,omitempty"`
	Lo         float64        `json:"lo,omitempty"`
	Hi         float64        `json:"hi,omitempty"`
	Floor      float64        `json:"floor,omitempty"`
	Moved      float64        `json:"moved"`
	Verdict    timing.Verdict `json:"verdict"`
	Bases      []float64      `json:"bases,omitempty"` // ns per call of the base in each process, in order of time

	BaseFacts *workload.Facts `json:"base_facts,omitempty"`
	Facts     *workload.Facts `json:"facts,omitempty"`
}

// Micro is by how many microseconds a call of the stack takes longer, by the ratio.
func (a Answer) Micro() float64 { return a.BaseNs * (a.Ratio - 1) / 1000 }

// Paired is the stack's time by the base's and the ratio. Ns, its own mean, has the noise that pairs don't have.
func (a Answer) Paired() float64 { return cmp.Or(a.BaseNs*a.Ratio, a.Ns) }

// NoiseFloor is what a difference has to exceed.
func (a Answer) NoiseFloor() float64 { return versus.NoiseFloor(a.Floor, a.Moved) }

// Said is the verdict, and how much was measured where that is not all.
func (a Answer) Said(processes int) string {
	switch {
	case a.Processes == 0:
		return "not measured"
	case a.Processes < processes:
		return fmt.Sprintf("%s, %d of %d processes", a.Verdict, a.Processes, processes)
	}
	return string(a.Verdict)
}

// Why tells what an undecided answer lacks.
func (a Answer) Why() string {
	switch {
	case a.Ratio == 0:
		return "too few processes have measured"
	case a.Moved > versus.Steady:
		return fmt.Sprintf("the base moved by %s meanwhile", percent(a.Moved))
	case a.Floor > versus.Margin:
		return fmt.Sprintf("the noise floor is %s", percent(a.Floor))
	}
	return "the interval is too wide"
}

// Label is how sentences call a stack. Of the build of a stack it keeps what follows the last slash.
func Label(stack string) string {
	name, build, _ := strings.Cut(stack, "@")
	switch name {
	case "grpcprotobuf":
		name = "gRPC"
	case "httpjson":
		name = "JSON"
	}
	if build != "" {
		if build = path.Base(build); len(build) > 24 {
			build = build[:23] + "…"
		}
		name += " with " + build
	}
	return name
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

// Sentences are the answer in words.
func (s Summary) Sentences() (all []string) {
	for _, stack := range s.Stacks() {
		if own := s.Of(stack); len(own) == 1 && own[0].Ratio > 0 {
			a := own[0]
			all = append(all, fmt.Sprintf("%s takes %s times as long as %s (%s–%s), %s µs: %s, for %s.", Label(stack), number(a.Ratio),
				Label(s.Base), number(a.Lo), number(a.Hi), signed(a.Micro()), a.Verdict, a.Does))
			continue
		}
		counts := map[timing.Verdict][]string{}
		measured := 0
		for _, a := range s.Of(stack) {
			if a.Processes == 0 {
				continue
			}
			measured++
			counts[a.Verdict] = append(counts[a.Verdict], a.Does)
			if a.Workload != workload.Small || a.Ratio == 0 {
				continue
			}
			more := "more"
			if a.Ratio < 1 {
				more = "less"
			}
			micro := math.Abs(a.Micro())
			all = append(all, fmt.Sprintf("On one core a small call of %s takes %s times as long as one of %s (%s–%s): %.1f µs %s.",
				Label(stack), number(a.Ratio), Label(s.Base), number(a.Lo), number(a.Hi), micro, more))
			if a.Verdict == timing.Undecided {
				all = append(all, "That difference is undecided: "+a.Why()+".")
			}
			all = append(all, fmt.Sprintf("Of a request that takes 0.1, 1 or 10 ms, the difference is %s, %s or %s.",
				percent(micro/100), percent(micro/1000), percent(micro/10000)))
		}
		for _, v := range []timing.Verdict{timing.Faster, timing.Slower, timing.Equal, timing.Undecided} {
			if does := counts[v]; len(does) > 0 {
				all = append(all, fmt.Sprintf("%s is %s in %d of %d workloads: %s.", Label(stack), v, len(does), measured, strings.Join(does, "; ")))
			}
		}
	}
	return all
}

// Crossing is where the answer flips between two workloads: at a size, with the limits of its interval, if At is not 0.
type Crossing struct {
	Stack, Below, Above, From, To string
	At, Lo, Hi                    float64 // bytes
}

// sequences are workloads that differ in one thing other than the bytes of payload: callers, connection, structure.
var sequences = [][]string{
	{"small-1-caller", "small-50-callers"},
	{"mixed", "mixed-50-callers"},
	{"stream", workload.Small, "cold", "cold-tls"},
	{"mixed", "structured-1kB", "structured-10kB"},
}

// Crossings finds where a stack gets faster or slower than the base between two workloads that are both decided.
// Between two payloads the difference in time is taken as linear in the bytes, and so are the limits of the difference.
func (s Summary) Crossings() (all []Crossing) {
	for _, stack := range s.Stacks() {
		decided := slices.DeleteFunc(s.Of(stack), func(a Answer) bool { return a.Verdict != timing.Faster && a.Verdict != timing.Slower })
		payloads := slices.DeleteFunc(slices.Clone(decided), func(a Answer) bool { return a.Bytes == nil })
		slices.SortFunc(payloads, func(a, b Answer) int { return cmp.Compare(*a.Bytes, *b.Bytes) })
		all = append(all, flips(payloads, true)...)
		for _, names := range sequences {
			place := func(a Answer) int { return slices.Index(names, a.Workload) }
			series := slices.DeleteFunc(slices.Clone(decided), func(a Answer) bool { return place(a) < 0 })
			slices.SortFunc(series, func(a, b Answer) int { return cmp.Compare(place(a), place(b)) })
			all = append(all, flips(series, false)...)
		}
	}
	return all
}

// flips finds neighbours in a series with different verdicts.
func flips(series []Answer, payloads bool) (all []Crossing) {
	for i := 1; i < len(series); i++ {
		a, b := series[i-1], series[i]
		if a.Verdict == b.Verdict {
			continue
		}
		c := Crossing{Stack: Label(a.Stack), Below: string(a.Verdict), Above: string(b.Verdict), From: a.Does, To: b.Does}
		if payloads {
			at := func(ratioA, ratioB float64) float64 {
				x0, x1 := float64(*a.Bytes), float64(*b.Bytes)
				y0, y1 := a.BaseNs*(ratioA-1), b.BaseNs*(ratioB-1)
				return x0 + (x1-x0)*y0/(y0-y1)
			}
			lo, hi := at(a.Lo, b.Lo), at(a.Hi, b.Hi)
			c.At, c.Lo, c.Hi = at(a.Ratio, b.Ratio), min(lo, hi), max(lo, hi)
		}
		all = append(all, c)
	}
	return all
}

// Read reads what a run left in a folder, or the output of go test -bench in a file.
func Read(from string) (s Summary, err error) {
	info, err := os.Stat(from)
	if err != nil {
		return s, fmt.Errorf("rpcbench: report: %w", err)
	}
	if !info.IsDir() {
		if s.Raw, err = readFile(from); err == nil {
			err = s.rows(from)
		}
		return s, err
	}
	data, err := readFile(filepath.Join(from, "summary.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("rpcbench: report: %s has no summary.json: name a folder that rpcbench run made", from)
	}
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal([]byte(data), &s); err != nil {
		return s, fmt.Errorf("rpcbench: report: %s: summary.json is no summary of a run: %w", from, err)
	}
	if s.Release != Release {
		return s, fmt.Errorf("rpcbench: report: %s was made by another release of rpcbench (%d, this one reads %d): make the report with that one",
			from, s.Release, Release)
	}
	if !s.Measured() {
		return s, fmt.Errorf("rpcbench: report: %s has no answers: nothing was measured", from)
	}
	for _, a := range s.Answers {
		if a.Ratio != 0 && !sound(a.Ratio, a.Lo, a.Hi) {
			return s, fmt.Errorf("rpcbench: report: %s: %s of %s has the ratio %v (%v–%v), which is none", from, a.Workload, a.Stack, a.Ratio, a.Lo, a.Hi)
		}
	}
	s.Raw, err = readFile(filepath.Join(from, "bench.txt"))
	return s, err
}

// Measured tells whether any process has measured anything.
func (s Summary) Measured() bool {
	return slices.ContainsFunc(s.Answers, func(a Answer) bool { return a.Processes > 0 })
}

// Counted tells whether there are facts.
func (s Summary) Counted() bool {
	return slices.ContainsFunc(s.Answers, func(a Answer) bool { return a.Facts != nil })
}

// sound tells a ratio with an interval from other numbers.
func sound(ratio, lo, hi float64) bool {
	return 0 < lo && lo <= ratio && ratio <= hi && !math.IsInf(hi, 1)
}

// readFile reads a file that a page can hold.
func readFile(name string) (string, error) {
	const most = 64 << 20
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return "", fmt.Errorf("rpcbench: report: %w", err)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("rpcbench: report: %s is no file", name)
	case info.Size() > most:
		return "", fmt.Errorf("rpcbench: report: %s has %d MB: a page takes %d at most", name, info.Size()>>20, most>>20)
	}
	data, err := os.ReadFile(name)
	return string(data), err
}

// row finds the stack and the GOMAXPROCS in a row's name.
var row = regexp.MustCompile(`/stack=([^/]+?)(?:/.*?)?(?:-(\d+))?$`)

// rows makes answers of benchmark output: of the rows that have a ratio with an interval.
func (s *Summary) rows(from string) error {
	s.Command, s.Base, s.Processes = "go test -bench", "the base", 1
	for reader := benchfmt.NewReader(strings.NewReader(s.Raw), from); reader.Scan(); {
		r, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		value := func(unit string) float64 {
			v, _ := r.Value(unit)
			return v
		}
		name := row.FindSubmatch(r.Name)
		if name == nil {
			continue
		}
		if value("aa-ratio") > 0 {
			s.Base = string(name[1])
		}
		a := Answer{Stack: string(name[1]), Ratio: value("base-ratio"), Lo: value("base-ratio-lo"),
			Hi: value("base-ratio-hi"), Ns: 1e9 * value("sec/op"), Floor: value("noise-floor-%") / 100,
			Moved: value("base-moved-%") / 100, Processes: max(1, int(value("processes"))), GOMAXPROCS: 1}
		if !sound(a.Ratio, a.Lo, a.Hi) {
			continue
		}
		a.BaseNs = a.Ns / a.Ratio
		if len(name[2]) > 0 {
			a.GOMAXPROCS, _ = strconv.Atoi(string(name[2]))
		}
		a.Does = fmt.Sprintf("a small message, GOMAXPROCS=%d", a.GOMAXPROCS)
		like := func(other Answer) bool { return other.Stack == a.Stack && other.GOMAXPROCS == a.GOMAXPROCS }
		if n := len(s.Answers) - len(slices.DeleteFunc(slices.Clone(s.Answers), like)); n > 0 {
			a.Does += fmt.Sprintf(", repeat %d", n+1)
		}
		a.Verdict = timing.Interval{Median: a.Ratio, Lo: a.Lo, Hi: a.Hi}.Verdict(a.NoiseFloor(), versus.Margin)
		s.Processes = max(s.Processes, a.Processes)
		s.Answers = append(s.Answers, a)
	}
	if len(s.Answers) == 0 {
		return fmt.Errorf("rpcbench: report: %s has no row with a ratio and its interval: name output of go test -bench Versus, or a folder of rpcbench run", from)
	}
	if s.Processes == 1 {
		s.Warnings = append(s.Warnings, "each ratio is of one process of one build: rpcbench run measures several")
	}
	s.Warnings = append(s.Warnings, "the intervals of go test -bench Versus hold together at 95 %, and rows without a ratio are in the raw data only")
	return nil
}

// Write makes report.html, report.md and answer.svg in dir, or none if one of them is there.
func (s Summary) Write(dir string) error {
	names := []string{"report.html", "report.md", "answer.svg"}
	made := make([]bytes.Buffer, len(names))
	for i, to := range []func(io.Writer) error{s.HTML, s.Markdown, s.SVG} {
		names[i] = filepath.Join(dir, names[i])
		if err := to(&made[i]); err != nil {
			return err
		}
		if _, err := os.Lstat(names[i]); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("rpcbench: report: %s is there already: delete it, or name another folder with -out", names[i])
		}
	}
	for i, name := range names {
		if err := os.WriteFile(name, made[i].Bytes(), 0o644); err != nil {
			return fmt.Errorf("rpcbench: report: %w", err)
		}
	}
	return nil
}

//go:embed report.html.tmpl report.md.tmpl answer.svg.tmpl
var files embed.FS

func functions() map[string]any {
	return map[string]any{"label": Label, "number": number, "percent": percent, "micro": micro, "size": size, "signed": signed,
		"points": points, "join": strings.Join, "cell": cell}
}

// HTML writes a page that needs nothing else.
func (s Summary) HTML(w io.Writer) error { return draw(w, "report.html.tmpl", s) }

// SVG writes the picture alone.
func (s Summary) SVG(w io.Writer) error { return draw(w, "picture", s.Picture()) }

func draw(w io.Writer, name string, data any) error {
	pages, err := template.New("").Funcs(functions()).ParseFS(files, "report.html.tmpl", "answer.svg.tmpl")
	return template.Must(pages, err).ExecuteTemplate(w, name, data)
}

// Markdown writes the same as HTML, without the picture and the raw data.
func (s Summary) Markdown(w io.Writer) error {
	page, err := text.New("").Funcs(functions()).ParseFS(files, "report.md.tmpl")
	return text.Must(page, err).ExecuteTemplate(w, "report.md.tmpl", s)
}

// number has the digits that an interval of a percent carries.
func number(ratio float64) string {
	if ratio < 0.1 {
		return fmt.Sprintf("%.3f", ratio)
	}
	return fmt.Sprintf("%.2f", ratio)
}

func percent(share float64) string {
	if share >= 0.1 {
		return fmt.Sprintf("%.0f %%", 100*share)
	}
	return fmt.Sprintf("%.2g %%", 100*share)
}

func signed(micro float64) string { return fmt.Sprintf("%+.*f", digits(micro), micro) }

// micro takes nanoseconds, or a duration.
func micro(ns any) string {
	us := reflect.ValueOf(ns).Convert(reflect.TypeFor[float64]()).Float() / 1000
	if us == 0 {
		return "–"
	}
	return fmt.Sprintf("%.*f", digits(us), us)
}

// digits are those after the point of microseconds.
func digits(us float64) int {
	if math.Abs(us) < 1000 {
		return 1
	}
	return 0
}

// cell is text for a cell of a table in Markdown.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "\n", " ").Replace(text)
}

func size(bytes float64) string {
	if bytes < 1000 {
		return fmt.Sprintf("%.0f B", bytes)
	}
	return fmt.Sprintf("%.1f kB", bytes/1000)
}
