package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/aclements/go-moremath/stats"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/layers"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/table"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
)

// turn is how long a stack is measured before the next one has its turn. In a process each has as many rounds: one with
// the profiler first, one with it last.
const (
	turn   = 500 * time.Millisecond
	rounds = 2
	each   = rounds * 2 * turn // of a stack in a process
)

// oneProcess is said of a workload that is apart.
const oneProcess = "# %s: explained in one process: a profile of it has both the client and the server\n"

// closedLoop is said of a workload that has a rate.
const closedLoop = "# %s: explained without its rate: %d callers call again as soon as they have their reply\n"

// explanation is a call of one stack, split among layers.
type explanation struct {
	Name      string
	processes []versus.Explained // or a profile that was read
}

func explainCommand(p program, stdout, stderr io.Writer) command {
	return command{
		name: "explain", tidies: true, args: " stack|profile|URL...",
		does:    "Split the time of a call among layers, or the difference between two, or a service's CPU profile",
		example: "rpcbench explain grpcservehttp grpcprotobuf",
		setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			first := p.workloads()[0].Name
			if p.stacks[0].Method == "" {
				first = workload.Small
			}
			name := f.String("workload", first, "`name` of rpcbench list")
			var given workload.Workload
			f.IntVar(&given.Callers, "callers", 0, "`number` of callers at a time")
			f.IntVar(&given.Conns, "conns", 0, "`number` of connections; as the stack's library is wired unless given")
			procs := f.Int("gomaxprocs", 1, "1 splits CPU work, 0 uses all cores")
			length := f.Duration("time", 20*time.Second, "for each stack, 2 s of it per process, half under the profiler")
			ratios := f.String("ratios", "", "`folder` of rpcbench run: what its ratios would win for a service")
			folder := f.String("keep", "", "new `folder` for a CPU profile of each stack, which explain and go tool pprof read")
			timeout := f.Duration("timeout", time.Minute, "how long to wait for the profile of a URL")
			return func(ctx context.Context, args []string) error {
				w, err := workload.In(p.workloads(), *name)
				if err != nil {
					return wrongUse{err}
				}
				w.Callers, w.Conns = cmp.Or(given.Callers, w.Callers), cmp.Or(given.Conns, w.Conns)
				err = w.Check()
				stacks := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return !slices.Contains(p.names(), arg) })
				switch least := 2 * each; {
				case err != nil:
					return wrong("explain: %w", err)
				case len(args) == 0:
					return wrong("explain: name a stack of rpcbench list, a CPU profile or its URL")
				case *ratios != "" && len(stacks) > 0:
					return wrong("explain: -ratios is for the profile of a service, and %s is a stack", stacks[0])
				case len(stacks) == 0 && (*folder != "" || given != workload.Workload{}):
					return wrong("explain: -callers, -conns and -keep are for stacks, and %s is none", args[0])
				case *folder != "" && len(slices.Compact(slices.Sorted(slices.Values(stacks)))) < len(stacks):
					return wrong("explain: -keep has one profile of a stack: name each stack once")
				case *procs < 0 || *procs > runtime.NumCPU():
					return wrong("explain: -gomaxprocs %d is not from 0 to %d, the cores of this machine: use 1, or 0 for all",
						*procs, runtime.NumCPU())
				case *length < least:
					return wrong("explain: -time %v is too short: give %v or more", *length, least)
				}
				var by report.Summary
				if *ratios != "" {
					by, err = report.Read(*ratios)
				}
				switch {
				case err != nil:
					return err
				case by.Remote:
					return wrong("explain: -ratios %s: its servers were elsewhere, so no ratio is of CPU: name another", *ratios)
				}
				if *folder != "" {
					if err := os.Mkdir(*folder, 0o755); err != nil {
						return wrong("explain: -keep needs the name of a new folder: %w", err)
					}
					defer func() { _ = os.Remove(*folder) }() // unless a profile is in it
				}
				spec := versus.Spec{Workload: w, Slice: turn, Procs: *procs, Blocks: rounds}
				all, err := p.explain(ctx, spec, *length, *timeout, args, progress(stderr))
				none := func(e *explanation) bool { return len(e.processes) == 0 }
				if len(all) == 0 || slices.ContainsFunc(all, none) {
					return err // else an interrupted one has something to show
				}
				service := all[0].processes[0].Profile.Calls == 0
				if *ratios != "" && !service {
					return wrong("explain: -ratios is for the profile of a service, and %s is one of rpcbench", all[0].Name)
				}
				for _, e := range all {
					if len(e.processes[0].Recordings) > 0 && *folder != "" {
						err = errors.Join(err, e.keep(*folder))
					}
				}
				if service {
					return errors.Join(all[0].printService(stdout, by), err)
				}
				if w.Apart && len(stacks) > 0 {
					fmt.Fprintf(stdout, oneProcess, w.Name)
				}
				if w.Rate != 0 && len(stacks) > 0 {
					fmt.Fprintf(stdout, closedLoop, w.Name, w.AtOnce())
				}
				fmt.Fprintf(stdout, "# %s\n", strings.Join(environ.List(), " "))
				fmt.Fprintln(stdout, "# ± and intervals are of 95 %, over processes, each with new fixtures.",
					"SE is a standard error over them, or that of counting a file's samples.")
				for _, e := range all {
					if procs := e.processes[0].Procs; procs > 0 {
						s := p.stacks[slices.Index(p.names(), e.Name)]
						fmt.Fprintf(stdout, "# %s: workload=%s callers=%d conns=%d GOMAXPROCS=%d processes=%d\n", e.Name, w.Name,
							w.AtOnce(), w.Connections(s.Traits), procs, len(e.processes))
					}
				}
				for _, e := range all {
					err = errors.Join(err, e.print(stdout))
				}
				if len(all) == 2 {
					err = errors.Join(err, printDifference(stdout, all[0], all[1]))
				}
				return err
			}
		},
	}
}

// explain reads the arguments that are files, and has those that are stacks measured in one process after the other. It
// keeps what was measured before an error.
func (p program) explain(ctx context.Context, spec versus.Spec, length, timeout time.Duration, args []string,
	show show) (all []*explanation, err error) {
	var measured []*explanation
	for _, arg := range args {
		e := &explanation{Name: arg}
		_, unknown := p.find(arg)
		info, missing := os.Stat(arg)
		address := strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://")
		switch {
		case unknown == nil:
			measured, spec.Arms = append(measured, e), append(spec.Arms, arg)
		case missing != nil && !address:
			return nil, wrong("explain: %q is neither a profile nor a stack: rpcbench list names the stacks", arg)
		case !address && !info.Mode().IsRegular():
			return nil, wrong("explain: %s is no file: give a file or a URL", arg)
		default:
			read := layers.ReadFile
			if address {
				read = func(string) (layers.Split, error) { return fetch(ctx, arg, timeout) }
			}
			s, err := read(arg)
			switch {
			case ctx.Err() != nil:
				return nil, errInterrupted
			case err != nil:
				return nil, err
			case s.Calls == 0 && len(args) > 1:
				return nil, wrong("explain: %s is a service's, whose calls nobody counted: give it alone", arg)
			}
			e.Name, e.processes = s.Row, []versus.Explained{{Profile: s}}
		}
		all = append(all, e)
	}
	defer show("", 0, 0)
	takes := each * time.Duration(len(measured))
	for n, left := length/each, length/each; left > 0 && takes > 0; left-- {
		show(fmt.Sprintf("process %d of %d", n-left+1, n), takes*left, takes*n)
		found, err := versus.Explain(ctx, spec, versus.Program{})
		for i, one := range found {
			measured[i].processes = append(measured[i].processes, one)
		}
		if ctx.Err() != nil {
			err = errInterrupted
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// keep writes the profile of all processes of a stack to a folder.
func (e *explanation) keep(folder string) error {
	var recordings [][]byte
	for _, p := range e.processes {
		recordings = append(recordings, p.Recordings...)
	}
	_, calls, _ := e.count(everything)
	var data bytes.Buffer
	taken, err := layers.Merge(e.Name, calls, recordings...)
	if err == nil {
		name := filepath.Join(folder, filepath.Base(e.Name)+".pprof")
		err = cmp.Or(taken.Write(&data), os.WriteFile(name, data.Bytes(), 0o666))
	}
	if err != nil {
		return fmt.Errorf("rpcbench: explain: %w", err)
	}
	return nil
}

func everything(layers.Part) bool { return true }

// micro returns the µs per call in each process of the parts that satisfy the condition. Of a service, whose calls
// nobody counted, it returns the percentage of samples.
func (e *explanation) micro(of func(layers.Part) bool) (each []float64) {
	for _, p := range e.processes {
		n, cpu := p.Profile.Sum(of)
		amount, by := cpu.Seconds()*1e6, p.Profile.Calls
		if by == 0 {
			amount = 100 * float64(n)
			by, _ = p.Profile.Sum(everything)
		}
		each = append(each, amount/float64(by))
	}
	return each
}

// plain returns the µs per call in each process without the profiler: none of a profile, or where the system does not
// tell the CPU time.
func (e *explanation) plain() (wall, cpu []float64) {
	for _, p := range e.processes {
		if p.Calls > 0 {
			wall = append(wall, p.Wall.Seconds()*1e6/float64(p.Calls))
		}
		if p.CPU > 0 {
			cpu = append(cpu, p.CPU.Seconds()*1e6/float64(p.Calls))
		}
	}
	return wall, cpu
}

// count adds up samples, calls under the profiler, and calls without.
func (e *explanation) count(of func(layers.Part) bool) (samples, calls, plain int64) {
	for _, p := range e.processes {
		n, _ := p.Profile.Sum(of)
		samples, calls, plain = samples+n, calls+p.Profile.Calls, plain+p.Calls
	}
	return samples, calls, plain
}

func within(layer, side string) func(layers.Part) bool {
	return func(p layers.Part) bool { return (layer == "" || p.Layer == layer) && (side == "" || p.Side == side) }
}

// interval formats a mean with its 95 % interval over processes. One process has none.
func interval(micro []float64) string {
	mean, lo, hi := stats.MeanCI(micro, 0.95)
	if len(micro) == 1 {
		return fmt.Sprintf("%+.1f µs", mean)
	}
	return fmt.Sprintf("%+.1f µs (%+.1f to %+.1f)", mean, lo, hi)
}

// print has what a call takes, and its layers.
func (e *explanation) print(w io.Writer) error {
	samples, calls, plain := e.count(everything)
	all := e.micro(everything)
	fmt.Fprintf(w, "\n%s: %.1f µs of CPU per call, by %d samples of %d calls", e.Name, stats.Mean(all), samples, calls)
	if wall, cpu := e.plain(); len(wall) > 0 {
		said := "; without the profiler " + interval(wall) + " of wall time"
		if len(cpu) > 0 {
			said += ", " + interval(cpu) + " of CPU"
		}
		fmt.Fprintf(w, "%s, by %d calls", strings.ReplaceAll(said, "+", ""), plain)
		missed := less(all, cpu)
		if _, lo, hi := stats.MeanCI(missed, 0.95); len(missed) > 1 && lo*hi > 0 {
			fmt.Fprintf(w, "\nThe profiles differ from that CPU time by %s: they miss some samples, and take time themselves.",
				interval(missed))
		}
	}
	t := table.New(1, "layer", "client, µs", "server, µs", "unlabelled, µs", "all, µs", "share")
	for _, layer := range append(layers.Names(), "") {
		sum := stats.Mean(e.micro(within(layer, "")))
		if sum == 0 {
			continue
		}
		row := []string{cmp.Or(layer, "sum")}
		for _, side := range layers.Sides() {
			row = append(row, fmt.Sprintf("%.1f", stats.Mean(e.micro(within(layer, side)))))
		}
		t.Add(append(row, fmt.Sprintf("%.1f", sum), fmt.Sprintf("%.1f %%", 100*sum/stats.Mean(all)))...)
	}
	fmt.Fprintln(w)
	return t.Text(w)
}

// printDifference says layer by layer what a takes more than b, the largest difference first. Each interval is over the
// differences of processes. Profiles that were read have no interval.
func printDifference(w io.Writer, a, b *explanation) error {
	difference := func(layer, side string) []float64 {
		return less(a.micro(within(layer, side)), b.micro(within(layer, side)))
	}
	names := layers.Names()
	slices.SortStableFunc(names, func(x, y string) int {
		return cmp.Compare(math.Abs(stats.Mean(difference(y, ""))), math.Abs(stats.Mean(difference(x, ""))))
	})
	t := table.New(1, "layer", "client, µs", "server, µs", "unlabelled, µs", "all, µs", "± (95 %)", "functions that carry it")
	for _, layer := range append(names, "") {
		all := difference(layer, "")
		mean, lo, hi := stats.MeanCI(all, 0.95)
		if max(slices.Max(all), -slices.Min(all)) == 0 { // neither has it
			continue
		}
		row := []string{cmp.Or(layer, "sum")}
		for _, side := range append(layers.Sides(), "") {
			row = append(row, fmt.Sprintf("%+.1f", stats.Mean(difference(layer, side))))
		}
		half, said := "", ""
		if len(all) > 1 {
			half = fmt.Sprintf("%.1f", (hi-lo)/2)
		}
		if layer != "" && (len(all) == 1 || math.Abs(mean) > (hi-lo)/2) {
			said = carriers(a, b, layer)
		}
		t.Add(append(row, half, said)...)
	}
	fmt.Fprintf(w, "\n%s less %s\n", a.Name, b.Name)
	if err := t.Text(w); err != nil {
		return err
	}
	wallA, cpuA := a.plain()
	wallB, cpuB := b.plain()
	if cpu := less(cpuA, cpuB); len(cpu) > 0 {
		fmt.Fprintf(w, "\nThe difference is %s by the profiles and %s without the profiler, both of CPU time.\n",
			interval(difference("", "")), interval(cpu))
	}
	if wall := less(wallA, wallB); len(wall) > 0 {
		fmt.Fprintf(w, "Without the profiler it is %s of wall time.", interval(wall))
		if a.processes[0].Procs > 1 {
			fmt.Fprint(w, " That is what callers wait for, and not what layers sum to: cores work side by side.")
		}
		fmt.Fprintln(w)
	}
	return nil
}

// less subtracts process by process, or the means where a profile that was read stands beside processes.
func less(a, b []float64) (d []float64) {
	if min(len(a), len(b)) > 0 && len(a) != len(b) {
		return []float64{stats.Mean(a) - stats.Mean(b)}
	}
	for i := range min(len(a), len(b)) {
		d = append(d, a[i]-b[i])
	}
	return d
}

// carriers names the three functions of a layer whose times differ most, of those that differ by more than two standard
// errors over processes. One process, or a profile, has the error of counting: n samples are known to √n.
func carriers(a, b *explanation, layer string) string {
	by := map[string]amount{}
	for _, p := range slices.Concat(a.processes, b.processes) {
		for _, part := range p.Profile.Parts {
			name := path.Base(part.Function)
			if _, seen := by[name]; seen || part.Layer != layer {
				continue
			}
			of := func(p layers.Part) bool { return p.Layer == layer && path.Base(p.Function) == name }
			d := less(a.micro(of), b.micro(of))
			se := stats.StdDev(d) / math.Sqrt(float64(len(d)))
			for _, e := range []*explanation{a, b} {
				if n, _, _ := e.count(of); len(d) == 1 && n > 0 {
					se = math.Hypot(se, stats.Mean(e.micro(of))/math.Sqrt(float64(n)))
				}
			}
			by[name] = amount{stats.Mean(d), se}
		}
	}
	return largest(by, "%s %+.1f (SE %.1f)")
}

// amount is what a function takes, with its standard error.
type amount struct{ value, se float64 }

// largest names the three functions that take most, of those above two standard errors.
func largest(by map[string]amount, format string) string {
	size := func(name string) float64 { return math.Abs(by[name].value) }
	maps.DeleteFunc(by, func(name string, a amount) bool { return size(name) <= 2*a.se })
	names := slices.SortedFunc(maps.Keys(by), func(x, y string) int {
		return cmp.Or(cmp.Compare(size(y), size(x)), cmp.Compare(x, y))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf(format, name, by[name].value, by[name].se)
	}
	return strings.Join(names[:min(3, len(names))], ", ")
}

// fewestSamples is how many samples of a service a bound takes: a share of half of them is then known to 4 points.
const fewestSamples = 500

// fetch splits the profile that a server takes of itself. The whole of it must come within the time.
func fetch(ctx context.Context, address string, within time.Duration) (s layers.Split, err error) {
	late := fmt.Errorf("rpcbench: no whole profile came within %v: ask for fewer seconds or give -timeout", within)
	ctx, cancel := context.WithTimeoutCause(ctx, within, late)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return s, wrong("explain: %w", err)
	}
	name := request.URL.Redacted()
	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err == nil {
		defer answer.Body.Close()
		if s, err = layers.Read(name, answer.Body); answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("rpcbench: %s answers %s: is it /debug/pprof/profile?", name, answer.Status)
		}
	}
	return s, cmp.Or(context.Cause(ctx), err)
}

// binomial returns the 95 % interval of n of all samples in percent, by Wilson's formula.
func binomial(n, all float64) (lo, hi float64) {
	const zz = 1.96 * 1.96
	middle, half := n+zz/2, math.Sqrt(zz*(n*(all-n)/all+zz/4))
	return 100 * (middle - half) / (all + zz), 100 * (middle + half) / (all + zz)
}

// printService says what a service's profile bounds, and prints its layers.
func (e *explanation) printService(w io.Writer, by report.Summary) error {
	samples, _, _ := e.count(everything)
	fmt.Fprintf(w, "# %s: %d samples\n\n", e.Name, samples)
	if samples < fewestSamples {
		fmt.Fprintf(w, "%d samples are too few for a bound: profile until there are %d.\n", samples, fewestSamples)
	} else {
		e.printBound(w, float64(samples), by)
	}
	t := table.New(1, "layer", "encoding, %", "the rest, %", "all, %", "samples",
		"functions above two standard errors (SE)")
	sums := map[string]func(layers.Part) bool{"RPCs": layers.InRPCs, "sum": everything}
	for _, layer := range slices.Concat(layers.Names(), []string{"RPCs"}, layers.Outside(), []string{"sum"}) {
		of, functions := sums[layer], ""
		if of == nil {
			of, functions = within(layer, ""), e.functions(layer, float64(samples))
		}
		if n, _, _ := e.count(of); n > 0 {
			both := func(p layers.Part) bool { return of(p) && p.Side == layers.Encoding }
			all, encoded := e.micro(of)[0], e.micro(both)[0]
			t.Add(layer, fmt.Sprintf("%.1f", encoded), fmt.Sprintf("%.1f", all-encoded), fmt.Sprintf("%.1f", all), fmt.Sprint(n),
				functions)
		}
	}
	fmt.Fprintln(w)
	return t.Text(w)
}

// functions names those of a layer that took most, by the standard errors of counting.
func (e *explanation) functions(layer string, samples float64) string {
	by := map[string]amount{}
	for _, p := range e.processes[0].Profile.Parts {
		if name := path.Base(p.Function); p.Layer == layer {
			share := by[name].value/100 + float64(p.Samples)/samples
			by[name] = amount{100 * share, 100 * math.Sqrt(share*(1-share)/samples)}
		}
	}
	return largest(by, "%s %.2f (SE %.2f)")
}

// printBound says what a free stack would win, and what measured ratios would: of the share x, a stack whose calls take
// r times as long wins x·(1 − r).
func (e *explanation) printBound(w io.Writer, samples float64, by report.Summary) {
	share := func(of func(layers.Part) bool) float64 { return e.micro(of)[0] }
	x, nobodys, margin := share(layers.InRPCs), share(within(layers.Nobodys, "")), 100*versus.Margin
	encoded := share(func(p layers.Part) bool { return p.Side == layers.Encoding && layers.InRPCs(p) })
	lo, hi := binomial(x*samples/100, samples)
	fmt.Fprintf(w, "Serving and calling RPCs is %.1f %% of this service's CPU (%.1f to %.1f), "+
		"of which encoding %.1f %%. A free stack would win %.1f %%.\n", x, lo, hi, encoded, x)
	fmt.Fprintf(w, "The scheduler and the collector take %.1f %%, and no sample tells for whom. "+
		"With all of that, a free stack would win %.1f %%.\n", nobodys, x+nobodys)
	if own := share(within("", layers.Encoding)) - encoded; own > 0 {
		fmt.Fprintf(w, "The service's own code encodes for %.1f %%. That is not in the bound.\n", own)
	}
	if unless := ", unless most of the scheduler's and the collector's work is for RPCs"; hi < margin {
		fmt.Fprintf(w, "Don't switch for CPU%s.\n", map[bool]string{true: unless}[hi+nobodys >= margin])
	}
	for _, stack := range by.Stacks() {
		decided := slices.DeleteFunc(by.Of(stack), func(a report.Answer) bool {
			return a.GOMAXPROCS != 1 || a.Ratio == 0 || a.Verdict == versus.Undecided
		})
		if len(decided) == 0 {
			fmt.Fprintf(w, "No workload on one core is decided for %s in place of %s.\n", stack, by.Base)
			continue
		}
		slices.SortFunc(decided, func(a, b report.Answer) int { return cmp.Compare(b.Ratio, a.Ratio) })
		worst, best, verb, sign := decided[0], decided[len(decided)-1], "win", x
		if best.Ratio > 1 {
			verb, sign = "cost", -x
		}
		fmt.Fprintf(w, "%s in place of %s would %s %.1f %% (%s) to %.1f %% (%s). Decided workloads on one core: %d.",
			stack, by.Base, verb, sign*(1-worst.Ratio), worst.Workload, sign*(1-best.Ratio), best.Workload, len(decided))
		if x*(1-best.Ratio) < margin {
			fmt.Fprint(w, " Don't switch for CPU.")
		}
		fmt.Fprintln(w)
	}
}
