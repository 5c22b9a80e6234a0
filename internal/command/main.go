// Package command is the command rpcbench, for package cli and for cmd/rpcbench.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/count"
	"github.com/rpcbench/rpcbench/internal/explain"
	"github.com/rpcbench/rpcbench/internal/explain/bound"
	"github.com/rpcbench/rpcbench/internal/explain/calls"
	"github.com/rpcbench/rpcbench/internal/idle"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/network"
	"github.com/rpcbench/rpcbench/internal/own"
	"github.com/rpcbench/rpcbench/internal/run"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// Main is cli.Main of a program that has a Make, or nil.
func Main(make own.Make, stacks []rpcbench.Stack, workloads ...rpcbench.Workload) {
	p := programOf(make, stacks, workloads...)
	err, done := p.Check(os.Args[1:]), false
	if err == nil {
		done, err = child.Serve(os.Stdin, os.Stdout, child.List(stacks), jobs())
	}
	if err == nil && !done {
		err = p.run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	}
	who := ourName
	if os.Getenv(child.Variable) != "" && len(os.Args) == 1 { // a child, whose parent says who
		who = ""
	}
	if status := told(os.Stderr, who, err); status != 0 {
		os.Exit(status)
	}
}

// ourName begins each line on standard error.
const ourName = "rpcbench: "

// told prints an error, but for one that has been printed, and returns the exit status.
func told(stderr io.Writer, who string, err error) int {
	var its shell.ExitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &its):
		return int(its)
	}
	fmt.Fprintln(stderr, who+shell.OneLine(err))
	switch {
	case errors.As(err, new(shell.WrongUse)):
		return 2
	case errors.As(err, new(shell.Above)):
		return 3
	case errors.As(err, new(shell.NotDecided)):
		return 4
	}
	return 1
}

// programOf is this program, for the stacks and workloads.
func programOf(make own.Make, stacks []rpcbench.Stack, workloads ...rpcbench.Workload) program {
	p := program{shell.Program{Stacks: stacks, Own: workloads}, make}
	if info, ok := debug.ReadBuildInfo(); ok {
		p.Main = info.Path
	}
	return p
}

// jobs are what this program does as a child of itself or of another build.
func jobs() map[string]child.Job {
	return map[string]child.Job{child.Serves: child.Serving(), child.Measures: versus.Measuring(),
		child.Routes: network.Routing(), child.Networks: network.Trying(),
		child.Counts: versus.Counting(), child.Profiles: calls.Profiling(), child.Holds: idle.Holding()}
}

// program is one that may make modules.
type program struct {
	shell.Program
	make own.Make
}

// commands are those that rpcbench -h lists, in their order.
func (p program) commands(stdout, stderr io.Writer) []shell.Command {
	return []shell.Command{run.Command(p.Program, p.make, stdout, stderr),
		count.Command(p.Program, p.make, stdout, stderr), idle.Command(p.Program, stdout, stderr),
		own.Command(p.make, stdout, stderr), reportCommand(stdout, stderr), explain.Command(p.Program, stdout, stderr),
		bound.Command(p.Program, stdout), serveCommand(p, stdout), listCommand(p, stdout), versionCommand(stdout)}
}

func (p program) run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	commands := p.commands(stdout, stderr)
	if len(args) == 0 {
		args = []string{"help"}
	}
	helps := slices.Contains([]string{"help", "-h", "--h", "-help", "--help"}, args[0])
	switch {
	case helps && len(args) > 1:
		args = []string{args[1], "-h"}
	case slices.Contains([]string{"-version", "--version"}, args[0]):
		args = append([]string{"version"}, args[1:]...)
	case helps:
		help := "Rpcbench compares ways to serve and call an API, and says how far to trust it.\n\n"
		for _, c := range commands {
			if c.Name != "init" || p.make != nil {
				help += fmt.Sprintf("  rpcbench %-10s %s\n", c.Name, c.Does)
			}
		}
		_, err := io.WriteString(stdout, help+"\nNext: rpcbench run, or rpcbench <command> -h for its flags.\n")
		return err
	}
	var names []string
	for _, c := range commands {
		names = append(names, c.Name)
	}
	i := slices.Index(names, args[0])
	switch named := func(s rpcbench.Stack) bool { return s.Name == args[0] }; {
	case i < 0 && strings.HasPrefix(args[0], "-"):
		return shell.Wrong("%s stands before a command: rpcbench run has flags, and rpcbench -h lists the commands", args[0])
	case i < 0 && slices.ContainsFunc(p.Stacks, named):
		return shell.Wrong("%s is a stack, and no command: rpcbench run %[1]s compares it", args[0])
	case i < 0:
		return shell.Unknown("there is no command %q: %srpcbench -h lists them", args[0], names)
	}
	return commands[i].Run(ctx, args[1:], stdout)
}
