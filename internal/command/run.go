package command

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report"
)

func runCommand(p program, stdout, stderr io.Writer) command {
	var messages []string
	if p.make != nil {
		messages = []string{"Messages of yours: " + ownFlags}
	}
	return command{
		name: "run", tidies: true, args: " [stack[@build]...]",
		does: "Compare stacks, or builds of them, with a base, in two minutes or so",
		more: "\n\nA build of a stack is a git revision (HEAD~1), a Go release (go1.26.8), a version of a module\n" +
			"(google.golang.org/grpc@v1.80.0) or KEY=VALUE of the environment. Without one a stack is measured as\n" +
			"its source lies.",
		example: "rpcbench run",
		groups: append([]string{
			"What is called: base workloads message payload stream headers",
			"How: rate callers conns new-connections tls unix apart link server gomaxprocs",
			"How long: thorough time processes seed",
			"What is decided: equal max max-counts",
			"Where to: out v",
		}, messages...),
		setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			c, m := comparison{program: p}, Messages{}
			m.flags(f)
			f.StringVar(&c.base, "base", "", "`stack` that the others are compared with: "+p.base()+
				", or the first if one names a build")
			f.StringVar(&c.out, "out", "", "new `folder` for what is measured; rpcbench- with day and minute unless given")
			f.DurationVar(&c.time, "time", 2*time.Second, "about how long each stack is measured at each workload, over\n"+
				"all processes; 8s with -thorough, -max or builds, which take four times as long")
			f.BoolVar(&c.verbose, "v", false, "print also how it was measured, which is in the report")
			f.IntVar(&c.processes, "processes", 8, fmt.Sprintf("`number` for each comparison, at least %d", versus.Fewest))
			var only list
			f.Var(&only, "workloads", "`names` of rpcbench list, separated by commas; the first of the list unless given")
			thorough := f.Bool("thorough", false, "half an hour: all workloads, for longer, and eight links of each build")
			made := workloadFlags(f)
			f.Var((*list)(&c.server), "server",
				"`stack=host:port,...` of servers that run already, as rpcbench serve prints them")
			f.Float64Var(&c.equal, "equal", 100*versus.Margin, "`percent` by which stacks may differ that are called the same")
			f.Float64Var(&c.gate.max, "max", 0, "exit status 3 if a stack takes more than so many `times` as long: 1.05;\n"+
				"4 if twice that excess could not have been seen")
			f.Float64Var(&c.gate.counts, "max-counts", 0, "exit status 3 if it allocates, sends, receives or writes more than "+
				"so many `times`\nas much: 1 allows no growth; without -max no time is measured")
			f.Uint64Var(&c.seed, "seed", rand.Uint64N(1e6), "`number` that decides the order of everything, and the layouts")
			return func(ctx context.Context, args []string) error {
				typed := map[string]bool{}
				f.Visit(func(f *flag.Flag) { typed[f.Name] = true })
				own := slices.ContainsFunc(strings.Fields(ownFlags), func(name string) bool { return typed[name] })
				if own {
					if err := p.checkOwn(m); err != nil {
						return wrong("run: %w", err)
					}
					c.program = program{stacks: moduleStacks()}
				}
				var err error
				if c.sweep, err = made(); err == nil {
					err = c.take(args, string(only), *thorough, typed)
				}
				switch {
				case err != nil:
					return err
				case own:
					return p.runModule(ctx, m, f, &c, stdout, stderr)
				}
				return c.answer(ctx, stdout, stderr)
			}
		},
	}
}

// take carries the command line over, or says what is wrong with it.
func (c *comparison) take(args []string, only string, thorough bool, typed map[string]bool) error {
	own := c.sweep.workloads
	switch c.workloads = c.program.workloads(); {
	case own != nil && typed["workloads"]:
		return wrong("run: -workloads names workloads, and other flags make one, %s: leave one of the two out", own[0].Name)
	case own != nil:
		c.workloads = own
	case typed["workloads"]:
		c.workloads = nil
		for name := range strings.SplitSeq(only, ",") {
			w, err := workload.In(c.program.workloads(), name)
			if err != nil {
				return wrongUse{err}
			}
			if slices.ContainsFunc(c.workloads, func(other workload.Workload) bool { return other.Name == name }) {
				return wrong("run: %s is named twice: name it once", name)
			}
			c.workloads = append(c.workloads, w)
		}
	case !thorough && !c.gate.alone():
		few := workload.Few
		if c.stacks[0].Method != "" {
			few = workload.FewOwn
		}
		c.workloads = c.workloads[:min(few, len(c.workloads))]
	}
	if err := c.names(args); err != nil {
		return err
	}
	c.also = map[string][]string{}
	for name, at := range workload.Also() {
		_, unknown := c.find(name)
		asked := len(args) == 0 && c.base == "httpjson" && !typed["server"] // all stacks of ours
		if unknown == nil && asked && (thorough || c.stacks[0].Method != "") {
			c.also[name] = at
		}
	}
	if typed["server"] {
		if err := c.elsewhere(c.server, typed["workloads"] || own != nil); err != nil {
			return err
		}
	}
	if err := c.gated(typed); err != nil || c.gate.alone() {
		return err
	}
	if thorough || c.gate.max > 0 || c.named() {
		if c.layouts = min(8, c.processes); !typed["time"] {
			c.time = 8 * time.Second
		}
	}
	least := versus.FewestBlocks * versus.Turn * time.Duration(c.processes)
	switch {
	case c.processes < versus.Fewest:
		return wrong("run: %d processes are too few for a verdict: -processes %d or more", c.processes, versus.Fewest)
	case c.time < least:
		return wrong("run: %v over %d processes leave less than %d turns of %v in each: give -time %v or more",
			c.time, c.processes, versus.FewestBlocks, versus.Turn, least)
	}
	return c.placed()
}

// placed says what is wrong with the folder that -out names.
func (c *comparison) placed() error {
	if c.out == "" || os.Getenv(report.Typed) != "" {
		return nil // no folder yet, or one that the command has made which was typed
	}
	c.out = filepath.Clean(c.out)
	_, missing := os.Lstat(c.out)
	switch _, none := os.Stat(filepath.Dir(c.out)); {
	case missing == nil:
		return wrong("run: -out %s: it is there already: name another", c.out)
	case none != nil:
		return wrong("run: -out %s: make the folder %s first", c.out, filepath.Dir(c.out))
	}
	return nil
}
