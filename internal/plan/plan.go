// Package plan has what the verbs that measure have in common: which stacks and builds are compared, which workloads
// flags make, the programs to link, and what is counted. A [Plan] joins them.
package plan

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// Plan is what is compared, and how. Nothing writes it once it is made.
type Plan struct {
	shell.Program
	Compared  Contestants         // the base first
	Also      map[string][]string // stacks that have rows of their own, and at which workloads
	Sweep     Sweep               // the workloads
	Time      time.Duration       // for each arm of each comparison, over all processes
	Processes int
	First     int // of them, which are all that what they decide has; 0 is none
	Layouts   int // links of each build; 0 is this program as it is
	Seed      uint64
	Margin    float64
	Servers   map[string]string // host:port by stack; nil: each process starts its own
	Warnings  []string          // of every summary
}

// Base is the name of what the others are compared with.
func (p Plan) Base() string { return p.Compared[0].String() }

// Rule is what a verdict is decided by.
func (p Plan) Rule() verdict.Plan {
	return verdict.Plan{Processes: p.Processes, First: p.First, Margin: p.Margin}
}

// Links are the programs that measure.
func (p Plan) Links() Links {
	return Links{Main: p.Main, Builds: p.Compared.Builds(), Layouts: p.Layouts, Seed: p.Seed,
		Meant: p.Compared.meant(p.Program)}
}

// Campaign has a comparison for each workload, at its rate, and each contestant.
func (p Plan) Campaign(programs map[string][]versus.Program, rates map[string]float64) *versus.Campaign {
	all := versus.Campaign{Plan: p.Rule(), Seed: p.Seed}
	for _, planned := range p.Sweep.Workloads {
		w := planned.Workload
		if rate, found := rates[w.Name]; found {
			w = w.At(rate)
		}
		contestants := p.Compared[1:]
		for _, name := range slices.Sorted(maps.Keys(p.Also)) {
			if slices.Contains(p.Also[name], w.Name) {
				contestants = append(slices.Clip(contestants), Of(name))
			}
		}
		for _, c := range contestants {
			one := &versus.Comparison{Spec: p.Spec(w, c), Base: programs[p.Compared[0].Build], ByCPU: p.AsksCPU(w),
				Ordinary: planned.Ordinary}
			if p.apart(c) {
				one.Other = append([]versus.Program{}, programs[c.Build]...) // not nil before they are linked
			}
			all.Comparisons = append(all.Comparisons, one)
		}
	}
	quick := func(w workload.Planned) bool { return !w.Slow() }
	if all.Most = all.Whole() * 5 / 4; !slices.ContainsFunc(p.Sweep.Workloads, quick) {
		all.Most = all.Whole() // of minutes, to which nothing is added
	}
	return &all
}

// Spec is what the first process of a comparison measures. Ratios of builds spread more, so these take four times as
// long: each block has two slices of each arm, and there are twice as many.
func (p Plan) Spec(w workload.Workload, c Contestant) versus.Spec {
	n := int(p.Time / time.Duration(max(1, p.Processes)) / versus.Turn)
	if p.apart(c) {
		n *= 2
	}
	return versus.Spec{Arms: []string{p.Base(), p.Base(), c.String()}, Workload: w, Procs: w.Procs, Slice: versus.Slice,
		Blocks: w.Blocks(max(versus.FewestBlocks, n)), Seed: p.Seed,
		Servers: p.Servers, Traits: p.Traits(p.Compared[0], c)}
}

// Traits are those of contestants whose stacks this program has.
func (p Plan) Traits(of ...Contestant) (all []rpcbench.Traits) {
	for _, s := range p.Stacks {
		if slices.ContainsFunc(of, func(c Contestant) bool { return c.Stack == s.Name }) {
			all = append(all, s.Traits)
		}
	}
	return all
}

// apart tells whether each arm has a process of its own.
func (p Plan) apart(c Contestant) bool { return p.Compared[0].Build != c.Build }

// Unheeded warns of what was asked for, or stands in the environment, and has no part in what is measured.
func (p Plan) Unheeded() (warnings []string) {
	for _, w := range p.Sweep.Workloads {
		if idle := w.Conns - w.AtOnce(); idle > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: at any time %d of %d connections are idle, since each caller has one "+
				"call under way", w.Title, idle, w.Conns))
		}
	}
	if e := os.Getenv("GOEXPERIMENT"); e != "" && e != environ.Experiment() && p.Links().none() {
		warnings = append(warnings, fmt.Sprintf("the variable GOEXPERIMENT=%s has no part in this program, which is built "+
			"already: %s@GOEXPERIMENT=%[1]s is a build with it", e, p.Compared[0].Stack))
	}
	return warnings
}

// AsksCPU says whether an answer leads by CPU time. All of a sweep do if one does, or its ratios were of two things.
func (p Plan) AsksCPU(w workload.Workload) bool {
	asks := w.AsksCPU()
	if p.Sweep.Over != "" {
		asks = slices.ContainsFunc(p.Sweep.Workloads, func(w workload.Planned) bool { return w.AsksCPU() })
	}
	return asks && p.Servers == nil
}

// Wired is what a comparison asked for around its calls.
func Wired(one *versus.Comparison) report.Wired {
	w := one.Spec.Workload
	return report.Wired{Callers: w.AtOnce(), Conns: w.Conns, Rate: w.Rate, Chosen: one.Ordinary, Apart: w.Apart,
		Link: string(w.Link), Wait: w.Wait, Data: w.Data()}
}

// Likely are rates that ordinary loads may have.
func (p Plan) Likely() map[string]float64 {
	rates := map[string]float64{}
	for _, w := range p.Sweep.Workloads {
		if w.Ordinary {
			rates[w.Name] = versus.Likely(w.Workload)
		}
	}
	return rates
}

// Spare is how long what is undecided may take after the processes of the first look, or the planned ones.
func (p Plan) Spare() time.Duration {
	all := p.Campaign(nil, p.Likely())
	return all.Most - all.Takes()
}
