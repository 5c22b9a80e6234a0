package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/table"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// Picture is what answer.svg draws: a line per workload and stack, on a logarithmic axis of ratios. Of a sweep it is a
// path per run and stack, with ratios upwards over the values.
type Picture struct {
	Title, Below, Above   string // what the sides of 1 mean
	Width, Height, Bottom int
	Top, Left, Right      int     // of the axis
	One                   float64 // where the ratio is 1
	Ticks                 []Tick
	Machines              []Tick // the legend: where the name of each machine stands
	Lines                 []Line

	Over   string // of a sweep, what Ticks are of
	Ratios []Tick
	Paths  []*Path
}

// Tick is a label and its place.
type Tick struct {
	At    float64
	Label string
}

// Path is a curve of a sweep. A part without values between its ends is dashed.
type Path struct {
	Y             float64 // of the label
	Label         string
	Drawn, Dashed string
	Dots          []Dot
	Second        bool // of two colours
}

// Line is one workload: its name and ratios above a dot of each machine.
type Line struct {
	Y       int
	Heading string // of the lines below, in place of all else
	Label   string
	Dots    []Dot
}

// Dot is the ratio of one machine with its interval and, shaded, its noise floor.
type Dot struct {
	Y, SaidX            int // of the dot below the label, and of the ratio beside the label
	Title, Said, Tone   string
	X                   float64 // in a path
	Lo, At, Hi          float64
	FloorLo, FloorWidth float64
	Second              bool // of two machines
	Hollow              bool // undecided
}

// Machine is a run, and how a picture of several runs calls its machine.
type Machine struct {
	Name string
	Summary
}

// The picture is as narrow as a phone: text that is made to fit one would be too small to read.
const (
	width, left, right = 400, 16, 384 // left and right are of the axis
	label, track       = 24, 10       // heights of a line's label and of each machine's dot below
	saidWidth          = 38           // of a ratio
)

// Picture draws the run alone. A dot's tone is its verdict.
func (s Summary) Picture() Picture { return Draw(Machine{Summary: s}) }

// Draw places every answer of the first run that has a ratio, in the order of ratios. Answers of the second run stand
// below. A dot's tone is its machine, if there are two. Of sweeps it draws the curves.
func Draw(machines ...Machine) Picture {
	machines = slices.Clone(machines)
	for i, m := range machines {
		machines[i].Summary = m.leading()
	}
	first := machines[0]
	lo, hi := 0.8, 1.25
	for _, m := range machines {
		for _, a := range m.Answers {
			if a.Ratio > 0 {
				lo, hi = min(lo, a.Lo), max(hi, a.Hi)
			}
		}
	}
	lo, hi = max(lo/1.05, 1e-3), min(hi*1.05, 1e3)
	if first.Over != "" {
		return curves(machines, lo, hi)
	}
	x := scale(lo, hi, left, right)
	stacks := first.Stacks()
	p := Picture{Title: first.title(), Width: width, Top: 46, Left: left, Right: right, One: x(1)}
	less, more := "faster", "slower"
	if first.measure() != "time" {
		less, more = "less", "more"
	}
	p.Below, p.Above = less, more
	if len(stacks) == 1 {
		p.Below, p.Above = Label(stacks[0])+" "+less, Label(first.Base)+" "+less
	}
	if len(machines) > 1 {
		p.Top += 20
		for i, m := range machines {
			p.Machines = append(p.Machines, Tick{float64(left + i*(right-left)/len(machines)), m.Name})
		}
	}
	p.Ticks = ticks(lo, hi, x)
	y := p.Top + 20
	for _, stack := range stacks {
		own := first.ByRatio(stack)
		if len(stacks) > 1 && len(own) > 1 {
			p.Lines = append(p.Lines, Line{Y: y + track, Heading: Label(stack)})
			y += label + track
		}
		for _, a := range own {
			l := Line{Y: y, Label: table.Line(a.Does), Dots: []Dot{first.dot(a, 0, len(machines), x)}}
			if len(stacks) > 1 && len(own) == 1 {
				l.Label = Label(stack)
			}
			for i, m := range machines[1:] {
				for _, of := range m.ByRatio(stack) {
					if of.Workload == a.Workload {
						l.Dots = append(l.Dots, m.dot(of, i+1, len(machines), x))
					}
				}
			}
			p.Lines = append(p.Lines, l)
			y += label + track*len(machines)
		}
	}
	p.Bottom = y - label/2 - 2
	p.Height = p.Bottom + 56
	return p
}

// scale places numbers between two places, logarithmically. Those outside of lo and hi are placed at the ends.
func scale(lo, hi, from, to float64) func(float64) float64 {
	return func(v float64) float64 {
		at := (math.Log(min(max(v, lo), hi)) - math.Log(lo)) / (math.Log(hi) - math.Log(lo))
		return math.Round(10*(from+at*(to-from))) / 10
	}
}

// ticks are the round ratios from lo to hi.
func ticks(lo, hi float64, place func(float64) float64) (all []Tick) {
	spread := []float64{0.1, 0.2, 0.5, 1, 2, 5, 10}
	if hi/lo < 4 {
		spread = []float64{0.6, 0.8, 1, 1.25, 1.5, 2}
	}
	for _, ratio := range spread {
		if lo <= ratio && ratio <= hi {
			all = append(all, Tick{place(ratio), "×" + fmt.Sprint(ratio)})
		}
	}
	return all
}

// title says what the ratios are of.
func (s Summary) title() string {
	what, of := s.measure(), ""
	if stacks := s.Stacks(); len(stacks) == 1 {
		of = " of " + Label(stacks[0])
	}
	return fmt.Sprintf("%s%s%s, in multiples of %s's", strings.ToUpper(what[:1]), what[1:], of, Label(s.Base))
}

// dot is an answer of the machine i of n, with x the place of a ratio.
func (m Machine) dot(a Answer, i, n int, x func(float64) float64) Dot {
	floor := a.NoiseFloor()
	d := Dot{Y: (i+1)*track + 1, SaidX: right - (n-1-i)*saidWidth, Second: i > 0, Said: number(a.Ratio),
		Title: sized(a.Ratio, a.Lo, a.Hi) + ", " + table.Line(a.Verdict),
		Tone:  table.Line(a.Verdict), Hollow: a.Verdict == versus.Undecided, Lo: x(a.Lo), At: x(a.Ratio), Hi: x(a.Hi),
		FloorLo: x(1 / (1 + floor))}
	d.FloorWidth = math.Round(10*(x(1+floor)-d.FloorLo)) / 10
	if n > 1 {
		d.Title = m.Name + " " + d.Title
		d.Tone = []string{"first", "second"}[min(i, 1)]
	}
	return d
}

// points draws the base's time in each process, as the points of a line in a box of 120 by 24.
func points(ns []float64) string {
	if len(ns) < 2 {
		return ""
	}
	lo, hi := slices.Min(ns), slices.Max(ns)
	var b strings.Builder
	for i, v := range ns {
		fmt.Fprintf(&b, "%.0f,%.1f ", 120*float64(i)/float64(len(ns)-1), 22-20*(v-lo)/max(hi-lo, lo/100))
	}
	return strings.TrimSpace(b.String())
}
