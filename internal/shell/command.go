// Package shell has what the verbs of the command share: the program that they are compiled into, a command with its
// flags, exit statuses, the terminal, progress and folders.
package shell

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rpcbench/rpcbench/internal/measure/workload"
)

// Command is one of the program's. Setup registers its flags, and returns what it does with the arguments after them.
type Command struct {
	Name, Args, Does, Example string
	More                      string   // that -h says besides
	Groups                    []string // of flags: a title, and names; one group unless given
	Tidies                    bool     // up after a signal, which its context tells of; a signal ends the others
	Setup                     func(*flag.FlagSet) func(ctx context.Context, args []string) error
}

// Run does what is typed behind the command's name, or prints its manual.
func (c Command) Run(ctx context.Context, args []string, stdout io.Writer) error {
	f := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	f.SetOutput(io.Discard) // the error is printed once, by main
	do := c.Setup(f)
	switch err := parse(f, args); {
	case errors.Is(err, flag.ErrHelp):
		var flags strings.Builder
		printFlags(&flags, f, c.Groups)
		if flags.Len() > 0 {
			flags.WriteString("\n")
		}
		_, err := fmt.Fprintf(stdout, "usage: rpcbench %s [flags]%s\n\n%s.%s\n\n%sexample: %s\n", c.Name, c.Args, c.Does,
			c.More, &flags, c.Example)
		return err
	case err != nil:
		return c.wrong(f, err)
	}
	if c.Args == "" && f.NArg() > 0 {
		return Wrong("%s takes no argument, and %q is one: leave it out", c.Name, f.Arg(0))
	}
	if c.Tidies {
		var stop context.CancelFunc
		ctx, stop = untilSignal(ctx)
		defer stop()
	}
	return do(ctx, f.Args())
}

var invalid = regexp.MustCompile(`^invalid value ("(\d*).*") for flag -([\w-]+): `)

// wrong is what is wrong with the flags that were typed.
func (c Command) wrong(f *flag.FlagSet, err error) error {
	if errors.As(err, new(WrongUse)) { // of ours, which says it all
		return Wrong("%s: %w", c.Name, err)
	}
	_, unknown, _ := strings.Cut(err.Error(), "not defined: ")
	if former := Former(c.Name + " " + unknown); former != nil {
		return former
	}
	if found := invalid.FindStringSubmatch(err.Error()); found != nil {
		typed, _ := strconv.Unquote(found[1])
		of := f.Lookup(found[3]).Value
		if again := of.Set(typed); errors.As(again, new(WrongUse)) { // a value of ours, which says it all
			return Wrong("%s: %w", c.Name, again)
		}
		if of, _ := of.(flag.Getter); of != nil && found[2] == typed && typed != "" {
			if _, is := of.Get().(time.Duration); is {
				return Wrong("%s: -%s %s has no unit: write %[3]ss", c.Name, found[3], typed)
			}
		}
	}
	var names []string
	f.VisitAll(func(f *flag.Flag) { names = append(names, "-"+f.Name) })
	return Wrong("%s: %w: %srpcbench %s -h shows its flags", c.Name, err, didYouMean(unknown, names), c.Name)
}

// parse takes flags before, between and behind other arguments. What follows -- is no flag, and - is standard input. An
// empty value is none: it's what a variable of a workflow leaves that isn't set, and would stand for a default.
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
			name, value, within := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
			if f.Lookup(name) != nil && (within && value == "" || n == 2 && args[1] == "") {
				return Wrong("-%s has no value: give one, or leave it out", name)
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

// Within refuses a number that a flag may not have. 0 is all cores, and of callers and connections none.
func Within(name string, n int) error {
	least := 1
	if name == "gomaxprocs" {
		least = 0
	}
	if n < least || n > workload.Most {
		return Wrong("-%s lies between %d and %d: %d does not", name, least, workload.Most, n)
	}
	return nil
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
