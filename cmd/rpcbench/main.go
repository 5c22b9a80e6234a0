// Rpcbench compares stacks, and says how far its comparisons are to be trusted.
//
//	rpcbench run -out folder [-quick] [-workloads name,...] [-base httpjson] [-seed n] [stack[@build]...]
//
// answers "gRPC or JSON?" for the workloads that decide: small, mixed, structured and binary messages, one caller and
// fifty, streams, new connections, headers, a slow link, two processes. Each stack, grpcprotobuf unless named, is
// compared with the base at each workload, as versus does, in eight processes over eight layouts. A stack takes
// about ten minutes. -quick gives a first answer: six workloads, four processes of this build. The folder then has
// report.html, report.md, answer.svg, summary.json, and bench.txt, which benchstat reads and which has a line for each
// process. An interrupted run keeps what was measured.
//
//	rpcbench report [-out folder] folder|file
//
// makes report.html, report.md and answer.svg of a folder of run, or of a file with the output of go test -bench
// Versus. No file is overwritten.
//
//	rpcbench versus [-base httpjson] [-time 20s] [-processes 16] [-layouts 8] [-gomaxprocs 1] [-margin 2] [-seed n] [-o file] [stack[@build]...]
//
// compares each stack, all main ones unless named, with the base: short slices of both in turn, in several processes
// one after the other. It prints a line per stack with the ratio of its time to the base's, the interval, and the
// verdict that the interval gives: faster, slower, equal (within the margin, in percent) or undecided. A sentence
// says the difference per call. The base takes part twice: the interval of the base against itself is the noise
// floor, and no difference inside it is reported. -gomaxprocs 0 is the default of Go. -seed decides the order of the
// slices. -o keeps what each process measured.
//
// Where functions lie in a program moves a ratio by a percent. So the processes are spread over -layouts links of the
// source in the working directory, and the interval is one of that source. With -layouts 0, or away from a clone of
// rpcbench or from the go command, it is one of this program.
//
// A build is a git revision (HEAD~3), a Go release (go1.26.8), a version of a module (google.golang.org/grpc@v1.80.0)
// or KEY=VALUE in the environment of the build and of its processes (GOEXPERIMENT=nojsonv2). A stack without a build
// is measured as the source lies. If a stack names a build and -base is absent, the first stack is the base. Arms of
// different builds run in processes of their own, which take turns. The programs are linked in a temporary folder
// first, and are deleted at the end.
//
//	rpcbench calibrate -out folder [-only experiment,...] [-read]
//
// measures on this machine how often such a verdict is false, how small a difference is found and how often an interval
// holds the truth. It takes about two hours with nothing else running, goes on where it was interrupted, and leaves raw
// records and figures in the folder. With -read it only makes the figures of the records that are there.
//
//	rpcbench serve [-addr 127.0.0.1] [-port 0] [stack...]
//
// serves each stack, all unless named, on a port of its own. TERM or an interrupt ends it at once, with calls under
// way. The first line that it prints is what go test takes: go test -bench=. -server stack=host:port,… The other lines
// are a command for each stack that creates a user with curl or grpcurl. Servers of gRPC stacks also answer gRPC's
// reflection service. There is no TLS and no password: give an address other than the default only on a network that
// you trust. docs/wire.md says what the servers answer.
//
//	rpcbench list
//	rpcbench version
//
// list names all stacks, codecs and workloads. version prints the commit, the machine and the versions of libraries.
//
// Bad input is one line on standard error. The exit status is 2 for a wrong command line, 1 for what fails later;
// what was measured before is printed. Progress shows on a terminal only.
//
// docs/method.md explains the method. Examples:
//
//	rpcbench versus grpcprotobuf
//	rpcbench versus -base grpcprotobuf -gomaxprocs 0 grpcprotobuf.tuned grpcservehttp
//	rpcbench versus httpjson@go1.26.8 httpjson@go1.27.4
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/rpcbench/rpcbench/internal/child"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/stacks"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	var err error
	if child.Serve(os.Stdin, os.Stdout, stacks.All()) {
		return
	} else if os.Getenv(versus.Variable) != "" {
		err = versus.Serve(ctx, os.Stdin, os.Stdout, find)
	} else {
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	switch {
	case errors.As(err, new(wrongUse)):
		os.Exit(2)
	case err != nil:
		os.Exit(1)
	}
}

// self is this program, as one whose children measure.
func self() versus.Program {
	path, _ := os.Executable() // without it, starting a child fails
	return versus.Program{Path: path}
}

// wrongUse is the error of a command line that can't be carried out.
type wrongUse struct{ error }

func wrong(format string, args ...any) error {
	return wrongUse{fmt.Errorf("rpcbench: "+format, args...)}
}

// command is one of the program's. setup registers its flags, and returns what it does with the arguments after them.
type command struct {
	name, args, does, example string
	setup                     func(*flag.FlagSet) func(ctx context.Context, args []string) error
}

// show tells what is being done, and how much is left of how long it all takes.
type show = func(what string, left, all time.Duration)

// progress shows on a terminal what is being done and how long the rest will take, and nothing elsewhere. It clears
// the line when nothing is left.
func progress(w io.Writer) show {
	if file, ok := w.(*os.File); !ok || !isTerminal(file) {
		w = io.Discard
	}
	return func(what string, left, all time.Duration) {
		fmt.Fprint(w, "\r\x1b[K")
		if left > 0 {
			fmt.Fprintf(w, "%3d %%, %v left: %s", 100*(all-left)/all, left.Round(time.Second), what)
		}
	}
}

func isTerminal(file *os.File) bool { return term.IsTerminal(int(file.Fd())) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	commands := []command{runCommand(stdout, stderr), reportCommand(stdout), versusCommand(stdout, stderr), explainCommand(stdout, stderr), serveCommand(stdout),
		calibrateCommand(stdout, stderr), listCommand(stdout), versionCommand(stdout)}
	if len(args) == 0 || slices.Contains([]string{"help", "-h", "--h", "-help", "--help"}, args[0]) {
		fmt.Fprintf(stdout, "Rpcbench compares ways to serve and call an API, and says how far to trust it.\n\n")
		for _, c := range commands {
			fmt.Fprintf(stdout, "  rpcbench %-10s %s\n", c.name, c.does)
		}
		fmt.Fprintf(stdout, "\nrpcbench <command> -h shows its flags.\n")
		return nil
	}
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == args[0] })
	if i < 0 {
		return wrong("no command %q: rpcbench -h lists them", args[0])
	}
	c, f := commands[i], flag.NewFlagSet(args[0], flag.ContinueOnError)
	f.SetOutput(io.Discard) // the error is printed once, by main
	do := c.setup(f)
	switch err := f.Parse(args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(stdout, "usage: rpcbench %s [flags]%s\n\n%s.\n\n", c.name, c.args, c.does)
		f.SetOutput(stdout)
		f.PrintDefaults()
		fmt.Fprintf(stdout, "\nexample: %s\n", c.example)
		return nil
	case err != nil:
		return wrong("%s: %w: rpcbench %s -h shows its flags", c.name, err, c.name)
	}
	for _, arg := range f.Args() {
		switch {
		case strings.HasPrefix(arg, "-"):
			return wrong("%s: %s comes after %s: flags come first", c.name, arg, f.Arg(0))
		case c.args == "":
			return wrong("%s: it takes no argument, and %q is one", c.name, arg)
		}
	}
	return do(ctx, f.Args())
}
