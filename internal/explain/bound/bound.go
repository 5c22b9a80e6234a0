// Package bound is the command of that name. It bounds what another stack could save a service, by a profile of its
// CPU: owners.txt says whose work a sample is, and an RPC library's is all that can be saved.
package bound

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/rpcbench/rpcbench/internal/explain/layers"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// Command is bound.
func Command(p shell.Program, stdout io.Writer) shell.Command {
	return shell.Command{
		Name: "bound", Tidies: true, Args: " profile|URL|-",
		Does:    "Bound what another stack could save a service, by a profile of the service's CPU",
		More:    "\n\nIt reads a file, what a server has at /debug/pprof/profile, or standard input.",
		Example: "rpcbench bound -ratios mine -by grpc.method cpu.pprof",
		Setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			ratios := f.String("ratios", "", "`folder` of rpcbench run, by whose ratios its stacks would save CPU of a service")
			by := f.String("by", "", "`label` of pprof whose values get a row each, such as grpc.method")
			timeout := f.Duration("timeout", time.Minute, "how long to wait for the profile of a URL")
			return func(ctx context.Context, args []string) error {
				waits := false
				f.Visit(func(f *flag.Flag) { waits = waits || f.Name == "timeout" })
				switch {
				case len(args) == 0:
					return shell.Wrong("bound: nothing is named: give the CPU profile of a service, or its URL")
				case len(args) > 1:
					return shell.Wrong("bound: %s and %s are two: give one profile, or merge them: "+
						"go tool pprof -proto FIRST SECOND > BOTH", args[0], args[1])
				case waits && !isURL(args[0]):
					return shell.Wrong("bound: -timeout is for the profile of a URL, and %s is none: leave -timeout out", args[0])
				}
				return asked{args[0], *ratios, *by, *timeout}.run(ctx, p.Names(), stdout)
			}
		},
	}
}

// asked is what was typed: a profile and flags.
type asked struct {
	profile, ratios, by string
	timeout             time.Duration
}

// run bounds what can be saved by the profile, in a program with such stacks.
func (a asked) run(ctx context.Context, stacks []string, stdout io.Writer) (err error) {
	var ratios report.Summary
	if a.ratios != "" {
		ratios, err = report.Read(a.ratios)
	}
	switch {
	case err != nil:
		return err
	case ratios.Remote:
		return shell.Wrong("bound: -ratios %s: its servers were in other programs, so no ratio is of all CPU: "+
			"name another folder", a.ratios)
	}
	name, p, err := read(ctx, stacks, a.profile, a.timeout)
	switch {
	case ctx.Err() != nil:
		return shell.ErrInterrupted
	case err != nil:
		return err
	}
	if row, calls := layers.Calls(p); calls > 0 {
		return shell.Wrong("bound: %s is a profile of rpcbench, of %d calls of %s: rpcbench explain %[1]s splits a call",
			a.profile, calls, row)
	}
	s, err := By(name, p, a.by)
	if err == nil {
		err = s.lacks()
	}
	if err != nil {
		return err
	}
	return s.print(stdout, ratios, a.profile)
}

// read reads the profile of a file, of a server, or of standard input. name is what messages call it.
func read(ctx context.Context, stacks []string, typed string, timeout time.Duration) (name string, p *profile.Profile,
	err error) {
	info, missing := os.Stat(typed)
	switch {
	case isURL(typed):
		return fetch(ctx, typed, timeout)
	case typed == "-":
		p, err = piped(ctx, os.Stdin)
		return "standard input", p, err
	case missing != nil && slices.Contains(stacks, typed):
		return "", nil, shell.Wrong("bound: %s is a stack, and no service: rpcbench explain %[1]s splits a call of it", typed)
	case missing != nil || !info.Mode().IsRegular():
		return "", nil, shell.Wrong("bound: %s is no file: name a profile, or give its URL", typed)
	}
	p, err = layers.ReadFile(typed)
	return typed, p, err
}

func isURL(arg string) bool {
	return strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://")
}

// fetch reads the profile that a server takes of itself. The whole of it must come within the time.
func fetch(ctx context.Context, address string, within time.Duration) (name string, p *profile.Profile, err error) {
	late := fmt.Errorf("no whole profile came within %v: ask for fewer seconds, or give a longer "+
		"-timeout", within)
	ctx, cancel := context.WithTimeoutCause(ctx, within, late)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", nil, shell.Wrong("bound: %w", err)
	}
	name = request.URL.Redacted()
	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err == nil {
		defer answer.Body.Close()
		if p, err = layers.Read(name, answer.Body); answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s answers %s: is it /debug/pprof/profile?", name, answer.Status)
		}
	}
	return name, p, cmp.Or(context.Cause(ctx), err)
}

// piped reads the profile that another program writes, unless the context ends before.
func piped(ctx context.Context, from io.Reader) (*profile.Profile, error) {
	var p *profile.Profile
	whole := make(chan error, 1)
	go func() {
		var err error
		p, err = layers.Read("standard input", from)
		whole <- err
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case err := <-whole:
		return p, err
	}
}

// fewestSamples is how many samples of a service a bound takes: a share of half of them is then known to 4 points.
const fewestSamples = 500

// binomial returns the 95% interval of n of all samples in percent, by Wilson's formula.
func binomial(n, all float64) (lo, hi float64) {
	const zz = 1.96 * 1.96
	middle, half := n+zz/2, math.Sqrt(zz*(n*(all-n)/all+zz/4))
	return 100 * (middle - half) / (all + zz), 100 * (middle + half) / (all + zz)
}

// samples are those of all parts.
func (s Service) samples() int64 {
	n, _ := s.Parts.Sum(layers.All)
	return n
}

// share is the percentage of the samples that satisfy the condition.
func (s Service) share(of func(layers.Part) bool) float64 {
	n, _ := s.Parts.Sum(of)
	return 100 * float64(n) / float64(s.samples())
}

// print says what the profile bounds, and prints its layers.
func (s Service) print(w io.Writer, by report.Summary, typed string) error {
	samples := s.samples()
	rpcs, _ := s.Parts.Sum(InRPCs)
	next := "rpcbench run compares stacks; with -ratios and its folder, bound says what each saves here."
	if by.Measured() {
		next = fmt.Sprintf("go tool pprof -top %s lists the functions.", typed)
	}
	shell.Say(w, "%s: %d samples", s.Name, samples)
	fmt.Fprintln(w)
	switch {
	case rpcs == 0:
		shell.Say(w, "No sample is of an RPC library that rpcbench knows, so there is no bound. A profile of go test, or of "+
			"a service without load, has none.")
		next = "profile the service while it serves calls: /debug/pprof/profile?seconds=30."
	case samples < fewestSamples:
		shell.Say(w, "%d samples are too few for a bound, which takes %d.", samples, fewestSamples)
		next = "profile for longer: a second of CPU time gives 100 samples."
	default:
		s.printBound(w, by)
	}
	t := table.New(1, "layer", "encoding, %", "the rest, %", "all, %", "samples",
		"functions above two standard errors (SE)")
	t.Columns[len(t.Columns)-1].Words = true
	sums := map[string]func(layers.Part) bool{"RPCs": InRPCs, "sum": layers.All}
	for _, layer := range slices.Concat(layers.Names(), []string{"RPCs"}, Outside(), []string{"sum"}) {
		of, functions := sums[layer], ""
		if of == nil {
			of, functions = layers.Within(layer, ""), s.functions(layer)
		}
		if n, _ := s.Parts.Sum(of); n > 0 {
			all, encoded := s.share(of), s.share(func(p layers.Part) bool { return of(p) && p.Side == Encoding })
			t.Add(layer, fmt.Sprintf("%.1f", encoded), fmt.Sprintf("%.1f", all-encoded), fmt.Sprintf("%.1f", all), fmt.Sprint(n),
				functions)
		}
	}
	fmt.Fprintln(w)
	return errors.Join(t.Text(w, shell.Width(w)), s.printBy(w), shell.Say(w, "\nNext: %s", next))
}

// functions names those of a layer that took most, by the standard errors of counting.
func (s Service) functions(layer string) string {
	by, samples := map[string]layers.Amount{}, float64(s.samples())
	for _, p := range s.Parts {
		if name := path.Base(p.Function); p.Layer == layer {
			share := by[name].Value/100 + float64(p.Samples)/samples
			by[name] = layers.Amount{Value: 100 * share, SE: 100 * math.Sqrt(share*(1-share)/samples)}
		}
	}
	return layers.Largest(by, "%s %.2f (SE %.2f)")
}

// printBound says what a stack without cost would save, and what measured ratios would: of the share x, a stack whose
// calls take r times as much CPU saves x·(1 − r). Where handlers may be in x, it says so.
func (s Service) printBound(w io.Writer, by report.Summary) {
	x, nobodys, other := s.share(InRPCs), s.share(layers.Within(Nobodys, "")), s.share(layers.Within(layers.Other, ""))
	encoded := s.share(func(p layers.Part) bool { return p.Side == Encoding && InRPCs(p) })
	samples, margin := float64(s.samples()), 100*verdict.Margin
	lo, hi := binomial(x*samples/100, samples)
	would, ends, atMost, why := "", "s", " at most, handlers included", ""
	switch {
	case s.Unseen != "":
		why = fmt.Sprintf(", because rpcbench does not know where %s calls them", s.Unseen)
	case other >= margin:
		why = fmt.Sprintf(", because RPC libraries call %.1f%% (the layer other) in places that rpcbench does not "+
			"know", other)
	default:
		would, ends, atMost = "would ", "", ""
	}
	shell.Say(w, "Serving and calling RPCs takes %.1f%% of this service's CPU (%.1f to %.1f)%s, of which encoding is "+
		"%.1f%%. A stack without cost %ssave%s %.1f%%%s%s.", x, lo, hi, atMost, encoded, would, ends, x, atMost, why)
	shell.Say(w, "The scheduler and the collector take %.1f%%, which the profile cannot attribute. "+
		"If all of that is for RPCs, a stack without cost %ssave%s %.1f%%%s.", nobodys, would, ends, x+nobodys, atMost)
	if own := s.share(layers.Within("", Encoding)) - encoded; own > 0 {
		shell.Say(w, "The service's own code takes %.1f%% for encoding, which is not in the bound.", own)
	}
	switch {
	case hi+nobodys < margin:
		shell.Say(w, "Don't switch for CPU.")
	case hi < margin:
		shell.Say(w, "Don't switch for CPU, unless most of the scheduler's and the collector's work is for RPCs.")
	}
	for _, stack := range by.Stacks() {
		decided := slices.DeleteFunc(report.ByRatio(by.Timed(), stack), func(l report.Led) bool {
			return l.Answer.GOMAXPROCS != 1 || l.Figure.Verdict == verdict.Undecided
		})
		if len(decided) == 0 {
			shell.Say(w, "%s in place of %s: no workload on one core is decided, so there is no estimate.", stack, by.Base)
			continue
		}
		worst, best, verb, more, dont := decided[len(decided)-1], decided[0], "save", "", ""
		least, most := x*(1-worst.Figure.Ratio), x*(1-best.Figure.Ratio)
		if best.Figure.Ratio > 1 {
			verb, more, least, most = "take", " more", -least, -most
		}
		if x*(1-best.Figure.Ratio) < margin {
			dont = " Don't switch for CPU."
		}
		shell.Say(w, "%s in place of %s %s%s%s %.1f%% (%s) to %.1f%% (%s)%s%s. Decided workloads on one core: %d.%s",
			stack, by.Base, would, verb, ends, least, worst.Answer.Workload, most, best.Answer.Workload, more, atMost,
			len(decided), dont)
	}
}
