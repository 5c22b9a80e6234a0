package calibrate

import (
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/rpcbench/rpcbench/internal/replicate"
)

const (
	width  = 7 * vg.Inch
	height = 3.2 * vg.Inch
)

func blue() color.Color   { return color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 255} }
func orange() color.Color { return color.RGBA{R: 0xd9, G: 0x6a, B: 0x0b, A: 255} }
func grey() color.Color   { return color.Gray{Y: 150} }

// Plots draws what the entries say into dir, as SVG. A plot of what has not been measured yet is left out.
func Plots(dir string, entries []Entry) error {
	if err := planned(entries); err != nil {
		return err
	}
	r := byExperiment(entries)
	for _, p := range []struct {
		file string
		of   string // experiment
		draw func() (*plot.Plot, error)
	}{
		{"procs.svg", DefaultProcs, r.plotProcs},
		{"coverage.svg", Replication, r.plotCoverage},
		{"same.svg", Same, r.plotSame},
		{"sensitivity.svg", Sensitivity, r.plotSensitivity},
	} {
		if len(r[p.of]) < 2 {
			continue
		}
		drawn, err := p.draw()
		if err == nil {
			drawn.BackgroundColor = color.White // pages may be dark
			drawn.Title.Padding = vg.Points(6)
			err = drawn.Save(width, height, filepath.Join(dir, p.file))
		}
		if err != nil {
			return fmt.Errorf("rpcbench: calibrate: %s: %w", p.file, err)
		}
	}
	return nil
}

func dots(points plotter.XYs, c color.Color) (*plotter.Scatter, error) {
	s, err := plotter.NewScatter(points)
	if err != nil {
		return nil, err
	}
	s.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(1.5), Shape: draw.CircleGlyph{}}
	return s, nil
}

func line(c color.Color, points ...plotter.XY) *plotter.Line {
	return &plotter.Line{XYs: points, LineStyle: draw.LineStyle{Color: c, Width: vg.Points(1)}}
}

// exact are ticks with as many digits as ratios close to each other need.
type exact struct{}

func (exact) Ticks(lo, hi float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(lo, hi)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = fmt.Sprintf("%.3f", ticks[i].Value)
		}
	}
	return ticks
}

// plotProcs is every process's ratio with one P and with the default.
func (r records) plotProcs() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s to %s: one dot per process", grpcStack, jsonStack)
	p.Y.Label.Text = "ratio of ns/op"
	for i, of := range []struct {
		name  string
		color color.Color
	}{{Replication, blue()}, {DefaultProcs, orange()}} {
		values := ratios(r[of.name], first)
		if len(values) == 0 {
			continue // whose mean is no number, at which plot would not end
		}
		var points plotter.XYs
		for j, v := range values {
			points = append(points, plotter.XY{X: float64(i) + 0.7*(float64(j)+0.5)/float64(len(values)) - 0.35, Y: v})
		}
		s, err := dots(points, of.color)
		if err != nil {
			return nil, err
		}
		mean := replicate.Independent(values, level).Median
		p.Add(s, line(color.Black, plotter.XY{X: float64(i) - 0.4, Y: mean}, plotter.XY{X: float64(i) + 0.4, Y: mean}))
	}
	p.Add(line(grey(), plotter.XY{X: -0.5, Y: 1}, plotter.XY{X: 1.5, Y: 1}))
	p.NominalX("GOMAXPROCS=1", "default GOMAXPROCS")
	return p, nil
}

// plotCoverage is the interval of every repeat with the mean of all.
func (r records) plotCoverage() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s to %s, repeats of %d processes: 95 %% intervals and the mean of all", grpcStack, jsonStack, replicate.Fewest)
	p.X.Label.Text, p.Y.Label.Text = "repeat", "ratio of ns/op"
	p.Y.Tick.Marker = exact{}
	values := ratios(r[Replication], first)
	mean := replicate.Independent(values, level).Median
	n := len(repeats(values, replicate.Fewest))
	for x, i := range repeats(values, replicate.Fewest) {
		c := blue()
		if i.Lo > mean || i.Hi < mean {
			c = orange()
		}
		p.Add(line(c, plotter.XY{X: float64(x), Y: i.Lo}, plotter.XY{X: float64(x), Y: i.Hi}))
	}
	p.Add(line(grey(), plotter.XY{X: -1, Y: mean}, plotter.XY{X: float64(n), Y: mean}))
	return p, nil
}

// plotSame is the distribution of the half-widths of a stack against its copy.
func (r records) plotSame() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("a stack against its own copy, one process, %v", single)
	p.X.Label.Text, p.Y.Label.Text = "half-width of the interval, %", "share of processes"
	for _, of := range []struct {
		name, what string
		color      color.Color
	}{{Same, jsonStack, blue()}, {Sensitivity, grpcStack, orange()}} {
		var widths []float64
		for _, record := range r[of.name] {
			if w := halfWidth(interval(within(record, again, base, single), again)); !math.IsNaN(w) {
				widths = append(widths, w)
			}
		}
		if len(widths) == 0 {
			continue
		}
		slices.Sort(widths)
		points := plotter.XYs{{X: 0, Y: 0}}
		for i, v := range widths {
			points = append(points, plotter.XY{X: v, Y: float64(i) / float64(len(widths))}, plotter.XY{X: v, Y: float64(i+1) / float64(len(widths))})
		}
		l := line(of.color, points...)
		p.Add(l)
		p.Legend.Add(of.what, l)
	}
	p.Legend.Top, p.Legend.Left = true, true
	return p, nil
}

// plotSensitivity is what was estimated against what was injected.
func (r records) plotSensitivity() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("work injected into %s, and its estimate in %v: one dot per process", grpcStack, single)
	p.X.Label.Text, p.Y.Label.Text = "injected, µs", "estimated, µs"
	var points plotter.XYs
	last := 0.0
	for i, d := range works() {
		arm := first + 1 + i
		for j, record := range r[Sensitivity] {
			ratio := interval(within(record, arm, base, single), arm).Median
			if y := (ratio - 1) * record.NsPerOp(base) / 1000; !math.IsNaN(y) {
				points = append(points, plotter.XY{X: d.Seconds()*1e6 + 0.002*float64(j), Y: y})
			}
		}
		last = d.Seconds() * 1e6
	}
	s, err := dots(points, blue())
	if err != nil {
		return nil, err
	}
	p.Add(line(grey(), plotter.XY{}, plotter.XY{X: last, Y: last}), s)
	return p, nil
}
