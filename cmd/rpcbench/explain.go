package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"html/template"
	"io"
	"math"
	"os"
	"path"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aclements/go-moremath/stats"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/layers"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
	"github.com/rpcbench/rpcbench/stacks"
)

// turn is how long a stack is measured before the next one has its turn.
const turn = 500 * time.Millisecond

// explanation is a call of one stack, split among layers.
type explanation struct {
	Name string
	layers.Split
	plain, profiled []float64 // ns per call of each turn, without and with the profiler; none if a file was read
}

func explainCommand(stdout, stderr io.Writer) command {
	return command{
		name: "explain", args: " stack|profile...", does: "Split the time of a call among layers, or the difference between two",
		example: "rpcbench explain grpcservehttp grpcprotobuf",
		setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			name := f.String("workload", workload.Small, "`name` of rpcbench list")
			procs := f.Int("gomaxprocs", 1, "1 splits CPU work, 0 uses all cores")
			length := f.Duration("time", 20*time.Second, "for each stack, half of it under the profiler")
			svg := f.String("svg", "", "new `file` for a picture of stacked bars")
			return func(ctx context.Context, args []string) error {
				w, err := workload.Find(*name)
				if err != nil {
					return wrongUse{err}
				}
				_, missing := os.Stat(*svg)
				switch {
				case len(args) == 0:
					return wrong("explain: name a stack of rpcbench list, or a profile of go test -bench -profiles")
				case *procs < 0 || *procs > runtime.NumCPU():
					return wrong("explain: -gomaxprocs %d on a machine of %d cores: use 1, or 0 for all", *procs, runtime.NumCPU())
				case *length < 4*turn:
					return wrong("explain: -time %v is too short: give %v or more", *length, 4*turn)
				case *svg != "" && missing == nil:
					return wrong("explain: -svg %s: there is such a file already: name another", *svg)
				}
				if *procs > 0 {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(*procs))
				}
				all, err := explain(ctx, w, *length, args, progress(stderr))
				none := func(e *explanation) bool { return e.Calls == 0 }
				if len(all) == 0 || slices.ContainsFunc(all, none) {
					return err // else an interrupted one has something to show
				}
				if *svg != "" {
					err = errors.Join(err, writeBars(*svg, all))
				}
				t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
				if slices.ContainsFunc(all, func(e *explanation) bool { return len(e.plain) > 0 }) {
					fmt.Fprintf(t, "# %s\n# workload=%s GOMAXPROCS=%s\n", strings.Join(environ.List(), " "), w.Name, versus.Procs(*procs))
				}
				for _, e := range all {
					e.print(t)
				}
				if len(all) == 2 {
					printDifference(t, all[0], all[1])
				}
				return errors.Join(t.Flush(), err)
			}
		},
	}
}

// explain reads the arguments that are files, and measures those that are stacks.
func explain(ctx context.Context, w workload.Workload, length time.Duration, args []string, show show) ([]*explanation, error) {
	var all, measured []*explanation
	for _, arg := range args {
		e := &explanation{Name: arg}
		_, unknown := stacks.Find(arg)
		_, missing := os.Stat(arg)
		switch {
		case unknown == nil:
			measured = append(measured, e)
		case missing != nil:
			return nil, wrong("explain: %s is neither a profile nor a stack: rpcbench list names the stacks", arg)
		default:
			s, err := layers.ReadFile(arg)
			if err != nil {
				return nil, err
			}
			e.Name, e.Split = s.Row, s
		}
		all = append(all, e)
	}
	return all, takeTurns(ctx, w, length, measured, show)
}

// takeTurns gives each stack its turns, without and with the profiler, so that drift of the machine meets all alike.
func takeTurns(ctx context.Context, w workload.Workload, length time.Duration, all []*explanation, show show) (err error) {
	defer show("", 0, 0)
	labelled := pprof.WithLabels(ctx, pprof.Labels("side", "client"))
	pprof.SetGoroutineLabels(labelled)
	defer pprof.SetGoroutineLabels(ctx)
	var open []*workload.Open
	defer func() {
		for _, o := range open {
			err = errors.Join(err, o.Close())
		}
	}()
	for _, e := range all {
		found, err := stacks.Find(e.Name)
		if err != nil {
			return err
		}
		o, err := w.Open(labelled, found[0])
		if err != nil {
			return err
		}
		open = append(open, o)
		for range o.Warm {
			if err := o.Op(); err != nil {
				return err
			}
		}
	}
	rounds := int(length / (2 * turn))
	for round := range rounds {
		for i, e := range all {
			show(e.Name, time.Duration((rounds-round)*len(all)-i)*2*turn, time.Duration(rounds*len(all))*2*turn)
			if err := e.turns(ctx, open[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// turns measures a stack once without and once with the profiler.
func (e *explanation) turns(ctx context.Context, o *workload.Open) error {
	calls, took, err := callFor(ctx, o)
	if err != nil {
		return err
	}
	e.plain = append(e.plain, float64(took)/float64(calls))
	recording, err := layers.Start()
	if err != nil {
		return fmt.Errorf("rpcbench: explain: %w", err)
	}
	calls, _, err = callFor(ctx, o)
	taken, stopErr := recording.Stop(e.Name, calls)
	if err := cmp.Or(err, stopErr); err != nil {
		return err
	}
	s, err := layers.Of(taken)
	if err != nil {
		return fmt.Errorf("rpcbench: explain: %s: %w", e.Name, err)
	}
	e.add(s)
	return nil
}

// add adds a turn under the profiler.
func (e *explanation) add(s layers.Split) {
	_, cpu := s.Sum(everything)
	e.profiled = append(e.profiled, float64(cpu)/float64(s.Calls))
	e.Calls, e.Parts = e.Calls+s.Calls, append(e.Parts, s.Parts...)
}

// callFor makes calls for one turn.
func callFor(ctx context.Context, o *workload.Open) (calls int64, took time.Duration, err error) {
	hung := time.AfterFunc(time.Minute, func() { _ = o.Fixture.Close() })
	defer hung.Stop()
	for began := time.Now(); took < turn; took = time.Since(began) {
		if ctx.Err() != nil {
			return 0, 0, errInterrupted
		}
		if err := o.Op(); err != nil {
			return 0, 0, err
		}
		calls += int64(o.Calls)
	}
	return calls, took, nil
}

func everything(layers.Part) bool { return true }

// micro returns the µs per call of the parts that satisfy the condition, and half the width of its 95 % interval: a
// count of samples varies as a Poisson variable does.
func (e *explanation) micro(of func(layers.Part) bool) (micro, half float64) {
	samples, cpu := e.Sum(of)
	micro = cpu.Seconds() * 1e6 / float64(e.Calls)
	return micro, 1.96 * micro / math.Sqrt(max(1, float64(samples)))
}

func within(layer, side string) func(layers.Part) bool {
	return func(p layers.Part) bool { return (layer == "" || p.Layer == layer) && (side == "" || p.Side == side) }
}

// mean formats a mean in µs with its 95 % interval.
func mean(ns []float64) string {
	_, lo, hi := stats.MeanCI(ns, 0.95)
	return fmt.Sprintf("%+.1f µs (%+.1f to %+.1f)", stats.Mean(ns)/1000, lo/1000, hi/1000)
}

func (e *explanation) print(w io.Writer) {
	samples, _ := e.Sum(everything)
	all, _ := e.micro(everything)
	fmt.Fprintf(w, "\n%s: %.1f µs of CPU per call, by %d samples of %d calls", e.Name, all, samples, e.Calls)
	if len(e.plain) > 0 {
		fmt.Fprintf(w, "; without the profiler %s", strings.ReplaceAll(mean(e.plain), "+", ""))
	}
	fmt.Fprint(w, "\nlayer\tclient, µs\tserver, µs\tunlabelled, µs\tall, µs\tshare\n")
	for _, layer := range append(layers.Names(), "") {
		sum, _ := e.micro(within(layer, ""))
		if sum == 0 {
			continue
		}
		fmt.Fprint(w, cmp.Or(layer, "sum"))
		for _, side := range layers.Sides() {
			micro, _ := e.micro(within(layer, side))
			fmt.Fprintf(w, "\t%.1f", micro)
		}
		fmt.Fprintf(w, "\t%.1f\t%.1f %%\n", sum, 100*sum/all)
	}
}

// printDifference says layer by layer what a takes more than b, the largest difference first.
func printDifference(w io.Writer, a, b *explanation) {
	difference := func(layer, side string) (micro, half float64) {
		x, dx := a.micro(within(layer, side))
		y, dy := b.micro(within(layer, side))
		return x - y, math.Hypot(dx, dy)
	}
	names := layers.Names()
	slices.SortStableFunc(names, func(x, y string) int {
		dx, _ := difference(x, "")
		dy, _ := difference(y, "")
		return cmp.Compare(math.Abs(dy), math.Abs(dx))
	})
	fmt.Fprintf(w, "\n%s less %s\nlayer\tclient, µs\tserver, µs\tunlabelled, µs\tall, µs\t± (sampling)\tfunctions that carry it\n", a.Name, b.Name)
	for _, layer := range append(names, "") {
		micro, half := difference(layer, "")
		if half == 0 { // neither has it
			continue
		}
		fmt.Fprint(w, cmp.Or(layer, "sum"))
		for _, side := range append(layers.Sides(), "") {
			micro, _ := difference(layer, side)
			fmt.Fprintf(w, "\t%+.1f", micro)
		}
		said := ""
		if layer != "" && math.Abs(micro) > half {
			said = carriers(a, b, layer)
		}
		fmt.Fprintf(w, "\t%.1f\t%s\n", half, said)
	}
	if len(a.plain) > 0 && len(a.plain) == len(b.plain) {
		fmt.Fprintf(w, "\nTurn by turn the difference is %s by the profiles and %s without the profiler.\n",
			mean(less(a.profiled, b.profiled)), mean(less(a.plain, b.plain)))
	}
}

// less subtracts turn by turn.
func less(a, b []float64) []float64 {
	d := slices.Clone(a)
	for i := range d {
		d[i] -= b[i]
	}
	return d
}

// carriers names the three functions of a layer whose times differ most.
func carriers(a, b *explanation, layer string) string {
	by := map[string]float64{}
	for i, e := range []*explanation{a, b} {
		for _, p := range e.Parts {
			if p.Layer == layer {
				by[path.Base(p.Function)] += float64(1-2*i) * p.CPU.Seconds() * 1e6 / float64(e.Calls)
			}
		}
	}
	var names []string
	for name := range by {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int {
		return cmp.Or(cmp.Compare(math.Abs(by[y]), math.Abs(by[x])), strings.Compare(x, y))
	})
	var said []string
	for _, name := range names[:min(3, len(names))] {
		said = append(said, fmt.Sprintf("%s %+.1f", name, by[name]))
	}
	return strings.Join(said, ", ")
}

//go:embed bars.svg.tmpl
var barsTemplate string

// bar is a stack in the picture.
type bar struct {
	Y        int
	Name     string
	Micro    float64
	End      float64 // where its sum is written
	Segments []segment
}

// segment is a layer's part of a bar.
type segment struct {
	Layer    string
	Kind     int // the layer's place among all
	X, Width float64
	Micro    float64
}

// writeBars draws a bar per stack, with a segment for each layer.
func writeBars(path string, all []*explanation) error {
	const left, width, top, step = 160, 560, 44, 44
	longest := 0.0
	for _, e := range all {
		micro, _ := e.micro(everything)
		longest = max(longest, micro)
	}
	var bars []bar
	for i, e := range all {
		b := bar{Y: top + i*step, Name: e.Name}
		b.Micro, _ = e.micro(everything)
		x := float64(left)
		for kind, layer := range layers.Names() {
			micro, _ := e.micro(within(layer, ""))
			s := segment{layer, kind, x, micro / longest * width, micro}
			x += s.Width
			b.Segments = append(b.Segments, s)
		}
		b.End = x + 6
		bars = append(bars, b)
	}
	bottom := top + len(all)*step
	made, err := template.New("bars").Funcs(template.FuncMap{
		"half": func(x float64) float64 { return x / 2 },
		"key":  func(i int) string { return fmt.Sprintf("translate(%d %d)", 12+i%3*245, bottom+10+i/3*22) },
	}).Parse(barsTemplate)
	if err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("rpcbench: explain: %w", err)
	}
	err = made.Execute(file, map[string]any{"Bars": bars, "Names": layers.Names(), "Height": bottom + 126})
	return errors.Join(err, file.Close())
}
