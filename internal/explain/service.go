package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"path"
	"slices"
	"time"

	"github.com/rpcbench/rpcbench/internal/explain/layers"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// fewestSamples is how many samples of a service a bound takes: a share of half of them is then known to 4 points.
const fewestSamples = 500

// fetch splits the profile that a server takes of itself. The whole of it must come within the time.
func fetch(ctx context.Context, address string, within time.Duration) (s layers.Split, err error) {
	late := fmt.Errorf("no whole profile came within %v: ask for fewer seconds, or give a longer "+
		"-timeout", within)
	ctx, cancel := context.WithTimeoutCause(ctx, within, late)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return s, shell.Wrong("explain: %w", err)
	}
	name := request.URL.Redacted()
	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err == nil {
		defer answer.Body.Close()
		if s, err = layers.Read(name, answer.Body); answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s answers %s: is it /debug/pprof/profile?", name, answer.Status)
		}
	}
	return s, cmp.Or(context.Cause(ctx), err)
}

// piped splits the profile that another program writes, unless the context ends before.
func piped(ctx context.Context, from io.Reader) (layers.Split, error) {
	type result struct {
		layers.Split
		error
	}
	whole := make(chan result, 1)
	go func() {
		s, err := layers.Read("standard input", from)
		whole <- result{s, err}
	}()
	select {
	case <-ctx.Done():
		return layers.Split{}, ctx.Err()
	case r := <-whole:
		return r.Split, r.error
	}
}

// binomial returns the 95 % interval of n of all samples in percent, by Wilson's formula.
func binomial(n, all float64) (lo, hi float64) {
	const zz = 1.96 * 1.96
	middle, half := n+zz/2, math.Sqrt(zz*(n*(all-n)/all+zz/4))
	return 100 * (middle - half) / (all + zz), 100 * (middle + half) / (all + zz)
}

// printService says what a service's profile bounds, and prints its layers.
func (e *Explanation) printService(w io.Writer, by report.Summary, typed string) error {
	samples, _, _ := e.count(everything)
	next := "rpcbench run compares stacks; with -ratios and its folder, explain says what each saves here."
	if by.Measured() {
		next = fmt.Sprintf("go tool pprof -top %s lists the functions.", typed)
	}
	shell.Say(w, "%s: %d samples", e.Name, samples)
	fmt.Fprintln(w)
	if samples < fewestSamples {
		shell.Say(w, "%d samples are too few for a bound, which takes %d.", samples, fewestSamples)
		next = "profile for longer: a second of CPU time gives 100 samples."
	} else {
		e.printBound(w, float64(samples), by)
	}
	t := table.New(1, "layer", "encoding, %", "the rest, %", "all, %", "samples",
		"functions above two standard errors (SE)")
	t.Columns[len(t.Columns)-1].Words = true
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
	return errors.Join(t.Text(w, shell.Width(w)), shell.Say(w, "\nNext: %s", next))
}

// functions names those of a layer that took most, by the standard errors of counting.
func (e *Explanation) functions(layer string, samples float64) string {
	by := map[string]amount{}
	for _, p := range e.processes[0].Profile.Parts {
		if name := path.Base(p.Function); p.Layer == layer {
			share := by[name].value/100 + float64(p.Samples)/samples
			by[name] = amount{100 * share, 100 * math.Sqrt(share*(1-share)/samples)}
		}
	}
	return largest(by, "%s %.2f (SE %.2f)")
}

// printBound says what a stack without cost would save, and what measured ratios would: of the share x, a stack whose
// calls take r times as much CPU saves x·(1 − r). Where handlers may be in x, it says so.
func (e *Explanation) printBound(w io.Writer, samples float64, by report.Summary) {
	share := func(of func(layers.Part) bool) float64 { return e.micro(of)[0] }
	x, nobodys, margin := share(layers.InRPCs), share(within(layers.Nobodys, "")), 100*verdict.Margin
	encoded := share(func(p layers.Part) bool { return p.Side == layers.Encoding && layers.InRPCs(p) })
	lo, hi := binomial(x*samples/100, samples)
	atMost, why, would := "", "", func(verb string) string { return "would " + verb }
	switch unseen, other := e.processes[0].Profile.Unseen, share(within(layers.Other, "")); {
	case unseen != "":
		why = ", because explain does not know where " + unseen + " calls them"
	case other >= margin:
		why = fmt.Sprintf(", because RPC libraries call %.1f %% (the layer other) in places that explain does not "+
			"know", other)
	}
	if why != "" {
		atMost, would = " at most, handlers included", func(verb string) string { return verb + "s" }
	}
	shell.Say(w, "Serving and calling RPCs takes %.1f %% of this service's CPU (%.1f to %.1f)%s, of which encoding is "+
		"%.1f %%. A stack without cost %s %.1f %%%s%s.", x, lo, hi, atMost, encoded, would("save"), x, atMost, why)
	shell.Say(w, "The scheduler and the collector take %.1f %%, which the profile cannot attribute. "+
		"If all of that is for RPCs, a stack without cost %s %.1f %%%s.", nobodys, would("save"), x+nobodys, atMost)
	if own := share(within("", layers.Encoding)) - encoded; own > 0 {
		shell.Say(w, "The service's own code takes %.1f %% for encoding, which is not in the bound.", own)
	}
	if unless := ", unless most of the scheduler's and the collector's work is for RPCs"; hi < margin {
		shell.Say(w, "Don't switch for CPU%s.", map[bool]string{true: unless}[hi+nobodys >= margin])
	}
	for _, stack := range by.Stacks() {
		decided := slices.DeleteFunc(report.ByRatio(by.Timed(), stack), func(l report.Led) bool {
			return l.GOMAXPROCS != 1 || l.Verdict == verdict.Undecided
		})
		if len(decided) == 0 {
			shell.Say(w, "%s in place of %s: no workload on one core is decided, so there is no estimate.", stack, by.Base)
			continue
		}
		worst, best, verb, more, dont, sign := decided[len(decided)-1], decided[0], "save", "", "", x
		if best.Ratio > 1 {
			verb, more, sign = "take", " more", -x
		}
		if x*(1-best.Ratio) < margin {
			dont = " Don't switch for CPU."
		}
		shell.Say(w, "%s in place of %s %s %.1f %% (%s) to %.1f %% (%s)%s%s. Decided workloads on one core: %d.%s", stack,
			by.Base, would(verb), sign*(1-worst.Ratio), worst.Workload, sign*(1-best.Ratio), best.Workload, more, atMost,
			len(decided), dont)
	}
}
