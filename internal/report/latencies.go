package report

import (
	"fmt"
	"math"

	"github.com/rpcbench/rpcbench/internal/table"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// Tails draws the latencies of each answer whose callers wait for more than work on one core: percentiles of the base
// and of the stack. Both axes are logarithmic: that of percentiles in the share of slower calls.
func (s Summary) Tails() (all []Picture) {
	for _, a := range s.BySize() {
		if a.P50.Base > 0 && (a.GOMAXPROCS != 1 || a.Load.Reached > 0) {
			all = append(all, s.tail(a))
		}
	}
	return all
}

func (s Summary) tail(a Answer) Picture {
	base, stack := Label(s.Base), Label(a.Stack)
	p := Picture{Title: table.Line(a.Does), Width: 340, Height: 236, Top: 50, Bottom: 204, Left: 68, Right: 324,
		Upwards: true, Legend: []Tick{{edge, base}, {120, stack}},
		Paths: []*Path{{Label: base}, {Label: stack, Second: true}}}
	percentiles := []struct {
		name  string
		share float64 // of slower calls
		of    versus.Percentile
	}{{"p50", 0.5, a.P50}, {"p95", 0.05, a.P95}, {"p99", 0.01, a.P99}, {"p99.9", 0.001, a.P999}}
	lo, hi := math.Inf(1), 0.0
	for _, q := range percentiles {
		if q.of.Base > 0 {
			lo, hi = min(lo, q.of.Base, q.of.Ns), max(hi, q.of.Base, q.of.Ns)
		}
	}
	lo, hi = lo/1.2, hi*1.2
	x, y := scale(1/0.5, 1/0.001, 84, 300), scale(lo, hi, 204, 50)
	for _, q := range percentiles {
		if q.of.Base == 0 {
			continue
		}
		tick := Tick{x(1 / q.share), q.name}
		p.Ticks = append(p.Ticks, tick)
		for i, ns := range []float64{q.of.Base, q.of.Ns} {
			path := p.Paths[i]
			path.Drawn += fmt.Sprintf("%c%g %g", "ML"[min(len(path.Dots), 1)], tick.At, y(ns))
			path.Dots = append(path.Dots, Dot{X: tick.At, Lo: y(ns), At: y(ns), Hi: y(ns),
				Title: q.name + " " + table.Micros(ns) + " µs"})
		}
	}
	steps := []float64{1, 2, 5}
	switch {
	case hi > 100*lo:
		steps = steps[:1]
	case hi < 5*lo:
		steps = []float64{1, 1.5, 2, 3, 5, 7}
	}
	for unit := 1.; unit < hi; unit *= 10 {
		for _, step := range steps {
			if ns := unit * step; lo < ns && ns < hi {
				label := fmt.Sprintf("%g µs", ns/1e3)
				if ns >= 1e6 {
					label = fmt.Sprintf("%g ms", ns/1e6)
				}
				p.Levels = append(p.Levels, Tick{y(ns), label})
			}
		}
	}
	return p
}
