// Package explain is the command of that name: it says where the CPU of a call goes, and of the difference of two
// stacks. Package calls measures that.
package explain

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/explain/calls"
	"github.com/rpcbench/rpcbench/internal/explain/layers"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// closedLoop is said of a workload that has a rate.
const closedLoop = "%s is explained without its rate: each of %d callers calls again as soon as it has its reply."

// options are what was typed behind explain.
type options struct {
	shell.Program
	args, stacks []string // all arguments, and those that are stacks
	workload     workload.Workload
	procs        int
	length       time.Duration
	folder       string
	ofStacks     string // a flag that was given, and is for stacks
}

// Command is explain.
func Command(p shell.Program, stdout, stderr io.Writer) shell.Command {
	return shell.Command{
		Name: "explain", Tidies: true, Args: " stack|profile...",
		Does:    "Split the CPU of a call, or of two stacks' difference, among layers",
		More:    "\n\nProfiles are those that -keep has kept. rpcbench bound reads those of services.",
		Example: "rpcbench explain grpcservehttp grpcprotobuf",
		Setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			read := flags(p, f)
			return func(ctx context.Context, args []string) error {
				o, err := read(args)
				if err != nil {
					return err
				}
				return o.run(ctx, stdout, stderr)
			}
		},
	}
}

// flags registers those of explain. read returns what was typed, after they are parsed, or says what is wrong with it.
func flags(p shell.Program, f *flag.FlagSet) (read func(args []string) (options, error)) {
	o, first := options{Program: p}, p.Workloads()[0].Name
	if p.Stacks[0].Serves == "" {
		first = workload.Small
	}
	name := f.String("workload", first, "`name` of rpcbench list")
	callers := f.Int("callers", 0, "`number` of callers at a time")
	conns := f.Int("conns", 0, "`number` of connections; by default as the stack's library has them")
	f.IntVar(&o.procs, "gomaxprocs", 1, "`number` of cores: 1 measures CPU work, 0 uses all cores")
	f.DurationVar(&o.length, "time", 20*time.Second, "for each stack: 2 s in each process, half of it under the profiler")
	f.StringVar(&o.folder, "keep", "",
		"new `folder` for a CPU profile of each stack, which explain and go tool pprof read")
	return func(args []string) (options, error) {
		o.args = args
		var err error
		o.stacks = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return !slices.Contains(p.Names(), arg) })
		f.Visit(func(f *flag.Flag) {
			o.ofStacks = f.Name
			if n := map[string]*int{"callers": callers, "conns": conns}[f.Name]; n != nil {
				err = cmp.Or(err, shell.Within(f.Name, *n))
			}
		})
		if err != nil {
			return o, shell.Wrong("explain: %w", err)
		}
		listed, err := p.Workload(*name)
		if err != nil {
			return o, shell.Wrong("%w", err)
		}
		o.workload = listed.Workload
		o.workload.Callers = cmp.Or(*callers, o.workload.Callers)
		o.workload.Conns = cmp.Or(*conns, o.workload.Conns)
		return o, o.check()
	}
}

// check says what is wrong with the options.
func (o options) check() error {
	err := o.workload.Check()
	switch least := 2 * calls.Each; {
	case err != nil:
		return shell.Wrong("explain: %w", err)
	case len(o.args) == 0:
		return shell.Wrong("explain: nothing is named: give a stack of rpcbench list, or a profile that -keep has kept")
	case len(o.stacks) == 0 && o.ofStacks != "":
		return shell.Wrong("explain: -%s is for stacks, and %s is none: rpcbench list names the stacks", o.ofStacks,
			o.args[0])
	case o.folder != "" && len(slices.Compact(slices.Sorted(slices.Values(o.stacks)))) < len(o.stacks):
		return shell.Wrong("explain: -keep has one profile of a stack: name each stack once")
	case o.procs < 0 || o.procs > runtime.NumCPU():
		return shell.Wrong("explain: -gomaxprocs %d is not from 0 to %d, the cores of this machine: use 1, or 0 for all",
			o.procs, runtime.NumCPU())
	case o.length < least:
		return shell.Wrong("explain: -time %v is too short: give %v or more", o.length, least)
	}
	return nil
}

// run explains, and prints what it found before an error.
func (o options) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	all, err := o.profiles()
	if err != nil {
		return err
	}
	if o.folder != "" {
		if err := os.Mkdir(o.folder, 0o755); err != nil {
			return shell.Wrong("explain: -keep needs the name of a new folder: %w", err)
		}
		defer func() { _ = os.Remove(o.folder) }() // unless a profile is in it
	}
	asked := calls.Rounds{Arms: o.stacks, Workload: o.workload, Procs: o.procs}
	measured, err := calls.Explain(ctx, asked, o.length, shell.Progress(ctx, stderr))
	rest := measured
	for i := range all {
		if all[i] == nil {
			all[i], rest = rest[0], rest[1:]
		}
	}
	if slices.ContainsFunc(measured, func(e *calls.Explanation) bool { return len(e.Processes) == 0 }) {
		return err // else an interrupted one has something to show
	}
	for _, e := range measured {
		if o.folder != "" {
			err = errors.Join(err, e.Keep(o.folder))
		}
	}
	return errors.Join(err, o.print(stdout, all), shell.Say(stdout, "Next: %s", o.next()))
}

// profiles reads the arguments that are profiles. Those that are stacks have none.
func (o options) profiles() (all []*calls.Explanation, err error) {
	all = make([]*calls.Explanation, len(o.args))
	for i, arg := range o.args {
		if slices.Contains(o.stacks, arg) {
			continue
		}
		info, missing := os.Stat(arg)
		switch {
		case arg == "-" || strings.Contains(arg, "://"): // which -keep doesn't write to
			return nil, shell.Former("explain of a service", arg)
		case missing != nil:
			return nil, shell.Unknown("explain: %q is neither a profile nor a stack: %srpcbench list names the stacks", arg,
				o.Names())
		case !info.Mode().IsRegular():
			return nil, shell.Wrong("explain: %s is no file: name a profile", arg)
		}
		p, err := layers.ReadFile(arg)
		if err != nil {
			return nil, err
		}
		s, err := layers.Of(p)
		switch {
		case errors.Is(err, layers.ErrService):
			return nil, shell.Former("explain of a service", arg)
		case err != nil:
			return nil, fmt.Errorf("%s: %w", arg, err)
		}
		all[i] = &calls.Explanation{Name: s.Row, Processes: []calls.Process{{Profile: s}}}
	}
	return all, nil
}

// print writes the layers of each stack and of their difference. They were measured, or read from profiles.
func (o options) print(stdout io.Writer, all []*calls.Explanation) (err error) {
	var names []string
	for _, e := range all {
		names = append(names, e.Name)
	}
	w, measured := o.workload, len(o.stacks) > 0
	on := report.Summary{Environment: environ.List()}.Head()
	shell.Say(stdout, "CPU per call of %s, explained on %s.", strings.Join(names, " and "), on)
	if w.Apart && measured {
		shell.Say(stdout, calls.OneProcess, w.Name)
	}
	if w.Rate != 0 && measured {
		shell.Say(stdout, closedLoop, w.Name, w.AtOnce())
	}
	for _, e := range all {
		if procs := e.Processes[0].Procs; procs > 0 {
			s := o.Stacks[slices.Index(o.Names(), e.Name)]
			shell.Say(stdout, "# %s: workload=%s callers=%d conns=%d GOMAXPROCS=%d processes=%d", e.Name, w.Name,
				w.AtOnce(), w.Connections(s.Traits), procs, len(e.Processes))
		}
	}
	for _, e := range all {
		err = errors.Join(err, e.Print(stdout))
	}
	if len(all) == 2 {
		err = errors.Join(err, calls.PrintDifference(stdout, all[0], all[1]))
	}
	shell.Say(stdout, "\n%s", footnote(all))
	return err
}

// footnote says what the errors are of that stand above it.
func footnote(all []*calls.Explanation) string {
	said, two := "± of a share comes from counting its samples, and holds at 95%.", len(all) == 2
	several := func(e *calls.Explanation) bool { return len(e.Processes) > 1 }
	switch intervals := slices.ContainsFunc(all, several); {
	case intervals && two:
		said += " Intervals and ± of differences hold at 95%, too, over processes, each with new connections."
	case intervals:
		said += " Intervals hold at 95%, too, over processes, each with new connections."
	}
	if two {
		said += " SE is a standard error over processes, or that of counting the samples of a file."
	}
	return said
}

// next is what somebody may type who has read layers.
func (o options) next() string {
	profile := o.args[0]
	switch {
	case len(o.stacks) > 0 && o.folder == "":
		return fmt.Sprintf("rpcbench explain -keep profiles %s keeps profiles for go tool pprof.", strings.Join(o.args, " "))
	case len(o.stacks) > 0:
		profile = filepath.Join(o.folder, o.stacks[0]+".pprof")
	}
	return fmt.Sprintf("go tool pprof -top %s lists the functions.", profile)
}
