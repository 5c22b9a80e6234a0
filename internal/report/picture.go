package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Picture is what answer.svg draws: a line per answer, on a logarithmic axis of ratios.
type Picture struct {
	Title, Below, Above   string // what the sides of 1 mean
	Width, Height, Bottom int
	Left, Right           int     // of the axis
	One                   float64 // where the ratio is 1
	Ticks                 []Tick
	Lines                 []Line
}

// Tick is a labelled ratio of the axis.
type Tick struct {
	X     float64
	Label string
}

// Line is one answer: its name and ratio above a dot with its interval and, shaded, its noise floor.
type Line struct {
	Y                    int
	Heading              string // of the lines below, in place of all else
	Label, Said, Verdict string
	Lo, At, Hi           float64
	FloorLo, FloorWidth  float64
}

// The picture is as narrow as a phone: text that is made to fit one would be too small to read.
const (
	width, left, right = 400, 16, 384 // left and right are of the axis
	top, step          = 70, 36
)

// Picture places every answer that has a ratio.
func (s Summary) Picture() Picture {
	lo, hi := 0.8, 1.25
	for _, a := range s.Answers {
		if a.Ratio > 0 {
			lo, hi = min(lo, a.Lo), max(hi, a.Hi)
		}
	}
	lo, hi = max(lo/1.05, 1e-3), min(hi*1.05, 1e3)
	x := func(ratio float64) float64 {
		at := math.Log(min(max(ratio, lo), hi)/lo) / math.Log(hi/lo)
		return math.Round(10*(left+at*(right-left))) / 10
	}
	stacks := s.Stacks()
	p := Picture{Width: width, Left: left, Right: right, One: x(1), Below: "faster", Above: "slower",
		Title: "How many times as long as " + Label(s.Base)}
	if len(stacks) == 1 {
		p.Title = fmt.Sprintf("Time of %s, in multiples of %s's", Label(stacks[0]), Label(s.Base))
		p.Below, p.Above = Label(stacks[0])+" faster", Label(s.Base)+" faster"
	}
	spread := []float64{0.1, 0.2, 0.5, 1, 2, 5, 10}
	if hi/lo < 4 {
		spread = []float64{0.6, 0.8, 1, 1.25, 1.5, 2}
	}
	for _, tick := range spread {
		if lo <= tick && tick <= hi {
			p.Ticks = append(p.Ticks, Tick{x(tick), "×" + fmt.Sprint(tick)})
		}
	}
	for _, stack := range stacks {
		own := slices.DeleteFunc(s.Of(stack), func(a Answer) bool { return a.Ratio == 0 })
		slices.SortStableFunc(own, func(a, b Answer) int { return cmp.Compare(a.Ratio, b.Ratio) })
		if len(stacks) > 1 && len(own) > 1 {
			p.Lines = append(p.Lines, Line{Y: top + len(p.Lines)*step, Heading: Label(stack)})
		}
		for _, a := range own {
			floor := a.NoiseFloor()
			line := Line{Y: top + len(p.Lines)*step, Label: line(a.Does), Said: number(a.Ratio),
				Verdict: line(a.Verdict),
				Lo:      x(a.Lo), At: x(a.Ratio), Hi: x(a.Hi), FloorLo: x(1 / (1 + floor))}
			line.FloorWidth = x(1+floor) - line.FloorLo
			if len(stacks) > 1 && len(own) == 1 {
				line.Label = Label(stack)
			}
			p.Lines = append(p.Lines, line)
		}
	}
	p.Bottom = top + len(p.Lines)*step - 24
	p.Height = p.Bottom + 56
	return p
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
