package command

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

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/compare/builds"
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/own"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

func runCommand(p program, stdout, stderr io.Writer) shell.Command {
	var messages []string
	if p.make != nil {
		messages = []string{"Messages of yours: " + own.Flags}
	}
	return shell.Command{
		Name: "run", Tidies: true, Args: " [stack[@build]...]",
		Does: "Compare stacks, or builds of them, with a base, in two minutes or so",
		More: "\n\nA build of a stack is a git revision (HEAD~1), a Go release (go1.26.8), a version of a module\n" +
			"(google.golang.org/grpc@v1.80.0) or KEY=VALUE of the environment. Without one a stack is measured as\n" +
			"its source lies.",
		Example: "rpcbench run",
		Groups: append([]string{
			"What is called: base workloads payload stream headers",
			"How: rate callers conns wait new-connections tls unix apart link server gomaxprocs idle",
			"How long: thorough time processes seed",
			"What is decided: equal max max-counts",
			"Where to: out v",
		}, messages...),
		Setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			var m own.Messages
			m.Register(f)
			read, number := runFlags(p, f), idleFlag(f)
			return func(ctx context.Context, args []string) error {
				o, err := read(args)
				if o.typed["idle"] {
					return o.atRest(ctx, *number, stdout, stderr)
				}
				ofOwn := slices.ContainsFunc(strings.Fields(own.Flags), func(name string) bool { return o.typed[name] })
				if ofOwn {
					if err := p.make.Check(m); err != nil {
						return shell.Wrong("run: %w", err)
					}
					o.program = program{Program: shell.Program{Stacks: own.Stacks()}}
				}
				if err != nil {
					return err
				}
				plan := o.plan()
				switch err := o.check(plan); {
				case err != nil:
					return err
				case ofOwn:
					return p.runModule(ctx, m, f, o, stdout, stderr)
				}
				return plan.answer(ctx, o.out, o.verbose, stdout, stderr)
			}
		},
	}
}

// options are what was typed behind run. Nothing writes them once they are read.
type options struct {
	program
	args              []string // stack[@build]
	base, out         string
	workloads, server string // lists
	time              time.Duration
	processes         int
	seed              uint64
	equal             float64 // percent
	gate              gate
	thorough, verbose bool
	made              made // by flags
	typed             map[string]bool
}

// runFlags registers the flags. read returns what was typed, after they are parsed.
func runFlags(p program, f *flag.FlagSet) (read func(args []string) (options, error)) {
	o := options{program: p}
	f.StringVar(&o.base, "base", "", "`stack` that the others are compared with: "+p.Base()+
		", or the first if one names a build")
	f.StringVar(&o.out, "out", "", "new `folder` for what is measured; rpcbench- with day and minute unless given")
	f.DurationVar(&o.time, "time", 2*time.Second, "about how long each stack is measured at each workload, over\n"+
		"all processes; 8s with -thorough, -max or builds, which take four times as long")
	f.BoolVar(&o.verbose, "v", false, "also print how it was measured, which the report has anyway")
	f.IntVar(&o.processes, "processes", 8, fmt.Sprintf("`number` for each comparison, at least %d", verdict.Fewest))
	f.Var((*list)(&o.workloads), "workloads",
		"`names` of rpcbench list, separated by commas; the first of the list unless given, or all with\n-thorough")
	f.BoolVar(&o.thorough, "thorough", false,
		"take half an hour: all workloads, for longer, and eight links of each build")
	made := workloadFlags(f)
	f.Var((*list)(&o.server), "server", "`stack=host:port,...` of servers that run already, as rpcbench serve prints them")
	f.Float64Var(&o.equal, "equal", 100*verdict.Margin, "`percent` by which stacks may differ and be called the same")
	f.Float64Var(&o.gate.max, "max", 0, "exit with status 3 if a stack takes more than so many `times` as long, such as\n"+
		"1.05, and with 4 if this run was too noisy to detect twice that excess")
	f.Float64Var(&o.gate.counts, "max-counts", 0, "exit with status 3 if it allocates, sends, receives or writes more "+
		"than so many\n`times` as much: 1 allows no growth; without -max no time is measured")
	f.Uint64Var(&o.seed, "seed", rand.Uint64N(1e6), "`number` that decides the order of everything, and the layouts")
	f.Lookup("seed").DefValue = "random" // and not another number in each -h
	return func(args []string) (_ options, err error) {
		o.args, o.typed = args, map[string]bool{}
		f.Visit(func(f *flag.Flag) { o.typed[f.Name] = true })
		if o.out != "" {
			o.out = filepath.Clean(o.out)
		}
		o.gate.named = o.typed["workloads"]
		if o.made, err = made(); o.made.workloads != nil {
			o.gate.named = true
		}
		return o, err
	}
}

// check says what is wrong with the options, whose plan is p.
func (o options) check(p plan) error {
	for _, check := range []func(plan) error{o.checkWorkloads, o.checkStacks, o.checkServers, o.checkGate, o.checkTime,
		o.checkSlow, o.checkOut} {
		if err := check(p); err != nil {
			return err
		}
	}
	return nil
}

func (o options) checkWorkloads(plan) error {
	if own := o.made.workloads; own != nil && o.typed["workloads"] {
		return shell.Wrong("run: -workloads names workloads, and other flags make one, %s: leave one of the two out",
			own[0].Name)
	}
	if !o.typed["workloads"] {
		return nil
	}
	names := strings.Split(o.workloads, ",")
	for _, name := range names {
		if _, err := workload.In(o.program.Workloads(), name); err != nil {
			return shell.Wrong("%w", err)
		}
	}
	if err := shell.Once("run", names); err != nil {
		return err
	}
	return nil
}

func (o options) checkStacks(p plan) error {
	for _, name := range append([]string{p.base}, p.contestants...) {
		_, build, named := strings.Cut(name, "@")
		if named && build == "" {
			return shell.Wrong("run: %s names no build after the @: give a git revision, a Go release, module@version or "+
				"KEY=VALUE, such as %[1]sHEAD~1", name)
		}
		if err := builds.Check(build); err != nil {
			return shell.Wrong("run: %w", err)
		}
	}
	stacks, err := p.Find(p.named()...)
	if err != nil {
		return err
	}
	for _, s := range stacks {
		if s.Method != stacks[0].Method {
			return shell.Wrong("run: %s serves %s, and %s %s: stacks of one method are compared",
				stacks[0].Name, cmp.Or(stacks[0].Method, "create-user"), s.Name, cmp.Or(s.Method, "create-user"))
		}
	}
	if o.made.workloads != nil {
		switch made := o.made.workloads[0]; {
		case stacks[0].Method != "" && made.Payload != "":
			return shell.Wrong("run: -payload is for create-user: leave it out")
		case made.Stream && !slices.ContainsFunc(stacks, streams):
			return shell.Wrong("run: -stream: none of %s has streams: leave it out", strings.Join(p.named(), ", "))
		}
	}
	if err := shell.Once("run", p.contestants); err != nil {
		return err
	}
	if len(p.contestants) == 0 {
		return shell.Wrong("run: nothing to compare with %s: name another stack", p.base)
	}
	return nil
}

// streams says whether a stack has streams, which its client tells. Of a method of one's own none has.
func streams(s rpcbench.Stack) bool {
	if s.Method != "" {
		return false
	}
	f, err := rpcbench.Start(context.Background(), s, rpcbench.Config{})
	if err != nil {
		return true // what is wrong with it, measuring says
	}
	defer f.Close()
	_, ok := f.Client.(rpcbench.Streamer)
	return ok
}

func (o options) checkServers(p plan) error {
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
	for _, name := range append([]string{p.base}, p.contestants...) {
		switch {
		case build(name) != "":
			return shell.Wrong("run: -server: %s is a build, which is linked here and has no server in another program: "+
				"leave one of the two out", name)
		case !slices.Contains(names, name):
			return shell.Wrong("run: -server: the server of %s, which is compared, is missing: add %[1]s=host:port", name)
		}
	}
	_, left := reachable(o.chosen(), o.made.workloads != nil)
	if left != "" && (o.gate.named || len(p.workloads) == 0) {
		return shell.Wrong("run: %s", left)
	}
	return nil
}

func (o options) checkGate(p plan) error {
	switch g := o.gate; {
	case o.typed["equal"] && !(o.equal > 0 && o.equal <= 100):
		return shell.Wrong("run: -equal %v is no margin: give a percentage, such as 2", o.equal)
	case o.typed["max"] && !(g.max > 1 && g.max <= 100):
		return shell.Wrong("run: -max %v is no gate: give more than 1 and 100 at most, such as 1.05", g.max)
	case o.typed["max-counts"] && !(g.counts >= 1 && g.counts <= 100):
		return shell.Wrong("run: -max-counts %v is no gate: give 1, which allows no growth, or up to 100", g.counts)
	case g.counts > 0 && p.servers != nil:
		return shell.Wrong("run: -max-counts: calls of servers in other programs are not counted: leave -server out")
	case g.counts > 0 && !slices.ContainsFunc(p.workloads, exact):
		return shell.Wrong("run: -max-counts compares counts of one caller without a link: name such a workload, " +
			"such as small")
	case g.countsOnly() && (o.typed["out"] || o.typed["thorough"] || o.typed["time"] || o.typed["processes"]):
		return shell.Wrong("run: -max-counts alone measures no time: leave -out, -thorough, -time and -processes out," +
			" or give -max")
	}
	return nil
}

func (o options) checkTime(p plan) error {
	least := versus.FewestBlocks * versus.Turn * time.Duration(p.processes)
	switch {
	case o.gate.countsOnly():
	case p.processes < verdict.Fewest:
		return shell.Wrong("run: %d processes are too few for a verdict: -processes %d or more", p.processes, verdict.Fewest)
	case p.time < least:
		return shell.Wrong("run: %v over %d processes leave less than %d turns of %v in each: give -time %v or more",
			p.time, p.processes, versus.FewestBlocks, versus.Turn, least)
	}
	return nil
}

// checkSlow refuses calls that are so slow that one comparison would take more than ten minutes.
func (o options) checkSlow(p plan) error {
	const longest = 10 * time.Minute
	takes := func(p plan) time.Duration {
		all := p.campaign(nil, p.likely())
		all.Comparisons = all.Comparisons[:1]
		return all.Takes()
	}
	for _, w := range p.workloads {
		p.workloads = []workload.Planned{w}
		if p.gate.countsOnly() || w.Likely() < 10*time.Millisecond || takes(p) <= longest {
			continue
		}
		what, less, least := "-wait "+w.Wait.String(), "a shorter -wait", p
		switch {
		case w.Link != "":
			what, less = "-link "+w.Link, "a quicker -link"
		case w.Wait == 0:
			what = fmt.Sprintf("%d callers, %s", w.AtOnce(), cmp.Or(w.Payload, "small calls"))
			less = "fewer callers, a smaller message"
		}
		least.processes, least.time = verdict.Fewest, versus.FewestBlocks*versus.Turn*verdict.Fewest
		if takes(least) <= longest {
			less = fmt.Sprintf("-processes %d -time %v, or %s", verdict.Fewest, least.time, less)
		}
		return shell.Wrong("run: %s: windows of ten calls of each caller make this take %v, and ten minutes are the most: "+
			"give %s", what, takes(p).Round(10*time.Second), less)
	}
	return nil
}

// checkOut checks the folder of -out. It may exist if a parent rpcbench made it for us: then report.Typed is set.
func (o options) checkOut(plan) error {
	if o.out == "" || o.gate.countsOnly() || os.Getenv(report.Typed) != "" {
		return nil
	}
	return shell.IsNew("run: -out", o.out)
}
