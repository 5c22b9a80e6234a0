package report

import (
	"fmt"

	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// Picture draws a forest plot of each figure that a workload asks for, as wide as a phone: a line for each run, and
// below them the mean and where the next run's ratio will be.
func (p Pool) Picture() Picture { return phone.forest(p) }

// Wide draws it as wide as a page.
func (p Pool) Wide() Picture { return desk.forest(p) }

func (of layout) forest(pool Pool) Picture {
	lo, hi := of.ends(pool)
	x := scale(lo, hi, float64(of.left), float64(of.right))
	p := Picture{Title: "Each run, in multiples of its base's", Width: of.width, Top: 46, Left: of.left, Right: of.right,
		One: x(1), Ticks: ticks(lo, hi, x)}
	if len(pool.Questions) == 1 {
		p.Title = pool.Questions[0].all.title()
	}
	p.Words = []Word{{of.left, p.Top - 8, "← less", false}, {of.right, p.Top - 8, "more →", true}}
	y, height, means := p.Top+20, of.label+track, false
	add := func(label string, d Dot) {
		d.Y, d.SaidX = of.dot, of.width-edge
		p.Lines = append(p.Lines, Line{Y: y, Label: table.Line(label), Dots: []Dot{d}})
		y += height
	}
	for _, q := range pool.Questions {
		if len(pool.Questions) > 1 {
			p.Lines = append(p.Lines, Line{Y: y + track, Heading: table.Line(q.Head())})
			y += 24
		}
		for _, c := range q.Comparisons {
			if !c.Leads {
				continue
			}
			p.Lines = append(p.Lines, Line{Y: y + track, Heading: table.Line(q.does(c) + ": " + c.short())})
			y += 24 + track
			for _, f := range c.Found {
				add(f.Folder+either(f.LeftOut == "", "", " (left out)"), dot(f.figure(), x))
			}
			if c.Ratio > 0 {
				mean, next := c.dots(x)
				add(fmt.Sprintf("mean of %d", c.Runs), mean)
				add("next run (95%)", next)
				means = true
			}
			p.Lines[len(p.Lines)-1].Rule = y - 15
		}
	}
	p.Bottom = y - 14
	said := []string{"A dot with its 95% interval, on a logarithmic axis.", "Grey: the noise floor. Hollow: undecided."}
	if means {
		said = append(said, "Diamond: the mean of the runs above it.")
	}
	for i, text := range said {
		p.Words = append(p.Words, Word{edge, p.Bottom + 34 + 16*i, text, false})
	}
	p.Height = p.Bottom + 24 + 16*len(said)
	return p
}

// ends are those of the axis. The next run's interval may be many times as wide as all others, and then has no ends.
func (of layout) ends(pool Pool) (lo, hi float64) {
	lo, hi = of.from, 1.25
	for _, q := range pool.Questions {
		for _, c := range q.Comparisons {
			if !c.Leads {
				continue
			}
			for _, f := range c.Found {
				lo, hi = min(lo, f.Lo), max(hi, f.Hi)
			}
			if c.Ratio > 0 {
				lo, hi = min(lo, max(c.NextLo, c.Ratio/2)), max(hi, min(c.NextHi, 2*c.Ratio))
			}
		}
	}
	return max(lo/1.05, 1e-3), min(hi*1.05, 1e3)
}

// short is what the ratio is of, in the words that a picture has room for.
func (c Comparison) short() string {
	switch c.Of {
	case rateHeading:
		return "calls per second"
	case timeHeading:
		return "time per call"
	}
	return "CPU per call"
}

// figure is what the run found as a picture draws it.
func (f Found) figure() verdict.Figure {
	return verdict.Figure{Ratio: f.Ratio, Lo: f.Lo, Hi: f.Hi, NoiseFloor: f.NoiseFloor, Verdict: f.Verdict}
}

// dots are the mean, and the interval of the next run. The latter has no dot: any ratio in it is as good.
func (c Comparison) dots(x func(float64) float64) (mean, next Dot) {
	mean = dot(verdict.Figure{Ratio: c.Ratio, Lo: c.Lo, Hi: c.Hi, NoiseFloor: c.NoiseFloor, Verdict: c.Verdict}, x)
	mean.Second = true
	next = Dot{Title: c.next(), Tone: mean.Tone, Bare: true, Lo: x(c.NextLo), At: x(c.Ratio),
		Hi: x(c.NextHi)}
	return mean, next
}
