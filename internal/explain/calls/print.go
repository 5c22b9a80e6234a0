package calls

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/aclements/go-moremath/stats"

	"github.com/rpcbench/rpcbench/internal/explain/layers"
	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// micro returns the µs per call in each process of the parts that satisfy the condition.
func (e *Explanation) micro(of func(layers.Part) bool) (each []float64) {
	for _, p := range e.Processes {
		_, cpu := p.Profile.Parts.Sum(of)
		each = append(each, cpu.Seconds()*1e6/float64(p.Profile.Calls))
	}
	return each
}

// plain returns the µs per call in each process without the profiler: none of a profile, or where the system does not
// tell the CPU time.
func (e *Explanation) plain() (wall, cpu []float64) {
	for _, p := range e.Processes {
		if p.Calls > 0 {
			wall = append(wall, p.Wall.Seconds()*1e6/float64(p.Calls))
		}
		if p.CPU > 0 {
			cpu = append(cpu, p.CPU.Seconds()*1e6/float64(p.Calls))
		}
	}
	return wall, cpu
}

// count adds up samples, calls under the profiler, and calls without.
func (e *Explanation) count(of func(layers.Part) bool) (samples, calls, plain int64) {
	for _, p := range e.Processes {
		n, _ := p.Profile.Parts.Sum(of)
		samples, calls, plain = samples+n, calls+p.Profile.Calls, plain+p.Calls
	}
	return samples, calls, plain
}

// interval formats a mean with its 95% interval over processes. One process has none.
func interval(micro []float64) string {
	mean, lo, hi := stats.MeanCI(micro, 0.95)
	if len(micro) == 1 {
		return fmt.Sprintf("%+.1f µs", mean)
	}
	return fmt.Sprintf("%+.1f µs (%+.1f to %+.1f)", mean, lo, hi)
}

// counting is half of Wilson's 95% interval of a share of n samples, which few samples don't make empty.
func counting(share, n float64) float64 {
	const z = 1.96
	return z / (1 + z*z/n) * math.Sqrt(share*(1-share)/n+z*z/(4*n*n))
}

// Print has what a call takes, and its layers.
func (e *Explanation) Print(w io.Writer) error {
	samples, calls, plain := e.count(layers.All)
	all := e.micro(layers.All)
	shell.Say(w, "\n%s: %.1f µs of CPU per call, by %d samples of %d calls", e.Name, stats.Mean(all), samples, calls)
	if wall, cpu := e.plain(); len(wall) > 0 {
		said := "a call takes " + interval(wall)
		if len(cpu) > 0 {
			said += ", and " + interval(cpu) + " of CPU"
		}
		shell.Say(w, "Without the profiler %s: means of %d calls.", strings.ReplaceAll(said, "+", ""), plain)
		missed := less(all, cpu)
		if _, lo, hi := stats.MeanCI(missed, 0.95); len(missed) > 1 && lo*hi > 0 {
			shell.Say(w, "The profiles differ from that CPU time by %s, because they miss some samples and take time "+
				"themselves.", interval(missed))
		}
	}
	t := table.New(1, "layer", "client, µs", "server, µs", "unlabelled, µs", "all, µs", "share", "± (95%)")
	for _, layer := range append(layers.Names(), "") {
		sum := stats.Mean(e.micro(layers.Within(layer, "")))
		if sum == 0 {
			continue
		}
		row := []string{cmp.Or(layer, "sum")}
		for _, side := range layers.Sides() {
			row = append(row, fmt.Sprintf("%.1f", stats.Mean(e.micro(layers.Within(layer, side)))))
		}
		share, counted := sum/stats.Mean(all), ""
		if layer != "" { // all samples are all
			counted = fmt.Sprintf("%.1f%%", 100*counting(share, float64(samples)))
		}
		t.Add(append(row, fmt.Sprintf("%.1f", sum), fmt.Sprintf("%.1f%%", 100*share), counted)...)
	}
	return t.Text(w, shell.Width(w))
}

// PrintDifference says layer by layer what a takes more than b, the largest difference first. Each interval is over the
// differences of processes. Profiles that were read have no interval.
func PrintDifference(w io.Writer, a, b *Explanation) error {
	difference := func(layer, side string) []float64 {
		return less(a.micro(layers.Within(layer, side)), b.micro(layers.Within(layer, side)))
	}
	names := layers.Names()
	slices.SortStableFunc(names, func(x, y string) int {
		return cmp.Compare(math.Abs(stats.Mean(difference(y, ""))), math.Abs(stats.Mean(difference(x, ""))))
	})
	t := table.New(1, "layer", "client, µs", "server, µs", "unlabelled, µs", "all, µs", "± (95%)",
		"functions that differ most")
	t.Columns[6].Words = true
	for _, layer := range append(names, "") {
		all := difference(layer, "")
		mean, lo, hi := stats.MeanCI(all, 0.95)
		if max(slices.Max(all), -slices.Min(all)) == 0 { // neither has it
			continue
		}
		row := []string{cmp.Or(layer, "sum")}
		for _, side := range append(layers.Sides(), "") {
			row = append(row, fmt.Sprintf("%+.1f", stats.Mean(difference(layer, side))))
		}
		half, said := "", ""
		if len(all) > 1 {
			half = fmt.Sprintf("%.1f", (hi-lo)/2)
		}
		if layer != "" && (len(all) == 1 || math.Abs(mean) > (hi-lo)/2) {
			said = carriers(a, b, layer)
		}
		t.Add(append(row, half, said)...)
	}
	fmt.Fprintf(w, "\n%s minus %s\n", a.Name, b.Name)
	if err := t.Text(w, shell.Width(w)); err != nil {
		return err
	}
	wallA, cpuA := a.plain()
	wallB, cpuB := b.plain()
	if cpu := less(cpuA, cpuB); len(cpu) > 0 {
		shell.Say(w, "\nThe difference in CPU is %s by the profiles, and %s without the profiler.",
			interval(difference("", "")), interval(cpu))
	}
	if wall := less(wallA, wallB); len(wall) > 0 {
		said := ""
		if a.Processes[0].Procs > 1 {
			said = " Layers do not sum to that, because cores work side by side."
		}
		shell.Say(w, "Without the profiler, what a caller waits differs by %s.%s", interval(wall), said)
	}
	return nil
}

// less subtracts process by process, or the means where a profile that was read stands beside processes.
func less(a, b []float64) (d []float64) {
	if min(len(a), len(b)) > 0 && len(a) != len(b) {
		return []float64{stats.Mean(a) - stats.Mean(b)}
	}
	for i := range min(len(a), len(b)) {
		d = append(d, a[i]-b[i])
	}
	return d
}

// carriers names the three functions of a layer whose times differ most, of those that differ by more than two standard
// errors over processes. One process, or a profile, has the error of counting: n samples are known to √n.
func carriers(a, b *Explanation, layer string) string {
	by := map[string]layers.Amount{}
	for _, p := range slices.Concat(a.Processes, b.Processes) {
		for _, part := range p.Profile.Parts {
			name := path.Base(part.Function)
			if _, seen := by[name]; seen || part.Layer != layer {
				continue
			}
			of := func(p layers.Part) bool { return p.Layer == layer && path.Base(p.Function) == name }
			d := less(a.micro(of), b.micro(of))
			se := stats.StdDev(d) / math.Sqrt(float64(len(d)))
			for _, e := range []*Explanation{a, b} {
				if n, _, _ := e.count(of); len(d) == 1 && n > 0 {
					se = math.Hypot(se, stats.Mean(e.micro(of))/math.Sqrt(float64(n)))
				}
			}
			by[name] = layers.Amount{Value: stats.Mean(d), SE: se}
		}
	}
	return layers.Largest(by, "%s %+.1f (SE %.1f)")
}
