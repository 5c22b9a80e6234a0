package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// Picture is what answer.svg draws: a line per workload and stack, on a logarithmic axis of ratios. Of a sweep it is a
// path per run and stack, with ratios upwards over the values. Of latencies it has a path for the base and for the
// stack, with times upwards over the percentiles.
type Picture struct {
	Title                    string
	Width, Height            int
	Top, Bottom, Left, Right int     // of the axes
	One                      float64 // where the ratio is 1; 0 if nothing is a ratio
	Upwards                  bool    // ratios or times go upwards
	Ticks, Levels            []Tick  // along, and upwards
	Legend                   []Tick  // where the name of each machine or stack stands
	Words                    []Word
	Lines                    []Line
	Paths                    []*Path
}

// End is where the texts on the right end.
func (p Picture) End() int { return p.Width - edge }

// Fit is the width of a title that would be wider, or else 0.
func (p Picture) Fit() int {
	const each = 7.6 // of a bold letter
	if room := p.Width - 2*edge; float64(len(p.Title))*each > float64(room) {
		return room
	}
	return 0
}

// Tick is a label and its place.
type Tick struct {
	At    float64
	Label string
}

// Word is a text that tells how to read the picture. At its end is X if End is set.
type Word struct {
	X, Y int
	Text string
	End  bool
}

// Path is a curve. A part without values between its ends is dashed.
type Path struct {
	X             int     // of the label
	Y             float64 // of the label; 0 if it stands elsewhere
	Fit           int     // width of a label that would be wider, or else 0
	Label         string
	Drawn, Dashed string
	Dots          []Dot
	Second, Third bool // of three colours
}

// Tone is the name of its colour.
func (p Path) Tone() string {
	switch {
	case p.Third:
		return "third"
	case p.Second:
		return "second"
	}
	return "first"
}

// Line is one workload: its name and ratios beside a dot of each machine, or above.
type Line struct {
	Y, Rule int
	Heading string // of the lines below, in place of all else
	Label   string
	Dots    []Dot
}

// Dot is the ratio of one machine with its interval and, shaded, its noise floor. In a path it may be a time.
type Dot struct {
	Y, SaidX            int // of the dot, and of the ratio, from the label's line on
	Title, Said, Tone   string
	X                   float64 // in a path
	Lo, At, Hi          float64
	FloorLo, FloorWidth float64
	Second              bool // of two machines
	Hollow              bool // undecided
	Bare                bool // an interval alone
}

// Machine is a run, and how a picture of several runs calls its machine.
type Machine struct {
	Name string
	Summary
}

// layout is where the parts of a picture are.
type layout struct {
	width, left, right int     // left and right are of the axis
	label, dot         int     // height of a line's label, and from there to the first dot
	from               float64 // the ratio that the axis has at least
}

// A phone has labels above their dots, as text that is made to fit would be too small to read. A sweep in a page of the
// documentation shows how far it is to a half.
var (
	phone = layout{width: 400, left: 16, right: 384, label: 24, dot: 11, from: 0.8}
	desk  = layout{width: 1056, left: 320, right: 960, label: 16, dot: -4, from: 0.8}
	page  = layout{width: 560, from: 0.5}
)

const (
	edge      = 16 // of the text on the left
	track     = 10 // height of a machine's dot
	saidWidth = 38 // of a ratio
)

// Picture draws the run alone, as wide as a phone. A dot's tone is its verdict.
func (s Summary) Picture() Picture { return phone.draw(Machine{Summary: s}) }

// Wide draws it as wide as a page.
func (s Summary) Wide() Picture { return desk.draw(Machine{Summary: s}) }

// Draw places every answer of the first run that has a ratio, in the order of ratios. Answers of the second run stand
// below. A dot's tone is its machine, if there are two. Of sweeps it draws the curves.
func Draw(machines ...Machine) Picture {
	switch first := machines[0]; {
	case first.routed() && first.Answers[0].AtRate():
		return percentiles(machines)
	case first.Over != "":
		return page.draw(machines...)
	}
	return phone.draw(machines...)
}

func (of layout) draw(machines ...Machine) Picture {
	first := machines[0]
	lo, hi := of.from, 1.25
	for _, m := range machines {
		for _, l := range m.Led() {
			if l.Figure.Ratio > 0 {
				lo, hi = min(lo, l.Figure.Lo), max(hi, l.Figure.Hi)
			}
		}
	}
	lo, hi = max(lo/1.05, 1e-3), min(hi*1.05, 1e3)
	if first.Over != "" {
		return of.curves(machines, lo, hi)
	}
	x := scale(lo, hi, float64(of.left), float64(of.right))
	stacks := first.Stacks()
	p := Picture{Title: first.title(), Width: of.width, Top: 46, Left: of.left, Right: of.right, One: x(1)}
	less, more := "takes less", "takes more"
	if len(stacks) == 1 {
		less, more = Label(stacks[0])+" "+less, Label(stacks[0])+" "+more
	}
	if len(machines) > 1 {
		p.Top += 20
		for i, m := range machines {
			p.Legend = append(p.Legend, Tick{float64(edge + i*(of.width-2*edge)/len(machines)), m.Name})
		}
	}
	p.Words = []Word{{of.left, p.Top - 8, "← " + less, false}, {of.right, p.Top - 8, more + " →", true}}
	p.Ticks = ticks(lo, hi, x)
	y, height := p.Top+20, of.label+track*len(machines)
	for _, stack := range stacks {
		own := ByRatio(first.Led(), stack)
		if len(stacks) > 1 && len(own) > 1 {
			p.Lines = append(p.Lines, Line{Y: y + track, Heading: Label(stack)})
			y += 24 + track
		}
		for _, a := range own {
			l := Line{Y: y, Rule: y + height - 15, Label: table.Line(a.Answer.does()),
				Dots: []Dot{of.beside(dot(a.Figure, x), 0, machines)}}
			if len(stacks) > 1 && len(own) == 1 {
				l.Label = Label(stack)
			}
			for i, m := range machines[1:] {
				for _, other := range ByRatio(m.Led(), stack) {
					if other.Answer.Workload == a.Answer.Workload {
						l.Dots = append(l.Dots, of.beside(dot(other.Figure, x), i+1, machines))
					}
				}
			}
			p.Lines = append(p.Lines, l)
			y += height
		}
	}
	p.Bottom = y - 14
	p.Height = p.Bottom + 56
	p.Words = append(p.Words, Word{edge, p.Bottom + 34, "A dot with its 95% interval, on a logarithmic axis.", false},
		Word{edge, p.Bottom + 50, "Grey: the noise floor. Hollow: undecided.", false})
	return p
}

// beside places the dot of a machine of several in a line.
func (of layout) beside(d Dot, i int, machines []Machine) Dot {
	d.Y, d.SaidX, d.Second = of.dot+i*track, of.width-edge-(len(machines)-1-i)*saidWidth, i > 0
	if len(machines) > 1 {
		d.Title = machines[i].Name + " " + d.Title
		d.Tone = []string{"first", "second"}[min(i, 1)]
	}
	return d
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
		spread = []float64{0.5, 0.6, 0.8, 1, 1.25, 1.5, 2}
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
	what, of := s.whose(s.measure()), ""
	if stacks := s.Stacks(); len(stacks) == 1 {
		of = " of " + Label(stacks[0])
	}
	return fmt.Sprintf("%s%s%s, in multiples of %s's", strings.ToUpper(what[:1]), what[1:], of, Label(s.Base))
}

// dot draws a figure, with x the place of a ratio.
func dot(f verdict.Figure, x func(float64) float64) Dot {
	d := Dot{Said: table.Ratio(f.Ratio), Title: table.Sized(f.Ratio, f.Lo, f.Hi) + ", " + Says(f.Verdict),
		Tone: Says(f.Verdict), Hollow: f.Verdict == verdict.Undecided, Lo: x(f.Lo), At: x(f.Ratio), Hi: x(f.Hi),
		FloorLo: x(1 / (1 + f.NoiseFloor))}
	d.FloorWidth = math.Round(10*(x(1+f.NoiseFloor)-d.FloorLo)) / 10
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
