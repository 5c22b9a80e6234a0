package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// Tails draws the latencies of each answer whose callers wait for more than work on one core: percentiles of the base
// and of the stack. Both axes are logarithmic, that of percentiles in the share of slower calls, and all pictures have
// the same, so that they can be compared.
func (s Summary) Tails() (all []Picture) {
	waiting := s.where(func(a Answer) bool {
		return a.Percentiles.P50.BaseNs > 0 && (a.GOMAXPROCS != 1 || a.AtRate())
	})
	lo, hi := math.Inf(1), 0.0
	for _, a := range waiting {
		for _, p := range []verdict.Percentile{a.Percentiles.P50, a.Percentiles.P95, a.Percentiles.P99,
			a.Percentiles.P999} {
			if p.BaseNs > 0 {
				lo, hi = min(lo, p.BaseNs, p.StackNs), max(hi, p.BaseNs, p.StackNs)
			}
		}
	}
	for _, a := range waiting {
		all = append(all, s.tail(a, lo/1.2, hi*1.2))
	}
	return all
}

func (s Summary) tail(a Answer, lo, hi float64) Picture {
	base, stack := Label(s.Base), Label(a.Stack)
	p := Picture{Title: table.Line(a.does()), Width: 340, Height: 252, Top: 50, Bottom: 204, Left: 68, Right: 324,
		Upwards: true, Legend: []Tick{{edge, base}, {120, stack}},
		Words: []Word{{X: edge, Y: 242, Text: "Both axes are logarithmic."}},
		Paths: []*Path{{Label: base}, {Label: stack, Second: true}}}
	percentiles := []struct {
		name  string
		share float64 // of slower calls
		of    verdict.Percentile
	}{{"p50", 0.5, a.Percentiles.P50}, {"p95", 0.05, a.Percentiles.P95}, {"p99", 0.01, a.Percentiles.P99},
		{"p99.9", 0.001, a.Percentiles.P999}}
	x, y := scale(1/0.5, 1/0.001, 84, 300), scale(lo, hi, 204, 50)
	for _, q := range percentiles {
		if q.of.BaseNs == 0 {
			continue
		}
		tick := Tick{x(1 / q.share), q.name}
		p.Ticks = append(p.Ticks, tick)
		for i, ns := range []float64{q.of.BaseNs, q.of.StackNs} {
			path := p.Paths[i]
			path.Drawn += fmt.Sprintf("%c%g %g", "ML"[min(len(path.Dots), 1)], tick.At, y(ns))
			path.Dots = append(path.Dots, Dot{X: tick.At, Lo: y(ns), At: y(ns), Hi: y(ns),
				Title: q.name + " " + table.Micros(ns) + " µs"})
		}
	}
	for _, ns := range round(lo, hi) {
		label := fmt.Sprintf("%.3g µs", ns/1e3)
		if ns >= 1e6 {
			label = fmt.Sprintf("%.3g ms", ns/1e6)
		}
		p.Levels = append(p.Levels, Tick{y(ns), label})
	}
	return p
}

// round returns three round times from lo to hi. These are at least a factor of 1.44 apart, so that there always are
// three tenths.
func round(lo, hi float64) []float64 {
	var tenths []float64
	for i := 10.; i < 100; i++ {
		tenths = append(tenths, i/10)
	}
	for _, steps := range [][]float64{{1}, {1, 3}, {1, 2, 5}, {1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9}, tenths} {
		var all []float64
		for unit := 1.; unit < hi; unit *= 10 {
			for _, step := range steps {
				if ns := unit * step; lo < ns && ns < hi {
					all = append(all, ns)
				}
			}
		}
		if n := len(all); n >= 3 {
			return []float64{all[0], all[n/2], all[n-1]}
		}
	}
	return nil
}

// percentiles draws the latencies of runs over networks: a curve of the base and of each stack.
// Those of the first run are dashed, and a stack has one tone in all runs.
func percentiles(machines []Machine) Picture {
	const top, bottom, left, end = 34, 330, 76, 380
	lo, hi := math.Inf(1), 0.0
	var all []*Path
	var curves [][]float64
	for _, m := range machines {
		for j, c := range m.waits() {
			all = append(all, &Path{Label: joined(", ", c.stack, m.Name), Second: j == 1, Third: j == 2})
			curves = append(curves, c.ns)
			lo, hi = min(lo, slices.Min(c.ns)), max(hi, slices.Max(c.ns))
		}
	}
	a := machines[0].Answers[0]
	link, _, _ := strings.Cut(a.Link, "/")
	p := Picture{Title: fmt.Sprintf("Latency at %s calls a second over %s", thousands(a.Rate), link), Width: page.width,
		Top: top, Bottom: bottom, Left: left - 8, Right: end + 8, Upwards: true, Paths: all}
	names := []string{"p50", "p95", "p99", "p99.9"}[:len(curves[0])]
	x := func(i int) float64 { return left + float64(i)*(end-left)/float64(len(names)-1) }
	y := scale(lo/1.2, hi*1.2, bottom, top)
	for i, name := range names {
		p.Ticks = append(p.Ticks, Tick{x(i), name})
	}
	for _, ns := range round(lo/1.2, hi*1.2) {
		p.Levels = append(p.Levels, Tick{y(ns), span(ns)})
	}
	for i, path := range all {
		path.dots(names, curves[i], x, y)
		if i < len(all)/len(machines) && len(machines) > 1 {
			path.Drawn, path.Dashed = "", path.Drawn
		}
	}
	name(all, end+beside, page.width-edge-end-beside, bottom)
	p.Height = bottom + 22
	for _, said := range captions(machines) {
		for line := range strings.Lines(table.Wrap(said, (page.width-2*edge)/letter)) {
			p.Height += 16
			p.Words = append(p.Words, Word{edge, p.Height, strings.TrimSpace(line), false})
		}
	}
	p.Height += margin
	return p
}

// dots places percentiles on a path.
func (p *Path) dots(names []string, ns []float64, x func(int) float64, y func(float64) float64) {
	for i, v := range ns {
		p.Drawn += fmt.Sprintf("%c%g %g", "ML"[min(i, 1)], x(i), y(v))
		p.Dots = append(p.Dots, Dot{X: x(i), Lo: y(v), At: y(v), Hi: y(v), Title: names[i] + " " + span(v)})
	}
}

// waited is how long the calls of a stack took: percentiles, in nanoseconds.
type waited struct {
	stack string
	ns    []float64
}

// waits are those of the base, as the first stack's processes have it, and of each stack. All have the same ones.
func (s Summary) waits() (all []waited) {
	first := s.Answers[0].Percentiles
	all = append(all, waited{Label(s.Base), nil})
	for _, stack := range s.Stacks() {
		all = append(all, waited{Label(stack), nil})
	}
	of := func(p verdict.Percentiles) []verdict.Percentile {
		return []verdict.Percentile{p.P50, p.P95, p.P99, p.P999}
	}
	for i, p := range of(first) {
		known := p.BaseNs > 0
		for _, a := range s.Answers {
			known = known && of(a.Percentiles)[i].StackNs > 0
		}
		if !known {
			break
		}
		all[0].ns = append(all[0].ns, p.BaseNs)
		for j := range all[1:] {
			all[j+1].ns = append(all[j+1].ns, of(s.Answers[j].Percentiles)[i].StackNs)
		}
	}
	return all
}
