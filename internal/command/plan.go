package command

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// plan is what a run measures, made of options. Nothing writes it afterwards.
type plan struct {
	program
	base        string
	contestants []string            // each stack[@build]
	also        map[string][]string // stacks that have rows of their own, and at which workloads
	workloads   []workload.Planned
	sweep       made          // what the workloads are the values of
	time        time.Duration // for each arm of each comparison, over all processes
	processes   int
	layouts     int // links of each build; 0 is this program as it is
	seed        uint64
	margin      float64
	gate        gate
	servers     map[string]string // host:port by stack; nil: each process starts its own
	warnings    []string          // of every summary
}

// plan makes one of the options. What they can't mean, check refuses.
func (o options) plan() plan {
	p := plan{program: o.program, sweep: o.made, processes: o.processes, seed: o.seed, margin: o.equal / 100, gate: o.gate,
		time: o.time, workloads: o.chosen()}
	p.base, p.contestants = o.compared()
	stacks, _ := p.Find(p.named()...)
	for _, s := range stacks {
		if unseen := workload.Unseen(s); unseen != "" && !slices.Contains(p.warnings, unseen) {
			p.warnings = append(p.warnings, unseen)
		}
	}
	if o.typed["server"] {
		var left string
		p.servers = o.servers()
		p.warnings = append(p.warnings, elsewhere...)
		if p.workloads, left = reachable(p.workloads, o.made.workloads != nil); left != "" {
			p.warnings = append(p.warnings, "skipped: "+left)
		}
	}
	p.also = map[string][]string{}
	json, converts := strings.CutSuffix(p.base, ".converted") // and then so do the others of its messages
	for name, at := range workload.Also() {
		if converts {
			name += ".converted"
		}
		_, unknown := p.Find(name)
		asked := len(o.args) == 0 && json == "httpjson" && p.servers == nil // all stacks of ours
		if unknown == nil && asked && (o.thorough || p.Stacks[0].Method != "") {
			p.also[name] = at
		}
	}
	if !p.gate.countsOnly() && (o.thorough || p.gate.max > 0 || p.ofBuilds()) {
		if p.layouts = min(8, p.processes); !o.typed["time"] {
			p.time = 8 * time.Second
		}
	}
	if procs := os.Getenv("GOMAXPROCS"); procs != "" && !p.gate.countsOnly() {
		p.warnings = append(p.warnings, "the variable GOMAXPROCS="+procs+" has no effect, because each workload has "+
			"its own: -gomaxprocs sets it")
	}
	return p
}

// chosen are the workloads that flags make or name, or else the first of the list.
func (o options) chosen() (all []workload.Planned) {
	switch few := workload.Few; {
	case o.made.workloads != nil:
		return o.made.workloads
	case o.typed["workloads"]:
		for name := range strings.SplitSeq(o.workloads, ",") {
			if w, err := workload.In(o.program.Workloads(), name); err == nil {
				all = append(all, w)
			}
		}
		return all
	case o.thorough || o.gate.countsOnly():
		return o.program.Workloads()
	default:
		if o.Stacks[0].Method != "" {
			few = workload.FewOwn
		}
		all = o.program.Workloads()
		return all[:min(few, len(all))]
	}
}

// compared are the base and the contestants, which were named or are those of the program.
func (o options) compared() (base string, contestants []string) {
	base, args := o.base, o.args
	switch {
	case base != "":
	case slices.ContainsFunc(args, func(name string) bool { return strings.Contains(name, "@") }):
		base, args = args[0], args[1:]
	default:
		base = o.program.Base()
	}
	if len(args) == 0 && build(base) == "" {
		args = o.program.Contestants()
	}
	return base, slices.DeleteFunc(slices.Clone(args), func(name string) bool { return name == base })
}

// build is the part of a contestant's name after the stack's.
func build(contestant string) string {
	_, build, _ := strings.Cut(contestant, "@")
	return build
}

// named are the stacks that take part, the base first, without their builds.
func (p plan) named() (names []string) {
	for _, name := range append([]string{p.base}, p.contestants...) {
		stack, _, _ := strings.Cut(name, "@")
		names = append(names, stack)
	}
	return names
}

// builds are those of the base and of the contestants, each once. "" is the source as it lies.
func (p plan) builds() (all []string) {
	for _, name := range append([]string{p.base}, p.contestants...) {
		if !slices.Contains(all, build(name)) {
			all = append(all, build(name))
		}
	}
	return all
}

// ofBuilds tells whether a build is named.
func (p plan) ofBuilds() bool {
	return slices.ContainsFunc(p.builds(), func(build string) bool { return build != "" })
}

// seeds are those of the layouts: each another one, or 0 for the linker's own order.
func (p plan) seeds() []uint64 {
	seeds, random := make([]uint64, max(1, p.layouts)), rand.New(rand.NewPCG(p.seed, 1))
	for i := range seeds {
		if p.layouts > 0 {
			seeds[i] = 1 + random.Uint64N(1e9)
		}
	}
	return seeds
}

// campaign has a comparison for each workload, at its rate, and each contestant.
func (p plan) campaign(programs map[string][]versus.Program, rates map[string]float64) *versus.Campaign {
	all := versus.Campaign{Plan: p.rule(), Seed: p.seed}
	for _, planned := range p.workloads {
		w := planned.At(rates)
		names := p.contestants
		for _, name := range slices.Sorted(maps.Keys(p.also)) {
			if slices.Contains(p.also[name], w.Name) {
				names = append(slices.Clip(names), name)
			}
		}
		for _, name := range names {
			one := &versus.Comparison{Spec: p.spec(w, name), Base: programs[build(p.base)], ByCPU: p.asksCPU(w),
				Ordinary: planned.Ordinary}
			if p.apart(name) {
				one.Other = append([]versus.Program{}, programs[build(name)]...) // not nil before they are linked
			}
			all.Comparisons = append(all.Comparisons, one)
		}
	}
	quick := func(w workload.Planned) bool { return !w.Slow() }
	if all.Most = all.Takes() * 5 / 4; !slices.ContainsFunc(p.workloads, quick) {
		all.Most = all.Takes() // of minutes, to which nothing is added
	}
	return &all
}

// spec is what the first process of a comparison measures. Ratios of builds spread more, so these take four times as
// long: each block has two slices of each arm, and there are twice as many.
func (p plan) spec(w workload.Workload, contestant string) versus.Spec {
	n := int(p.time / time.Duration(p.processes) / versus.Turn)
	if p.apart(contestant) {
		n *= 2
	}
	return versus.Spec{Arms: []string{p.base, p.base, contestant}, Workload: w, Procs: w.Procs, Slice: versus.Slice,
		Blocks: w.Blocks(max(versus.FewestBlocks, n)), Seed: p.seed,
		Servers: p.servers}
}

// apart tells whether each arm has a process of its own.
func (p plan) apart(contestant string) bool {
	return build(p.base) != build(contestant)
}

func (p plan) rule() verdict.Plan {
	return verdict.Plan{Processes: p.processes, Margin: p.margin}
}

// What a run does beside measuring takes about so long.
const (
	aLink  = 2 * time.Second
	aCount = 150 * time.Millisecond // in a process
)

// likely are rates that ordinary loads may have.
func (p plan) likely() map[string]float64 {
	rates := map[string]float64{}
	for _, w := range p.workloads {
		rates[w.Name] = versus.Likely(w.Workload)
	}
	return rates
}

// spare is how long what is undecided may take after the planned processes.
func (p plan) spare() time.Duration {
	all := p.campaign(nil, p.likely())
	return all.Most - all.Takes()
}

// parts are how long those of a run take, about.
func (p plan) parts() []time.Duration {
	linking, looking, counting, describing := 0*time.Second, 0*time.Second, 0*time.Second, 0*time.Second
	likely := p.likely()
	for _, w := range p.workloads {
		if w.Ordinary {
			looking += versus.LookTakes(w.At(likely))
		}
	}
	if p.layouts > 0 || p.ofBuilds() {
		linking = aLink * time.Duration(len(p.builds())*max(1, p.layouts))
	}
	all := p.campaign(nil, likely)
	for _, one := range all.Comparisons {
		counting += counted(one)
	}
	if p.Stacks[0].Method != "" {
		describing = 2 * p.explained()
		if p.servers == nil { // calls and handlers alone, whose slices are followed by collections, about as long
			describing += time.Duration(blocks*2*(1+len(p.contestants)+len(p.also))) * 2 * slice
		}
	}
	if p.gate.countsOnly() {
		return []time.Duration{linking, counting}
	}
	return []time.Duration{linking, looking, all.Takes(), counting, describing}
}

// counted is how long it takes to count what a comparison's stacks do.
func counted(one *versus.Comparison) time.Duration {
	return aCount*time.Duration(len(one.Spec.Arms)-1) + one.Spec.Workload.Extra()
}
