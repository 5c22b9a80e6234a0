// Package command is the command rpcbench, for package cli and for cmd/rpcbench.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/explain"
	"github.com/rpcbench/rpcbench/internal/idle"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
)

// Main is cli.Main of a program that has a Make, or nil.
func Main(module Make, stacks []rpcbench.Stack, workloads ...rpcbench.Workload) {
	p := program{make: module, stacks: stacks, own: workloads}
	if info, ok := debug.ReadBuildInfo(); ok {
		p.main = info.Path
	}
	err, done := p.check(os.Args[1:]), false
	if err == nil {
		done, err = child.Serve(os.Stdin, os.Stdout, child.List(stacks), jobs())
	}
	if err == nil && !done {
		err = p.run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	}
	var its ended
	switch {
	case err == nil:
		return
	case errors.As(err, &its):
		os.Exit(int(its))
	}
	who := "rpcbench: "
	if os.Getenv(child.Variable) != "" && len(os.Args) == 1 { // a child, whose parent says who
		who = ""
	}
	fmt.Fprintln(os.Stderr, who+oneLine(err))
	switch {
	case errors.As(err, new(wrongUse)):
		os.Exit(2)
	case errors.As(err, new(above)):
		os.Exit(3)
	case errors.As(err, new(notDecided)):
		os.Exit(4)
	}
	os.Exit(1)
}

// jobs are what this program does as a child of itself or of another build.
func jobs() map[string]child.Job {
	return map[string]child.Job{child.Serves: child.Serving(), child.Measures: versus.Measuring(),
		child.Counts: versus.Counting(), child.Profiles: explain.Profiling(), child.Holds: idle.Holding()}
}

// untilSignal is a context that ends when the process is told to. Until stop is called, the signal itself ends nothing.
// Nor does a pipe that nobody reads: a write to it fails.
func untilSignal(ctx context.Context) (_ context.Context, stop context.CancelFunc) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	ctx, ended := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	return ctx, func() {
		ended()
		signal.Stop(broken)
	}
}

// oneLine is an error as a line.
func oneLine(err error) string {
	var said []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		if line != "" && !slices.Contains(said, line) { // one cause may fail several writes
			said = append(said, line)
		}
	}
	return strings.Join(said, "; ")
}

// program is what the commands know of the program that they are compiled into.
type program struct {
	stacks []rpcbench.Stack
	own    []rpcbench.Workload
	make   Make
	main   string // the import path of its main package
}

// workloads are those of run, in their order.
func (p program) workloads() (all []workload.Planned) {
	if own := p.stacks[0].Method != ""; !own {
		all = workload.All()
	} else if len(p.own) == 0 {
		all = workload.Own()
	}
	for _, w := range p.own {
		all = append(all, workload.Planned{Workload: workload.Workload(w)})
	}
	return all
}

// check refuses a program whose stacks can't be told apart, and a command in the environment of a child: what it starts
// would inherit that.
func (p program) check(args []string) error {
	names := p.names()
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("this program has two stacks named %s: give each a name of its own", name)
		}
	}
	if len(names) == 0 {
		return errors.New("this program has no stacks: its main function gives them to cli.Main")
	}
	all := p.workloads()
	for i, w := range all {
		same := func(other workload.Planned) bool { return other.Name == w.Name }
		switch err := w.Check(); {
		case err != nil:
			return fmt.Errorf("this program's workload %q: %w", w.Name, err)
		case !regexp.MustCompile(`^[A-Za-z0-9.-]+$`).MatchString(w.Name) || w.Title == "":
			return fmt.Errorf("this program's workload %q needs a Name of letters, digits, dots and dashes, "+
				"and a Title", w.Name)
		case slices.ContainsFunc(all[:i], same):
			return fmt.Errorf("this program has two workloads named %s: give each a name of its own", w.Name)
		}
	}
	if len(args) > 0 && os.Getenv(child.Variable) != "" {
		return fmt.Errorf("%s is set, which is for processes that rpcbench starts: unset it", child.Variable)
	}
	return nil
}

func (p program) names() (all []string) {
	for _, s := range p.stacks {
		all = append(all, s.Name)
	}
	return all
}

// find returns the stacks with the given names.
func (p program) find(names ...string) (found []rpcbench.Stack, err error) {
	known := p.names()
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			there := "rpcbench list names them"
			if p.stacks[0].Method != "" {
				there = "there are " + strings.Join(known, ", ")
			}
			return nil, wrong("unknown stack %q: %s", name, there)
		}
		found = append(found, p.stacks[i])
	}
	return found, nil
}

// base is the stack that others are compared with unless one is named.
func (p program) base() string {
	for _, name := range []string{"httpjson", "httpjson.converted"} {
		if slices.Contains(p.names(), name) {
			return name
		}
	}
	return p.stacks[0].Name
}

// contestants are compared with the base unless some are named.
func (p program) contestants() []string {
	for _, name := range []string{"grpcprotobuf", "grpcprotobuf.converted"} {
		if slices.Contains(p.names(), name) {
			return []string{name}
		}
	}
	return p.names()
}

// wrongUse is the error of a command line that can't be carried out.
type wrongUse struct{ error }

// WrongUse makes it of what a Make says.
func WrongUse(err error) error { return wrongUse{err} }

func wrong(format string, args ...any) error {
	return wrongUse{fmt.Errorf(""+format, args...)}
}

// once refuses a name that is given twice.
func once(where string, names []string) error {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return wrong("%s: %s is named twice: name it once", where, name)
		}
	}
	return nil
}

// isNew refuses a folder that is there, or that has none to be made in.
func isNew(where, folder string) error {
	_, missing := os.Lstat(folder)
	switch _, none := os.Stat(filepath.Dir(folder)); {
	case missing == nil:
		return wrong("%s %s: it is there already: name another", where, folder)
	case none != nil:
		return wrong("%s %s: make the folder %s first", where, folder, filepath.Dir(folder))
	}
	return nil
}

// command is one of the program's. setup registers its flags, and returns what it does with the arguments after them.
type command struct {
	name, args, does, example string
	more                      string   // that -h says besides
	groups                    []string // of flags: a title, and names; one group unless given
	tidies                    bool     // up after a signal, which its context tells of; a signal ends the others
	setup                     func(*flag.FlagSet) func(ctx context.Context, args []string) error
}

func (p program) run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	commands := []command{runCommand(p, stdout, stderr), initCommand(p, stdout, stderr), reportCommand(stdout),
		explainCommand(p, stdout, stderr), serveCommand(p, stdout), listCommand(p, stdout), versionCommand(stdout)}
	if len(args) == 0 {
		return wrong("a command is missing: rpcbench -h lists them")
	}
	if slices.Contains([]string{"help", "-h", "--h", "-help", "--help"}, args[0]) {
		help := "Rpcbench compares ways to serve and call an API, and says how far to trust it.\n\n"
		for _, c := range commands {
			if c.name != "init" || p.make != nil {
				help += fmt.Sprintf("  rpcbench %-10s %s\n", c.name, c.does)
			}
		}
		_, err := io.WriteString(stdout, help+"\nNext: rpcbench run, or rpcbench <command> -h for its flags.\n")
		return err
	}
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == args[0] })
	if i < 0 {
		return wrong("there is no command %q: rpcbench -h lists them", args[0])
	}
	c, f := commands[i], flag.NewFlagSet(args[0], flag.ContinueOnError)
	f.SetOutput(io.Discard) // the error is printed once, by main
	do := c.setup(f)
	switch err := parse(f, args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		var flags strings.Builder
		printFlags(&flags, f, c.groups)
		if flags.Len() > 0 {
			flags.WriteString("\n")
		}
		_, err := fmt.Fprintf(stdout, "usage: rpcbench %s [flags]%s\n\n%s.%s\n\n%sexample: %s\n", c.name, c.args, c.does,
			c.more, &flags, c.example)
		return err
	case err != nil && c.name == "run" && strings.HasSuffix(err.Error(), "not defined: -quick"):
		return wrong("run: -quick is what run does without it: leave it out, or give -thorough for half an hour")
	case err != nil:
		return wrong("%s: %w: rpcbench %s -h shows its flags", c.name, err, c.name)
	}
	if c.args == "" && f.NArg() > 0 {
		return wrong("%s takes no argument, and %q is one: leave it out", c.name, f.Arg(0))
	}
	if c.tidies {
		var stop context.CancelFunc
		ctx, stop = untilSignal(ctx)
		defer stop()
	}
	return do(ctx, f.Args())
}

// parse takes flags before, between and behind other arguments. What follows -- is no flag, and - is standard input.
func parse(f *flag.FlagSet, args []string) error {
	others := []string{"--"}
	for len(args) > 0 {
		n := 1 // arguments that are one flag
		switch arg := args[0]; {
		case arg == "--":
			others, n = append(others, args[1:]...), len(args)
		case arg == "-" || !strings.HasPrefix(arg, "-"):
			others = append(others, arg)
		default:
			if hasValue(f, arg) {
				n = min(2, len(args))
			}
			if err := f.Parse(args[:n]); err != nil {
				return err
			}
		}
		args = args[n:]
	}
	return f.Parse(others) // so that Args has them
}

// hasValue tells whether the argument behind a flag is its value.
func hasValue(f *flag.FlagSet, arg string) bool {
	name, _, within := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
	of := f.Lookup(name)
	if of == nil || within {
		return false
	}
	alone, ok := of.Value.(interface{ IsBoolFlag() bool })
	return !ok || !alone.IsBoolFlag()
}

// printFlags describes the flags, group by group.
func printFlags(w io.Writer, f *flag.FlagSet, groups []string) {
	if len(groups) == 0 {
		f.SetOutput(w)
		f.PrintDefaults()
	}
	for i, group := range groups {
		title, names, _ := strings.Cut(group, ": ")
		part := flag.NewFlagSet(title, flag.ContinueOnError)
		part.SetOutput(w)
		for name := range strings.FieldsSeq(names) {
			of := f.Lookup(name)
			part.Var(of.Value, name, of.Usage)
			part.Lookup(name).DefValue = of.DefValue // Value may have been set
		}
		fmt.Fprintf(w, "%s%s:\n", strings.Repeat("\n", min(i, 1)), title)
		part.PrintDefaults()
	}
}
