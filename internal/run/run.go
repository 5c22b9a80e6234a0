// Package run is rpcbench run: it compares stacks, or builds of them, with a base.
package run

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/own"
	"github.com/rpcbench/rpcbench/internal/plan"
	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// Command is run.
func Command(p shell.Program, make own.Make, stdout, stderr io.Writer) shell.Command {
	return shell.Command{
		Name: "run", Tidies: true, Args: " [stack[@build]...]",
		Does: "Compare stacks, or builds of them, with a base, in two minutes or so",
		More: "\n\nA build of a stack is a git revision (HEAD~1), a Go release (go1.26.8), a version of a module\n" +
			"(google.golang.org/grpc@v1.80.0) or KEY=VALUE of the environment. Without one, the\n" +
			"working tree is measured.",
		Example: "rpcbench run",
		Groups: append([]string{
			"What is called: base workloads payload stream headers",
			"How: rate callers conns wait new-connections tls unix apart link server gomaxprocs",
			"How long: thorough time processes seed",
			"What is decided: equal max",
			"Where to: out v",
		}, make.Group()...),
		Setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			var m own.Messages
			m.Register(f)
			read := flags(p, f)
			return func(ctx context.Context, args []string) error {
				o, err := read(args)
				theirs, wrong := make.Asked(f, m)
				if theirs {
					o.Program = shell.Program{Stacks: own.Stacks(), Others: p.Names()}
				}
				if err := cmp.Or(wrong, err); err != nil {
					return err
				}
				p := o.plan()
				switch err := o.check(p); {
				case err != nil:
					return err
				case theirs:
					return make.Run(ctx, m, f, func() (string, error) { return shell.Folder("run", o.out) }, stdout, stderr)
				}
				return answer(ctx, p, o, stdout, stderr)
			}
		},
	}
}

// options are what was typed behind run. Nothing writes them once they are read.
type options struct {
	shell.Program
	args              []string // stack[@build]
	base, out         string
	server            string // a list
	workloads         plan.Choice
	time              time.Duration
	processes         int
	seed              uint64
	equal             float64 // percent
	max               gate    // 0 is none
	thorough, verbose bool
	typed             map[string]bool
}

// flags registers the flags. read returns what was typed, after they are parsed.
func flags(p shell.Program, f *flag.FlagSet) (read func(args []string) (options, error)) {
	o := options{Program: p}
	f.StringVar(&o.base, "base", "", "`stack` that the others are compared with: "+p.Base()+
		", or the first if one names a build")
	f.StringVar(&o.out, "out", "", "new `folder` for what is measured (default rpcbench- with day and minute)")
	f.DurationVar(&o.time, "time", 2*time.Second, "about how long each stack is measured at each workload, over\n"+
		"all processes; 8s with -thorough, -max or builds, which take four times as long")
	f.BoolVar(&o.verbose, "v", false, "also print how it was measured, which the report has anyway")
	f.IntVar(&o.processes, "processes", 8, fmt.Sprintf("`number` for each comparison, at least %d. Unless it is given,\n"+
		"a comparison that %[1]d decide has no more, but for -thorough, -max and builds", verdict.Fewest))
	f.BoolVar(&o.thorough, "thorough", false,
		"take half an hour: all workloads, for longer, and eight links of each build")
	workloads := plan.Flags(f, "default the first of the list, or\nall with -thorough")
	f.Var((*plan.List)(&o.server), "server",
		"`stack=host:port,...` of servers that run already, as rpcbench serve prints them")
	f.Float64Var(&o.equal, "equal", 100*verdict.Margin, "`percent` by which stacks may differ and be called the same")
	f.Float64Var((*float64)(&o.max), "max", 0, "exit with status 3 if a stack takes more than so many `times` as long, "+
		"such as\n1.05, and with 4 if this run was too noisy to detect twice that excess")
	f.Uint64Var(&o.seed, "seed", rand.Uint64N(1e6), "`number` that decides the order of everything, and the layouts")
	f.Lookup("seed").DefValue = "random" // and not another number in each -h
	return func(args []string) (_ options, err error) {
		o.args, o.typed = args, map[string]bool{}
		f.Visit(func(f *flag.Flag) { o.typed[f.Name] = true })
		if o.out != "" {
			o.out = filepath.Clean(o.out)
		}
		o.workloads, err = workloads()
		return o, err
	}
}

// plan makes a plan of the options. What they can't mean, check refuses.
func (o options) plan() plan.Plan {
	p := plan.Plan{Program: o.Program, Compared: plan.Named(o.Program, o.base, o.args), Sweep: o.sweep(),
		Processes: o.processes, Seed: o.seed, Margin: o.equal / 100, Time: o.time, Also: map[string][]string{}}
	stacks, _ := p.Find(p.Compared.Stacks()...)
	for _, s := range stacks {
		if unseen := workload.Unseen(s); unseen != "" && !slices.Contains(p.Warnings, unseen) {
			p.Warnings = append(p.Warnings, unseen)
		}
	}
	if o.typed["server"] {
		var left string
		p.Servers = o.servers()
		p.Warnings = append(p.Warnings, elsewhere...)
		if p.Sweep.Workloads, left = reachable(p.Sweep.Workloads, o.workloads.Made.Workloads != nil); left != "" {
			p.Warnings = append(p.Warnings, "skipped: "+left)
		}
	}
	json, converts := strings.CutSuffix(p.Base(), ".converted") // and then so do the others of its messages
	for name, at := range workload.Also() {
		if converts {
			name += ".converted"
		}
		_, unknown := p.Find(name)
		asked := len(o.args) == 0 && json == "httpjson" && p.Servers == nil // all stacks of ours
		if unknown == nil && asked && (o.thorough || p.Stacks[0].Serves != "") {
			p.Also[name] = at
		}
	}
	if o.thorough || o.max > 0 || p.Compared.OfBuilds() {
		if p.Layouts = min(8, p.Processes); !o.typed["time"] {
			p.Time = 8 * time.Second
		}
	}
	if _, is := routed(p); is && !o.typed["time"] {
		p.Time = overRouter
	}
	if p.Layouts == 0 && !o.typed["processes"] { // each link has a process
		p.First = verdict.Fewest
	}
	p.Warnings = append(p.Warnings, p.Unheeded()...)
	if procs := os.Getenv("GOMAXPROCS"); procs != "" {
		p.Warnings = append(p.Warnings, "the variable GOMAXPROCS="+procs+" has no effect, because each workload has "+
			"its own: -gomaxprocs sets it")
	}
	return p
}

// sweep are the workloads that flags choose, or else the first of the list.
func (o options) sweep() plan.Sweep {
	first := workload.Few
	switch {
	case o.thorough:
		first = len(o.Workloads())
	case o.Stacks[0].Serves != "":
		first = workload.FewOwn
	}
	return o.workloads.Of(o.Program, first)
}

// check says what is wrong with the options, whose plan is p.
func (o options) check(p plan.Plan) error {
	if err := o.workloads.Check(o.Program); err != nil {
		return err
	}
	stacks, err := p.Compared.Check("run", o.Program)
	if err == nil {
		err = o.workloads.Fits(stacks)
	}
	for _, check := range []func(plan.Plan) error{o.checkServers, o.checkGate, o.checkTime, o.checkStreams,
		o.checkFiles, o.checkSlow, o.checkOut} {
		if err == nil {
			err = check(p)
		}
	}
	return err
}

func (o options) checkServers(p plan.Plan) error {
	if !o.typed["server"] {
		return nil
	}
	var names []string
	for item := range strings.SplitSeq(o.server, ",") {
		name, addr, _ := strings.Cut(item, "=")
		_, _, err := net.SplitHostPort(addr)
		_, unknown := o.Find(name)
		switch {
		case err != nil:
			return shell.Wrong("run: -server: %q is no stack=host:port: give what rpcbench serve prints", item)
		case unknown != nil:
			return unknown
		}
		names = append(names, name)
	}
	if err := shell.Once("run: -server", names); err != nil {
		return err
	}
	for _, c := range p.Compared {
		switch {
		case c.Build != "":
			return shell.Wrong("run: -server: %s is a build, which is linked here and has no server in another program: "+
				"leave one of the two out", c)
		case !slices.Contains(names, c.Stack):
			return shell.Wrong("run: -server: the server of %s, which is compared, is missing: add %[1]s=host:port", c)
		}
	}
	_, left := reachable(o.sweep().Workloads, o.workloads.Made.Workloads != nil)
	if left != "" && (o.workloads.Chosen() || len(p.Sweep.Workloads) == 0) {
		return shell.Wrong("run: %s", left)
	}
	return nil
}

func (o options) checkGate(plan.Plan) error {
	switch {
	case o.typed["equal"] && !(o.equal > 0 && o.equal <= 100):
		return shell.Wrong("run: -equal %v: give a percentage, such as 2", o.equal)
	case o.typed["max"] && !(o.max > 1 && o.max <= 100):
		return shell.Wrong("run: -max %v: give more than 1 and 100 at most, such as 1.05", float64(o.max))
	}
	return nil
}

func (o options) checkTime(p plan.Plan) error {
	least := versus.FewestBlocks * versus.Turn * time.Duration(p.Processes)
	switch {
	case p.Processes < verdict.Fewest:
		return shell.Wrong("run: %d processes are too few for a verdict: -processes %d or more", p.Processes, verdict.Fewest)
	case p.Time < least:
		return shell.Wrong("run: %v over %d processes leave less than %d turns of %v in each: give -time %v or more",
			p.Time, p.Processes, versus.FewestBlocks, versus.Turn, least)
	}
	return nil
}

// checkOut checks the folder of -out.
func (o options) checkOut(plan.Plan) error {
	if o.out == "" {
		return nil
	}
	return shell.IsNew("run: -out", o.out)
}
