package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// Saturated is the value of an answer whose callers call as fast as they can, in a sweep over calls a second.
const Saturated = "saturated"

// Curve is what a sweep found of one stack: the leading figures that have a ratio, in the order of values.
type Curve []Led

// Curves has a curve of each stack. Answers whose value is no number are left out, except for Saturated. So are rates
// that were not kept, since fewer calls were made than the value says.
func (s Summary) Curves() (all []Curve) {
	for _, stack := range s.Stacks() {
		if c := s.curve(stack).where(func(l Led) bool { return l.Answer.Kept() }); len(c) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// curve has the rates that were not kept, too.
func (s Summary) curve(stack string) Curve {
	c := Curve(s.Led()).where(func(l Led) bool {
		return l.Answer.Stack == stack && l.Figure.Ratio > 0 && l.Answer.amount() > 0
	})
	slices.SortStableFunc(c, func(a, b Led) int { return cmp.Compare(a.Answer.amount(), b.Answer.amount()) })
	return c
}

// where are the values that something holds for.
func (c Curve) where(holds func(Led) bool) Curve {
	return slices.DeleteFunc(slices.Clone(c), func(l Led) bool { return !holds(l) })
}

// amount is the value as a number, or 0 if it is none. Saturated is beyond all numbers.
func (a Answer) amount() float64 {
	if a.Value == Saturated {
		return math.Inf(1)
	}
	if v, err := strconv.ParseFloat(a.Value, 64); err == nil && 0 < v && v <= math.MaxFloat64 {
		return v
	}
	return 0
}

// value is the value with what it is of.
func (s Summary) value(a Answer) string {
	switch {
	case a.Value == Saturated:
		return Saturated
	case s.Over == "GOMAXPROCS":
		return s.Over + " " + a.Value
	case a.Value == "1":
		return "1 " + strings.TrimSuffix(s.Over, "s")
	}
	return a.Value + " " + s.Over
}

// step is what a stack, or the base, takes at a value of a sweep to what it takes at the first value.
type step struct {
	stack       string
	at          Answer
	cpu, served verdict.Figure
}

// steps are those of the base, as the first stack's processes have it, and of each stack.
func (s Summary) steps() (all []step) {
	for i, stack := range s.Stacks() {
		own := s.Of(stack)
		var base, stacks []step
		for _, a := range own[1:] {
			first := own[0]
			b, o := step{stack: s.Base, at: a}, step{stack: stack, at: a}
			b.cpu, o.cpu = verdict.Step(first.Answer, a.Answer, func(a verdict.Answer) verdict.Figure { return a.CPU })
			if first.Many() && a.Many() {
				of, to := verdict.Step(first.Answer, a.Answer, func(a verdict.Answer) verdict.Figure { return a.Time })
				b.served, o.served = of.Inverse(), to.Inverse()
			}
			base, stacks = append(base, b), append(stacks, o)
		}
		if i == 0 {
			all = append(all, base...)
		}
		all = append(all, stacks...)
	}
	return slices.DeleteFunc(all, func(one step) bool { return one.cpu.Ratio == 0 && one.served.Ratio == 0 })
}

// Steps is the table of a sweep's values to its first one: whether a second connection pays, for one. It is nil if that
// is not known.
func (s Summary) Steps() *table.Table {
	if s.Over == "" || len(s.Answers) == 0 {
		return nil
	}
	t := new(table.Table)
	ratio := func(of func(step) verdict.Figure) func(step) string {
		return func(one step) string {
			f := of(one)
			if f.Ratio == 0 {
				return ""
			}
			says := Says(f.Verdict)
			if why := table.NoSize(f.Lo, f.Hi); why != "" {
				says = t.Noted(says, why)
			}
			return table.Sized(f.Ratio, f.Lo, f.Hi) + " " + says
		}
	}
	return some(table.Fill(t, s.steps(),
		table.Words("compared with "+s.value(s.Answers[0]), func(one step) string {
			return Label(one.stack) + ", " + s.value(one.at)
		}),
		table.Figures("CPU per call (95% CI)", ratio(func(one step) verdict.Figure { return one.cpu })),
		table.Figures("calls per second (95% CI)", ratio(func(one step) verdict.Figure { return one.served }))).Filled())
}

// The picture of a sweep: the place of the lowest value, and of the ratios.
const (
	lowest      = 72
	beyond      = 72 // from the highest rate to what is saturated
	most, least = 56, 256
	margin      = 8  // of the axes above and below the ratios
	beside      = 12 // from the end of a curve to its label
	letter      = 7  // width of one
)

// series is a curve of a run.
type series struct {
	Machine
	Curve
}

// curves draws sweeps, with ratios from lo to hi.
func (of layout) curves(machines []Machine, lo, hi float64) Picture {
	first, stack := machines[0], "a stack"
	if stacks := first.Stacks(); len(stacks) == 1 {
		stack = Label(stacks[0])
	}
	var all []series
	room := 0 // right of the curves, for their labels
	for _, m := range machines {
		for _, c := range m.Curves() {
			all = append(all, series{m, c})
			room = min(max(room, letter*utf8.RuneCountInString(all[len(all)-1].label())), of.width/3)
		}
	}
	end := of.width - edge - room - beside
	p := Picture{Title: cmp.Or(message(all), first.title()), Width: of.width, Top: most - margin, Bottom: least + margin,
		Left: 60, Right: end + margin, Upwards: true}
	p.Words = []Word{
		{edge, p.Top - margin, fmt.Sprintf("Above ×1 %s takes more %s than %s, below less.", stack, first.measure(),
			Label(first.Base)), false},
		{edge, p.Bottom + 33, table.Line(first.Over), false}}
	y := scale(lo, hi, least, most)
	p.One, p.Levels = y(1), ticks(lo, hi, y)
	x, ticks := along(all, end)
	p.Ticks = ticks
	for i, c := range all {
		p.Paths = append(p.Paths, c.path(i, x, y))
	}
	name(p.Paths, end+beside, room, p.Bottom)
	p.Height = p.Bottom + 38
	said := append(captions(machines), "With 95% intervals. Hollow: undecided, with the noise floor in grey. "+
		"Both axes are logarithmic.")
	if p.Break() > 0 {
		said = append(said, "Saturated is not the same work for both: each caller calls again at once, so the faster "+
			"stack answers more calls.")
	}
	for _, said := range said {
		for line := range strings.Lines(table.Wrap(said, (of.width-2*edge)/letter)) {
			p.Height += 16
			p.Words = append(p.Words, Word{edge, p.Height, strings.TrimSpace(line), false})
		}
	}
	p.Height += margin
	return p
}

// message says what curves have in common where their ends are decided: less or more at the last values, and the
// contrary at the first ones of some. It is empty if they have nothing in common.
func message(all []series) string {
	var contrary []string
	var end Led
	for i, c := range all {
		decided := c.where(func(l Led) bool {
			return l.decided() && l.OfCPU == all[0].Curve[0].OfCPU && l.Figure.Verdict != verdict.Same
		})
		if len(decided) == 0 || i > 0 && (decided[len(decided)-1].Figure.Verdict != end.Figure.Verdict ||
			c.Curve[0].Answer.Stack != end.Answer.Stack) {
			return ""
		}
		first, last := decided[0], decided[len(decided)-1]
		if end = last; last.Answer.Value != c.Curve[len(c.Curve)-1].Answer.Value {
			return ""
		}
		if first.Figure.Verdict != last.Figure.Verdict {
			contrary = append(contrary, c.Name)
		}
	}
	if len(all) == 0 {
		return ""
	}
	few, at := "few "+all[0].Over, " at many "+all[0].Over
	if all[0].Over == "calls a second" {
		few, at = "low rates", " at high rates"
	}
	if end.Answer.Value == Saturated {
		at = " when " + Saturated
	}
	said := fmt.Sprintf("%s uses %s %s than %s", Label(end.Answer.Stack), end.Figure.Verdict,
		either(end.OfCPU, "CPU", "time"), Label(all[0].Base))
	if len(contrary) == 0 {
		return said + at
	}
	other := map[verdict.Verdict]string{verdict.Less: "more", verdict.More: "less"}[end.Figure.Verdict]
	if said += at + ", and " + other + " at " + few; len(contrary) < len(all) {
		said += " (" + strings.Join(contrary, " and ") + ")"
	}
	return said
}

// label is the run's name, the stack's, or both where there are several of both.
func (s series) label() string {
	switch stack := Label(s.Curve[0].Answer.Stack); {
	case s.Name == "":
		return stack
	case len(s.Stacks()) > 1:
		return s.Name + ", " + stack
	}
	return s.Name
}

// along places what sweeps are over up to an end, and labels as many values as there is room for.
func along(all []series, end int) (x func(amount float64) float64, ticks []Tick) {
	var values []float64
	for _, c := range all {
		for _, a := range c.Curve {
			values = append(values, a.Answer.amount())
		}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	numbers, highest := values, float64(end)
	if n := len(values); n > 0 && math.IsInf(values[n-1], 1) {
		numbers, highest = values[:n-1], highest-beyond
	}
	if len(numbers) == 0 {
		numbers = []float64{1}
	}
	rates := scale(numbers[0], max(numbers[len(numbers)-1], 1.01*numbers[0]), lowest, highest)
	x = func(amount float64) float64 {
		if math.IsInf(amount, 1) {
			return float64(end)
		}
		return rates(amount)
	}
	free := 0.0 // where a label may begin
	for _, v := range values {
		said := Saturated
		if !math.IsInf(v, 1) {
			said = thousands(v)
		}
		tick, half := Tick{At: x(v)}, 4*float64(len(said))
		if tick.At-half >= free {
			tick.Label, free = said, tick.At+half
		}
		ticks = append(ticks, tick)
	}
	return x, ticks
}

// Break is where the axis along is broken before what is saturated, which has no place among rates; or else 0.
func (p Picture) Break() float64 {
	if last := len(p.Ticks) - 1; last > 0 && p.Ticks[last].Label == Saturated {
		return p.Ticks[last].At - beyond/2
	}
	return 0
}

// path draws the nth curve. The line to what is saturated is dashed.
func (s series) path(n int, x, y func(float64) float64) *Path {
	path := &Path{Label: s.label(), Second: n%2 == 1}
	for i, a := range s.Curve {
		d := dot(a.Figure, y)
		d.X, d.Tone, d.Title = x(a.Answer.amount()), "", table.Line(s.value(a.Answer)+": "+d.Title)
		d.FloorLo, d.FloorWidth = math.Round(10*(d.FloorLo+d.FloorWidth))/10, math.Abs(d.FloorWidth) // as ratios go upwards
		switch {
		case i == 0:
			path.Drawn = fmt.Sprintf("M%g %g", d.X, d.At)
		case a.Answer.Value == Saturated:
			path.Dashed = fmt.Sprintf("M%g %gL%g %g", path.Dots[i-1].X, path.Dots[i-1].At, d.X, d.At)
		default:
			path.Drawn += fmt.Sprintf("L%g %g", d.X, d.At)
		}
		path.Dots = append(path.Dots, d)
	}
	return path
}

// name places the label of each path beside its end, from x on and as wide as there is room, and below the one above.
func name(paths []*Path, x, room, bottom int) {
	end := func(path *Path) float64 { return path.Dots[len(path.Dots)-1].At }
	paths = slices.Clone(paths)
	slices.SortStableFunc(paths, func(a, b *Path) int { return cmp.Compare(end(a), end(b)) })
	for i, path := range paths {
		if path.X, path.Y = x, end(path)+4; i > 0 {
			path.Y = max(path.Y, paths[i-1].Y+15)
		}
		if letter*utf8.RuneCountInString(path.Label) > room {
			path.Fit = room
		}
	}
	for i := range slices.Backward(paths) { // up again where the last ones came too low
		paths[i].Y = min(paths[i].Y, float64(bottom-15*(len(paths)-1-i)))
	}
}
