// Package explain is the command of that name, and what run has of it.
package explain

import (
	"bytes"
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

// Turn is how long a stack is measured before the next one has its turn. In a process each has as many rounds: one with
// the profiler first, one with it last.
const (
	Turn   = 500 * time.Millisecond
	Rounds = 2
	Each   = Rounds * 2 * Turn // of a stack in a process
)

// OneProcess is said of a workload that is apart.
const OneProcess = "%s is explained in one process: a profile of it has both the client and the server."

// closedLoop is said of a workload that has a rate.
const closedLoop = "%s is explained without its rate: each of %d callers calls again as soon as it has its reply."

// Explanation is a call of one stack, split among layers.
type Explanation struct {
	Name      string
	processes []calls.Process // or a profile that was read
}

// Command is explain.
func Command(p shell.Program, stdout, stderr io.Writer) shell.Command {
	return shell.Command{
		Name: "explain", Tidies: true, Args: " stack|profile|URL...",
		Does:    "Split the CPU of a call, of two stacks' difference or of a service among layers",
		Example: "rpcbench explain grpcservehttp grpcprotobuf",
		Setup: func(f *flag.FlagSet) func(context.Context, []string) error {
			read := explainFlags(p, f)
			return func(ctx context.Context, args []string) error {
				o, err := read(args)
				if err == nil {
					err = o.check()
				}
				if err != nil {
					return err
				}
				return o.run(ctx, stdout, stderr)
			}
		},
	}
}

// explained are the options of explain: what was typed behind it.
type explained struct {
	shell.Program
	args, stacks    []string // all arguments, and those that are stacks
	workload        workload.Workload
	procs           int
	length, timeout time.Duration
	ratios, folder  string
	ofStacks        string // a flag that was given, and is for stacks
	waits           bool   // the timeout was given
}

// explainFlags registers the flags. read returns what was typed, after they are parsed.
func explainFlags(p shell.Program, f *flag.FlagSet) (read func(args []string) (explained, error)) {
	o, first := explained{Program: p}, p.Workloads()[0].Name
	if p.Stacks[0].Method == "" {
		first = workload.Small
	}
	name := f.String("workload", first, "`name` of rpcbench list")
	callers := f.Int("callers", 0, "`number` of callers at a time")
	conns := f.Int("conns", 0, "`number` of connections; as the stack's library is wired unless given")
	f.IntVar(&o.procs, "gomaxprocs", 1, "`number` of cores: 1 measures CPU work, 0 uses all cores")
	f.DurationVar(&o.length, "time", 20*time.Second, "for each stack: 2 s in each process, half of it under the profiler")
	f.StringVar(&o.ratios, "ratios", "",
		"`folder` of rpcbench run, by whose ratios its stacks would save CPU of a service")
	f.StringVar(&o.folder, "keep", "",
		"new `folder` for a CPU profile of each stack, which explain and go tool pprof read")
	f.DurationVar(&o.timeout, "timeout", time.Minute, "how long to wait for the profile of a URL")
	return func(args []string) (explained, error) {
		o.args = args
		var err error
		o.stacks = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return !slices.Contains(p.Names(), arg) })
		f.Visit(func(f *flag.Flag) {
			switch f.Name {
			case "callers", "conns", "gomaxprocs", "keep", "time", "workload":
				o.ofStacks = f.Name
			case "timeout":
				o.waits = true
			}
			if n := map[string]*int{"callers": callers, "conns": conns}[f.Name]; n != nil {
				err = cmp.Or(err, shell.Within("explain", f.Name, *n))
			}
		})
		if err != nil {
			return o, err
		}
		listed, err := workload.In(p.Workloads(), *name)
		if err != nil {
			return o, shell.Wrong("%w", err)
		}
		o.workload = listed.At(nil)
		o.workload.Callers = cmp.Or(*callers, o.workload.Callers)
		o.workload.Conns = cmp.Or(*conns, o.workload.Conns)
		return o, nil
	}
}

// check says what is wrong with the options.
func (o explained) check() error {
	err := o.workload.Check()
	switch least := 2 * Each; {
	case err != nil:
		return shell.Wrong("explain: %w", err)
	case len(o.args) == 0:
		return shell.Wrong("explain: nothing is named: give a stack of rpcbench list, a CPU profile or its URL")
	case o.ratios != "" && len(o.stacks) > 0:
		return shell.Wrong("explain: -ratios is for the profile of a service, and %s is a stack: leave -ratios out",
			o.stacks[0])
	case len(o.stacks) == 0 && o.ofStacks != "":
		return shell.Wrong("explain: -%s is for stacks, and %s is none: rpcbench list names the stacks", o.ofStacks,
			o.args[0])
	case o.waits && !slices.ContainsFunc(o.args, isURL):
		return shell.Wrong("explain: -timeout is for the profile of a URL, and %s is none: leave -timeout out", o.args[0])
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
func (o explained) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	var by report.Summary
	if o.ratios != "" {
		by, err = report.Read(o.ratios)
	}
	switch {
	case err != nil:
		return err
	case by.Remote:
		return shell.Wrong("explain: -ratios %s: its servers were in other programs, so no ratio is of all CPU: "+
			"name another folder", o.ratios)
	}
	if o.folder != "" {
		if err := os.Mkdir(o.folder, 0o755); err != nil {
			return shell.Wrong("explain: -keep needs the name of a new folder: %w", err)
		}
		defer func() { _ = os.Remove(o.folder) }() // unless a profile is in it
	}
	asked := calls.Rounds{Workload: o.workload, Slice: Turn, Procs: o.procs, Number: Rounds}
	all, err := Explain(ctx, o.Program, asked, o.length, o.timeout, o.args, shell.Progress(ctx, stderr))
	none := func(e *Explanation) bool { return len(e.processes) == 0 }
	if len(all) == 0 || slices.ContainsFunc(all, none) {
		return err // else an interrupted one has something to show
	}
	service := all[0].processes[0].Profile.Calls == 0
	if o.ratios != "" && !service {
		return shell.Wrong("explain: -ratios is for the profile of a service, and %s is a profile of rpcbench: leave "+
			"-ratios out", all[0].Name)
	}
	for _, e := range all {
		if len(e.processes[0].Recordings) > 0 && o.folder != "" {
			err = errors.Join(err, e.keep(o.folder))
		}
	}
	if service {
		return errors.Join(all[0].printService(stdout, by, o.args[0]), err)
	}
	err = errors.Join(err, printExplained(stdout, o.Program, all, o.workload, len(o.stacks) > 0))
	return errors.Join(err, shell.Say(stdout, "Next: %s", next(o.folder, o.stacks, o.args)))
}

// printExplained writes the layers of each stack and of their difference. They were measured, or read from profiles.
func printExplained(stdout io.Writer, p shell.Program, all []*Explanation, w workload.Workload,
	measured bool) (err error) {
	var names []string
	for _, e := range all {
		names = append(names, e.Name)
	}
	on := report.Summary{Environment: environ.List()}.Head()
	shell.Say(stdout, "CPU per call of %s, explained on %s.", strings.Join(names, " and "), on)
	if w.Apart && measured {
		shell.Say(stdout, OneProcess, w.Name)
	}
	if w.Rate != 0 && measured {
		shell.Say(stdout, closedLoop, w.Name, w.AtOnce())
	}
	for _, e := range all {
		if procs := e.processes[0].Procs; procs > 0 {
			s := p.Stacks[slices.Index(p.Names(), e.Name)]
			shell.Say(stdout, "# %s: workload=%s callers=%d conns=%d GOMAXPROCS=%d processes=%d", e.Name, w.Name,
				w.AtOnce(), w.Connections(s.Traits), procs, len(e.processes))
		}
	}
	for _, e := range all {
		err = errors.Join(err, e.Print(stdout))
	}
	if len(all) == 2 {
		err = errors.Join(err, PrintDifference(stdout, all[0], all[1]))
	}
	shell.Say(stdout, "\n± and intervals hold at 95 %%, over processes, each with new connections. SE is a standard "+
		"error over processes, or that of counting the samples of a file.")
	return err
}

// next is what somebody may type who has read layers.
func next(folder string, stacks, args []string) string {
	switch {
	case len(stacks) > 0 && folder == "":
		return fmt.Sprintf("rpcbench explain -keep profiles %s keeps profiles for go tool pprof.", strings.Join(args, " "))
	case len(stacks) > 0:
		args = []string{filepath.Join(folder, stacks[0]+".pprof")}
	}
	return fmt.Sprintf("go tool pprof -top %s lists the functions.", args[0])
}

func isURL(arg string) bool {
	return strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://")
}

// Explain reads the arguments that are files, and has those that are stacks measured in one process after the other. It
// keeps what was measured before an error.
func Explain(ctx context.Context, p shell.Program, asked calls.Rounds, length, timeout time.Duration,
	args []string, show shell.Show) (all []*Explanation, err error) {
	var measured []*Explanation
	for _, arg := range args {
		e := &Explanation{Name: arg}
		_, unknown := p.Find(arg)
		info, missing := os.Stat(arg)
		elsewhere := isURL(arg) || arg == "-"
		switch {
		case unknown == nil:
			measured, asked.Arms = append(measured, e), append(asked.Arms, arg)
		case missing != nil && !elsewhere:
			return nil, shell.Wrong("explain: %q is neither a profile nor a stack: rpcbench list names the stacks", arg)
		case !elsewhere && !info.Mode().IsRegular():
			return nil, shell.Wrong("explain: %s is no file: name a profile, or give its URL", arg)
		default:
			read := layers.ReadFile
			if isURL(arg) {
				read = func(string) (layers.Split, error) { return fetch(ctx, arg, timeout) }
			} else if elsewhere {
				read = func(string) (layers.Split, error) { return piped(ctx, os.Stdin) }
			}
			s, err := read(arg)
			switch {
			case ctx.Err() != nil:
				return nil, shell.ErrInterrupted
			case err != nil:
				return nil, err
			case s.Calls == 0 && len(args) > 1:
				return nil, shell.Wrong("explain: %s is the profile of a service, whose calls nobody counted: give it alone", arg)
			}
			e.Name, e.processes = s.Row, []calls.Process{{Profile: s}}
		}
		all = append(all, e)
	}
	defer show("", 0)
	takes := Each * time.Duration(len(measured))
	for n, left := length/Each, length/Each; left > 0 && takes > 0; left-- {
		show(fmt.Sprintf("process %d of %d", n-left+1, n), takes*left)
		found, err := calls.Measure(ctx, asked)
		for i, one := range found {
			measured[i].processes = append(measured[i].processes, one)
		}
		if ctx.Err() != nil {
			err = shell.ErrInterrupted
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// keep writes the profile of all processes of a stack to a folder.
func (e *Explanation) keep(folder string) error {
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
		return fmt.Errorf("explain: %w", err)
	}
	return nil
}
