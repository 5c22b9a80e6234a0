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
	"slices"
	"strconv"
	"strings"
	text "text/template"
	"time"

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
	Bytes      int            `json:"bytes,omitempty"` // of payload, where workloads differ in it alone
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

// Micro is by how many microseconds a call of the stack takes longer.
func (a Answer) Micro() float64 { return a.BaseNs * (a.Ratio - 1) / 1000 }

// NoiseFloor is what a difference has to exceed: see versus.Verdict.
func (a Answer) NoiseFloor() float64 {
	if a.Moved > versus.Steady {
		return max(a.Floor, a.Moved)
	}
	return a.Floor
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
		name += " with " + path.Base(build)
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
		for _, a := range s.Of(stack) {
			counts[a.Verdict] = append(counts[a.Verdict], a.Does)
			if a.Workload != workload.Small || a.Ratio == 0 {
				continue
			}
			more := "more"
			if a.Ratio < 1 {
				more = "less"
			}
			micro := math.Abs(a.Micro())
			all = append(all, fmt.Sprintf("A small call of %s takes %s times the CPU time of one of %s (%s–%s): %.1f µs %s.",
				Label(stack), number(a.Ratio), Label(s.Base), number(a.Lo), number(a.Hi), micro, more))
			if a.Verdict == timing.Undecided {
				all = append(all, "The machine was too noisy to tell that difference from none.")
			} else {
				all = append(all, fmt.Sprintf("Of a request that takes 0.1, 1 or 10 ms, the difference is %s, %s or %s.",
					percent(micro/100), percent(micro/1000), percent(micro/10000)))
			}
		}
		for _, v := range []timing.Verdict{timing.Faster, timing.Slower, timing.Equal, timing.Undecided} {
			if does := counts[v]; len(does) > 0 {
				all = append(all, fmt.Sprintf("%s is %s in %d of %d workloads: %s.", Label(stack), v, len(does), len(s.Of(stack)), strings.Join(does, "; ")))
			}
		}
	}
	return all
}

// Crossing is a size at which the answer flips.
type Crossing struct {
	Stack, From, To string
	At, Lo, Hi      float64 // bytes; an end is 0 or infinite if the interval's curve does not cross
}

// Crossings finds where the ratio of a stack crosses 1 between two payloads of bytes. Between two measured sizes the
// logarithm of the ratio is taken as linear in the logarithm of the size. The crossing's interval is between the
// crossings of the ratio's two limits.
func (s Summary) Crossings() (all []Crossing) {
	for _, stack := range s.Stacks() {
		series := slices.DeleteFunc(s.Of(stack), func(a Answer) bool { return a.Bytes == 0 || a.Ratio == 0 })
		slices.SortFunc(series, func(a, b Answer) int { return cmp.Compare(a.Bytes, b.Bytes) })
		for i := 1; i < len(series); i++ {
			a, b := series[i-1], series[i]
			if (a.Ratio > 1) == (b.Ratio > 1) {
				continue
			}
			at := func(limit func(Answer) float64) float64 { return crossing(series, limit) }
			c := Crossing{Stack: Label(stack), From: a.Does, To: b.Does, At: crossing(series[i-1:i+1], func(a Answer) float64 { return a.Ratio }),
				Lo: at(func(a Answer) float64 { return a.Lo }), Hi: at(func(a Answer) float64 { return a.Hi })}
			c.Lo, c.Hi = min(c.Lo, c.Hi), max(c.Lo, c.Hi)
			all = append(all, c)
		}
	}
	return all
}

// crossing is where the first two neighbours on either side of 1 are joined at 1; infinite if there are none.
func crossing(series []Answer, limit func(Answer) float64) float64 {
	for i := 1; i < len(series); i++ {
		x0, x1 := math.Log(float64(series[i-1].Bytes)), math.Log(float64(series[i].Bytes))
		y0, y1 := math.Log(limit(series[i-1])), math.Log(limit(series[i]))
		if (y0 > 0) != (y1 > 0) {
			return math.Exp(x0 + (x1-x0)*y0/(y0-y1))
		}
	}
	return math.Inf(1)
}

// Read reads what a run left in a folder, or the output of go test -bench in a file.
func Read(from string) (s Summary, err error) {
	info, err := os.Stat(from)
	if err != nil {
		return s, fmt.Errorf("rpcbench: report: %w", err)
	}
	bench := from
	if info.IsDir() {
		data, err := os.ReadFile(filepath.Join(from, "summary.json"))
		if errors.Is(err, fs.ErrNotExist) {
			return s, fmt.Errorf("rpcbench: report: %s has no summary.json: name a folder that rpcbench run made", from)
		}
		if err == nil {
			err = json.Unmarshal(data, &s)
		}
		switch {
		case err != nil:
			return s, fmt.Errorf("rpcbench: report: %s: summary.json is no summary of a run: %w", from, err)
		case s.Release != Release:
			return s, fmt.Errorf("rpcbench: report: %s was made by another release of rpcbench (%d, this one reads %d): make the report with that one",
				from, s.Release, Release)
		case len(s.Answers) == 0:
			return s, fmt.Errorf("rpcbench: report: %s has no answers: nothing was measured", from)
		}
		bench = filepath.Join(from, "bench.txt")
	}
	raw, err := os.ReadFile(bench)
	if err != nil {
		return s, fmt.Errorf("rpcbench: report: %w", err)
	}
	const most = 64 << 20
	if len(raw) > most {
		return s, fmt.Errorf("rpcbench: report: %s has %d MB: a page takes %d at most", bench, len(raw)>>20, most>>20)
	}
	s.Raw = string(raw)
	if !info.IsDir() {
		err = s.rows(from, raw)
	}
	return s, err
}

// rows makes answers of benchmark output: of the rows that have a ratio with an interval.
func (s *Summary) rows(from string, raw []byte) error {
	s.Command, s.Base = "go test -bench", "httpjson"
	for reader := benchfmt.NewReader(bytes.NewReader(raw), from); reader.Scan(); {
		r, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		ratio, ok := r.Value("base-ratio")
		lo, hasLo := r.Value("base-ratio-lo")
		hi, hasHi := r.Value("base-ratio-hi")
		_, parts := r.Name.Parts()
		if _, isBase := r.Value("aa-ratio"); isBase {
			s.Base = named(parts)
		}
		if !ok || !hasLo || !hasHi || len(parts) == 0 {
			continue
		}
		a := Answer{Does: "a small message", Stack: named(parts), Processes: 1, Ratio: ratio, Lo: lo, Hi: hi, GOMAXPROCS: 1}
		if last := string(parts[len(parts)-1]); last[0] == '-' {
			a.GOMAXPROCS, _ = strconv.Atoi(last[1:])
		}
		for _, other := range s.Answers {
			if other.Stack == a.Stack && other.GOMAXPROCS == a.GOMAXPROCS {
				a.Does = fmt.Sprintf("a small message, repeat %d", len(s.Of(a.Stack))+1)
			}
		}
		if ns, ok := r.Value("sec/op"); ok {
			a.Ns = ns * 1e9
			a.BaseNs = a.Ns / ratio
		}
		percent, _ := r.Value("noise-floor-%")
		a.Floor = percent / 100
		a.Verdict = timing.Interval{Median: ratio, Lo: lo, Hi: hi}.Verdict(a.Floor, versus.Margin)
		s.Answers = append(s.Answers, a)
	}
	if len(s.Answers) == 0 {
		return fmt.Errorf("rpcbench: report: %s has no row with a ratio and its interval: name output of go test -bench Versus, or a folder of rpcbench run", from)
	}
	s.Processes = 1
	s.Warnings = []string{"each ratio is of one process of one build: rpcbench run measures several", "rows without a ratio are in the raw data only"}
	return nil
}

// named is the stack of a row.
func named(parts [][]byte) string {
	for _, part := range parts {
		if stack, ok := strings.CutPrefix(string(part), "/stack="); ok {
			return stack
		}
	}
	return ""
}

// Write makes report.html, report.md and answer.svg in dir. It overwrites none.
func (s Summary) Write(dir string) error {
	for _, f := range []struct {
		name string
		to   func(io.Writer) error
	}{{"report.html", s.HTML}, {"report.md", s.Markdown}, {"answer.svg", s.SVG}} {
		var page bytes.Buffer
		if err := f.to(&page); err != nil {
			return err
		}
		file, err := os.OpenFile(filepath.Join(dir, f.name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("rpcbench: report: %s is there already: delete it, or name another folder with -out", filepath.Join(dir, f.name))
		}
		if err != nil {
			return fmt.Errorf("rpcbench: report: %w", err)
		}
		_, err = file.Write(page.Bytes())
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}

//go:embed report.html.tmpl report.md.tmpl answer.svg.tmpl
var files embed.FS

func functions() map[string]any {
	return map[string]any{"label": Label, "number": number, "percent": percent, "micro": micro, "size": size, "signed": signed,
		"points": points, "join": strings.Join}
}

// HTML writes a page that needs nothing else.
func (s Summary) HTML(w io.Writer) error { return draw(w, "report.html.tmpl", s) }

// SVG writes the picture alone.
func (s Summary) SVG(w io.Writer) error { return draw(w, "picture", s.Picture()) }

func draw(w io.Writer, name string, data any) error {
	pages, err := template.New("").Funcs(functions()).ParseFS(files, "report.html.tmpl", "answer.svg.tmpl")
	if err != nil {
		return err
	}
	return pages.ExecuteTemplate(w, name, data)
}

// Markdown writes the same as HTML, without the picture and the raw data.
func (s Summary) Markdown(w io.Writer) error {
	page, err := text.New("").Funcs(functions()).ParseFS(files, "report.md.tmpl")
	if err != nil {
		return err
	}
	return page.ExecuteTemplate(w, "report.md.tmpl", s)
}

// number has the digits that an interval of a percent carries.
func number(ratio float64) string {
	if ratio < 0.1 {
		return fmt.Sprintf("%.3f", ratio)
	}
	return fmt.Sprintf("%.2f", ratio)
}

func percent(share float64) string { return fmt.Sprintf("%.2g %%", 100*share) }

func signed(micro float64) string { return fmt.Sprintf("%+.1f", micro) }

// micro takes nanoseconds, or a duration.
func micro(ns any) string {
	us := 0.0
	switch v := ns.(type) {
	case float64:
		us = v / 1000
	case time.Duration:
		us = float64(v) / 1000
	}
	if us == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", us)
}

func size(bytes float64) string {
	switch {
	case bytes <= 0 || math.IsInf(bytes, 0):
		return "?"
	case bytes < 1000:
		return fmt.Sprintf("%.0f B", bytes)
	}
	return fmt.Sprintf("%.1f kB", bytes/1000)
}
