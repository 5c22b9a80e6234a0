package idle

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// Release numbers what File means. Raise it with each change of that.
const Release = 1

// File is the name of a Result in the folder of a run.
const File = "idle.json"

// Result is what was found, with where and how.
type Result struct {
	Release     int      `json:"release"`
	Command     string   `json:"command"`
	Environment []string `json:"environment"`      // name=value and path@version
	Linked      []string `json:"linked,omitempty"` // builds, with what differs in them
	Number      int      `json:"number"`
	Points      []int    `json:"points"` // how many were held when memory was read
	Base        string   `json:"base"`
	Left        []string `json:"left,omitempty"` // what stacks don't have
	Rows        []Row    `json:"rows"`
}

// Row is of one side of a stack in a state.
type Row struct {
	part
	Stack   string            `json:"stack"`
	Side    string            `json:"side"`    // server or client
	Figures map[string]Figure `json:"figures"` // by unit, for each of what is held
	Held    [][]Held          `json:"held"`    // of each process, at each of the points
}

// Figure is a mean over pairs of processes, with its 95 % confidence interval, and the ratio to the base's, with the
// noise floor. Without a ratio there is no verdict.
type Figure struct {
	Mean       float64         `json:"mean"`
	Lo         float64         `json:"lo"`
	Hi         float64         `json:"hi"`
	Each       []float64       `json:"each"` // of each pair, in order of time
	Ratio      float64         `json:"ratio,omitzero"`
	RatioLo    float64         `json:"ratio_lo,omitzero"`
	RatioHi    float64         `json:"ratio_hi,omitzero"`
	NoiseFloor float64         `json:"noise_floor,omitzero"` // none in older results
	Verdict    verdict.Verdict `json:"verdict,omitempty"`
}

const heap, stacks, resident, goroutines = "heap-B", "stack-B", "resident-B", "goroutines"

// metrics are the figures of a row, in the order of its columns.
var metrics = []struct {
	unit string
	of   func(Held) float64
}{
	{heap, func(h Held) float64 { return float64(h.Heap) }},
	{stacks, func(h Held) float64 { return float64(h.Stacks) }},
	{resident, func(h Held) float64 { return float64(h.Resident) }},
	{goroutines, func(h Held) float64 { return float64(h.Goroutines) }},
}

// spread is a figure with its spread, or a dash if nothing grows.
func spread(f Figure) string {
	if slices.Min(f.Each) <= 0 {
		return "–"
	}
	return table.Size(f.Mean) + " (" + table.Spread(slices.Max(f.Each)/slices.Min(f.Each)-1) + ")"
}

// compared is a verdict with its ratio, and with why an interval that excludes 1 decides nothing.
func compared(t *table.Table, f Figure) string {
	if f.Verdict == "" {
		return "–"
	}
	said := string(f.Verdict) + " " + table.Sized(f.Ratio, f.RatioLo, f.RatioHi)
	if f.Verdict == verdict.Undecided && (verdict.Interval{Lo: f.RatioLo, Hi: f.RatioHi}).ExcludesOne() {
		return t.Noted(said, "within the noise floor")
	}
	return said
}

// tables are what was found, and how it compares with the base. A part of rows is below its own heading.
func (r Result) tables() (figures, ratios *table.Table) {
	figures = table.New(1, "bytes for each", "heap", "stacks", "resident", "goroutines")
	figures.Columns[4].Spare = true
	ratios = table.New(1, "compared with "+r.Base, "heap", "resident")
	for i := 1; i <= 2; i++ {
		ratios.Columns[i].Words, ratios.Columns[i].Class = true, true
	}
	for _, part := range parts() {
		headed := map[*table.Table]bool{}
		add := func(t *table.Table, cells ...string) {
			if !headed[t] {
				t.Add(part.String())
			}
			headed[t] = true
			t.Add(cells...)
		}
		for _, row := range r.Rows {
			if row.part != part {
				continue
			}
			name := row.Stack + " " + row.Side
			f := row.Figures
			add(figures, name, spread(f[heap]), spread(f[stacks]), spread(f[resident]),
				fmt.Sprintf("%.3g", f[goroutines].Mean))
			if f[heap].Verdict != "" {
				add(ratios, name, compared(ratios, f[heap]), compared(ratios, f[resident]))
			}
		}
	}
	return figures, ratios
}

// Text writes the answer for people.
func (r Result) Text(w io.Writer, width int, colour bool) error {
	figures, ratios := r.tables()
	ratios.Colour = colour
	var b strings.Builder
	b.WriteString(table.Wrap(fmt.Sprintf("Memory at rest: bytes that each of %d takes of a process", r.Number), width))
	b.WriteString("\n")
	_ = figures.Text(&b, width)
	b.WriteString("\n")
	if len(ratios.Rows) > 0 {
		b.WriteString(table.Wrap("The same, divided by that of "+r.Base+", whose own rounds make the noise floor:", width))
		_ = ratios.Text(&b, width)
		b.WriteString("\n")
	}
	for _, left := range r.Left {
		b.WriteString(table.Wrap("Left out: "+left+".", width))
	}
	b.WriteString(table.Wrap(fmt.Sprintf("Each figure is the slope over %d, %d and %d, a mean over pairs of processes, "+
		"with the largest of them over the smallest, minus 1, in parentheses. The heap is that of live objects, and also "+
		"counts buffers that nobody has touched. Resident memory counts touched pages alone, and pages that no object "+
		"fills. The kernel's buffers are in neither.", r.Points[0], r.Points[1], r.Points[2]), width))
	_, err := io.WriteString(w, b.String())
	return err
}

// Bench are rows that benchstat reads, one for each pair.
func (r Result) Bench() string {
	var b strings.Builder
	for _, row := range r.Rows {
		for i := range row.Held {
			fmt.Fprintf(&b, "BenchmarkIdle/state=%s/tls=%t/stack=%s/side=%s\t1", row.State, row.TLS,
				strings.ReplaceAll(row.Stack, "/", ":"), row.Side) // a slash would begin a key
			for _, m := range metrics {
				if each := row.Figures[m.unit].Each[i]; each > 0 {
					fmt.Fprintf(&b, "\t%.6g %s", each, m.unit)
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// Write writes the result and its rows to a folder.
func (r Result) Write(dir string) error {
	r.Release = Release
	heading := fmt.Sprintf("# %s\n# %s\n# base=%s %s\ngoos: %s\ngoarch: %s\n", r.Command,
		strings.Join(r.Environment, " "), r.Base, strings.Join(r.Linked, " "), runtime.GOOS, runtime.GOARCH)
	data, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, File), append(data, '\n'), 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "bench.txt"), []byte(heading+r.Bench()), 0o644)
	}
	if err != nil {
		return fmt.Errorf("idle: %w", err)
	}
	return nil
}

// Read reads the result of a folder.
func Read(dir string) (r Result, err error) {
	data, err := os.ReadFile(filepath.Join(dir, File))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err == nil && r.Release != Release {
		err = fmt.Errorf("%s has release %d of its form, and this program reads %d", File, r.Release, Release)
	}
	return r, err
}
