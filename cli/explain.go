package cli

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"html/template"
	"io"
	"maps"
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
)

// turn is how long a stack is measured before the next one has its turn.
const turn = 500 * time.Millisecond

// explanation is a call of one stack, split among layers.
type explanation struct {
	Name  string
	turns []layers.Split // one per turn, or that of a file
	plain []float64      // µs per call of each turn, without the profiler; none if a file was read
}

func explainCommand(p program, stdout, stderr io.Writer) command {
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
				all, err := p.explain(ctx, w, *length, args, progress(stderr))
				none := func(e *explanation) bool { return len(e.turns) == 0 }
				if len(all) == 0 || slices.ContainsFunc(all, none) {
					return err // else an interrupted one has something to show
				}
				if *svg != "" {
					err = errors.Join(err, writeBars(*svg, all))
				}
				t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
				fmt.Fprintf(t, "# %s\n", strings.Join(environ.List(), " "))
				for _, e := range all {
					if len(e.plain) > 0 {
						fmt.Fprintf(t, "# %s: workload=%s GOMAXPROCS=%s turns=%d\n", e.Name, w.Name, versus.Procs(*procs), len(e.turns))
					}
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
func (p program) explain(ctx context.Context, w workload.Workload, length time.Duration, args []string, show show) ([]*explanation, error) {
	var all, measured []*explanation
	for _, arg := range args {
		e := &explanation{Name: arg}
		_, unknown := p.find(arg)
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
			e.Name, e.turns = s.Row, []layers.Split{s}
		}
		all = append(all, e)
	}
	return all, p.takeTurns(ctx, w, length, measured, show)
}

// takeTurns gives each stack its turns, without and with the profiler, so that drift of the machine meets all alike.
func (p program) takeTurns(ctx context.Context, w workload.Workload, length time.Duration, all []*explanation, show show) (err error) {
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
		found, err := p.find(e.Name)
		if err != nil {
			return err
		}
		o, err := w.Open(labelled, found[0])
		if err != nil {
			return err
		}
		open = append(open, o)
		hung := time.AfterFunc(time.Minute, func() { _ = o.Fixture.Close() })
		defer hung.Stop()
		for range o.Warm {
			if err := o.Op(); err != nil {
				return err
			}
		}
		hung.Stop()
	}
	rounds := int(length / (2 * turn))
	for round := range rounds {
		for i, e := range all {
			show(e.Name, time.Duration((rounds-round)*len(all)-i)*2*turn, time.Duration(rounds*len(all))*2*turn)
			if err := e.turn(ctx, open[i], round%2 == 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// turn measures a stack once without and once with the profiler, after calls that don't count: the stack before has left
// its garbage and its caches.
func (e *explanation) turn(ctx context.Context, o *workload.Open, profilerFirst bool) error {
	if _, _, err := callFor(ctx, o, turn/5); err != nil {
		return err
	}
	var plain float64
	var split layers.Split
	for _, profiled := range []bool{profilerFirst, !profilerFirst} {
		if !profiled {
			calls, took, err := callFor(ctx, o, turn)
			if err != nil {
				return err
			}
			plain = took.Seconds() * 1e6 / float64(calls)
			continue
		}
		recording, err := layers.Start()
		if err != nil {
			return fmt.Errorf("rpcbench: explain: %w", err)
		}
		calls, _, err := callFor(ctx, o, turn)
		taken, stopErr := recording.Stop(e.Name, calls)
		if err := cmp.Or(err, stopErr); err != nil {
			return err
		}
		if split, err = layers.Of(taken); err != nil {
			return fmt.Errorf("rpcbench: explain: %s: %w", e.Name, err)
		}
	}
	e.plain, e.turns = append(e.plain, plain), append(e.turns, split)
	return nil
}

// callFor makes calls for a while.
func callFor(ctx context.Context, o *workload.Open, length time.Duration) (calls int64, took time.Duration, err error) {
	hung := time.AfterFunc(time.Minute, func() { _ = o.Fixture.Close() })
	defer hung.Stop()
	for began := time.Now(); took < length; took = time.Since(began) {
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

// micro returns the µs per call in each turn of the parts that satisfy the condition.
func (e *explanation) micro(of func(layers.Part) bool) (each []float64) {
	for _, s := range e.turns {
		_, cpu := s.Sum(of)
		each = append(each, cpu.Seconds()*1e6/float64(s.Calls))
	}
	return each
}

// count adds up samples and calls.
func (e *explanation) count() (samples, calls int64) {
	for _, s := range e.turns {
		n, _ := s.Sum(everything)
		samples, calls = samples+n, calls+s.Calls
	}
	return samples, calls
}

func within(layer, side string) func(layers.Part) bool {
	return func(p layers.Part) bool { return (layer == "" || p.Layer == layer) && (side == "" || p.Side == side) }
}

// interval formats a mean with its 95 % interval over turns.
func interval(micro []float64) string {
	mean, lo, hi := stats.MeanCI(micro, 0.95)
	return fmt.Sprintf("%+.1f µs (%+.1f to %+.1f)", mean, lo, hi)
}

func (e *explanation) print(w io.Writer) {
	samples, calls := e.count()
	all := stats.Mean(e.micro(everything))
	fmt.Fprintf(w, "\n%s: %.1f µs of CPU per call, by %d samples of %d calls", e.Name, all, samples, calls)
	if len(e.plain) > 1 {
		fmt.Fprintf(w, "; without the profiler %s", strings.ReplaceAll(interval(e.plain), "+", ""))
	}
	fmt.Fprint(w, "\nlayer\tclient, µs\tserver, µs\tunlabelled, µs\tall, µs\tshare\n")
	for _, layer := range append(layers.Names(), "") {
		sum := stats.Mean(e.micro(within(layer, "")))
		if sum == 0 {
			continue
		}
		fmt.Fprint(w, cmp.Or(layer, "sum"))
		for _, side := range layers.Sides() {
			fmt.Fprintf(w, "\t%.1f", stats.Mean(e.micro(within(layer, side))))
		}
		fmt.Fprintf(w, "\t%.1f\t%.1f %%\n", sum, 100*sum/all)
	}
}

// printDifference says layer by layer what a takes more than b, the largest difference first. Each interval is over the
// differences of turns. Profiles that were read have one turn, and no interval.
func printDifference(w io.Writer, a, b *explanation) {
	difference := func(layer, side string) []float64 {
		return less(a.micro(within(layer, side)), b.micro(within(layer, side)))
	}
	names := layers.Names()
	slices.SortStableFunc(names, func(x, y string) int {
		return cmp.Compare(math.Abs(stats.Mean(difference(y, ""))), math.Abs(stats.Mean(difference(x, ""))))
	})
	fmt.Fprintf(w, "\n%s less %s\nlayer\tclient, µs\tserver, µs\tunlabelled, µs\tall, µs\t± (95 %%)\tfunctions that carry it\n", a.Name, b.Name)
	for _, layer := range append(names, "") {
		all := difference(layer, "")
		mean, lo, hi := stats.MeanCI(all, 0.95)
		if max(slices.Max(all), -slices.Min(all)) == 0 { // neither has it
			continue
		}
		fmt.Fprint(w, cmp.Or(layer, "sum"))
		for _, side := range append(layers.Sides(), "") {
			fmt.Fprintf(w, "\t%+.1f", stats.Mean(difference(layer, side)))
		}
		half, said := "", ""
		if len(all) > 1 {
			half = fmt.Sprintf("%.1f", (hi-lo)/2)
		}
		if layer != "" && (len(all) == 1 || math.Abs(mean) > (hi-lo)/2) {
			said = carriers(a, b, layer)
		}
		fmt.Fprintf(w, "\t%s\t%s\n", half, said)
	}
	if min(len(a.plain), len(b.plain)) > 1 {
		fmt.Fprintf(w, "\nThe difference is %s by the profiles and %s without the profiler.\n",
			interval(difference("", "")), interval(less(a.plain, b.plain)))
	}
}

// less subtracts turn by turn, as far as both have turns.
func less(a, b []float64) (d []float64) {
	for i := range min(len(a), len(b)) {
		d = append(d, a[i]-b[i])
	}
	return d
}

// carriers names the three functions of a layer whose times differ most.
func carriers(a, b *explanation, layer string) string {
	by := map[string]float64{}
	for i, e := range []*explanation{a, b} {
		for _, s := range e.turns {
			for _, p := range s.Parts {
				if p.Layer == layer {
					by[path.Base(p.Function)] += float64(1-2*i) * p.CPU.Seconds() * 1e6 / float64(s.Calls) / float64(len(e.turns))
				}
			}
		}
	}
	names := slices.Collect(maps.Keys(by))
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
		longest = max(longest, stats.Mean(e.micro(everything)))
	}
	var bars []bar
	for i, e := range all {
		b := bar{Y: top + i*step, Name: e.Name, Micro: stats.Mean(e.micro(everything))}
		x := float64(left)
		for kind, layer := range layers.Names() {
			micro := stats.Mean(e.micro(within(layer, "")))
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
