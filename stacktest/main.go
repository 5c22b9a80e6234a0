package stacktest

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	process "github.com/rpcbench/rpcbench/internal/child"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/fixture"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// Main is a TestMain: it parses the flags, runs the tests and benchmarks, then fails if a goroutine is left that no stack's
// Traits.Background names. When benchmarks run it first prints what their results need beside them, in benchmark format
// (golang.org/x/perf/benchfmt): as keys only what forbids comparing two files, the units, and a comment line with commit, versions and
// settings, which may well differ between the files one compares.
//
// The flag -server says where the loops have their servers. "" is this process. "process" is a child for each row, which is
// this binary again and finds its stack among stacks. "stack=host:port,…" names servers that run already, as rpcbench
// serve prints it: rows of other stacks, and rows over TLS, are then skipped. The flag -processes 16 has each row of
// [BenchmarkVersus] measured in that many children of this kind.
//
// m is package testing's. If m also has a method Check() error, an error of it is printed before anything runs: for flags of your own.
func Main(m interface{ Run() int }, stacks ...rpcbench.Stack) {
	if process.Serve(os.Stdin, os.Stdout, stacks) {
		exit(0, fixture.Background(stacks...)...)
	}
	if os.Getenv(versus.Variable) != "" {
		orExit(1, versus.Serve(context.Background(), os.Stdin, os.Stdout, known(stacks)))
		os.Exit(0)
	}
	serverFlags()
	n := flag.Int(processesFlag, 0, "in how many processes each row of BenchmarkVersus is measured; 0 is in this one")
	flag.Parse()
	if c, ok := m.(interface{ Check() error }); ok {
		orExit(2, c.Check())
	}
	orExit(2, checkProcesses(*n, stacks))
	if bench := flag.Lookup("test.bench"); bench != nil && bench.Value.String() != "" {
		orExit(2, placed().open(stacks))
		fmt.Print(placed().keys())
		printHeader(os.Stdout)
	}
	exit(m.Run(), fixture.Background(stacks...)...)
}

// known finds the stack that a child is to measure.
func known(stacks []rpcbench.Stack) func(string) (rpcbench.Stack, error) {
	return func(name string) (rpcbench.Stack, error) {
		for _, s := range stacks {
			if s.Name == name {
				return s, nil
			}
		}
		return rpcbench.Stack{}, fmt.Errorf("rpcbench: TestMain does not name the stack %q: stacktest.Main takes stacks", name)
	}
}

func orExit(code int, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(code)
	}
}

func exit(code int, options ...goleak.Option) {
	if code == 0 {
		if err := fixture.LeftBehind(options...); err != nil {
			fmt.Fprintln(os.Stderr, "rpcbench: goroutines left behind:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// units of the figures that the testing package doesn't know.
func units() []string {
	return []string{
		"p50-ns", "p95-ns", "p99-ns", "cpu-ns/op", "sent-B/op", "recv-B/op", "reconnects",
		"round-trips/op",
		"drops", "late-p50-ns", "late-p95-ns", "late-p99-ns", "generator-bound",
		"server-cpu-ns/op", "server-B/op", "server-allocs/op",
		"base-ratio", "base-ratio-lo", "base-ratio-hi", "aa-ratio", "aa-ratio-lo", "aa-ratio-hi", "noise-floor-%", "base-moved-%",
		"direct-ns/op", "direct-ratio", "direct-ratio-lo", "direct-ratio-hi",
	}
}

func printHeader(w io.Writer) {
	fmt.Fprintln(w, "cores:", runtime.NumCPU())
	if e := environ.Experiment(); e != "" {
		fmt.Fprintln(w, "goexperiment:", e)
	}
	if build := environ.Build(); build != "" {
		fmt.Fprintln(w, "build:", build)
	}
	for _, u := range units() {
		fmt.Fprintf(w, "Unit %s better=lower\n", u)
	}
	for _, u := range []string{"req/s", "achieved-req/s"} {
		fmt.Fprintf(w, "Unit %s better=higher\n", u)
	}
	for _, u := range []string{"size-B", "gzip-B"} {
		fmt.Fprintf(w, "Unit %s better=lower assume=exact\n", u)
	}
	for _, u := range []string{"seed", "cpu-share", "processes"} {
		fmt.Fprintf(w, "Unit %s assume=nothing\n", u)
	}
	fmt.Fprintln(w, "#", strings.Join(environ.List(), " "))
}
