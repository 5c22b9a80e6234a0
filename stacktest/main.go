package stacktest

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/rpcbench/rpcbench"
	process "github.com/rpcbench/rpcbench/internal/child"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/fixture"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// Main is a TestMain: it parses the flags, runs the tests and benchmarks, then fails if a goroutine is left that no stack's
// Traits.Background names. When benchmarks run it first prints what their results need beside them, in benchmark format
// (golang.org/x/perf/benchfmt): as keys only what forbids comparing two files, the units, and a comment line of versions and settings.
//
// The flag -server says where the loops have their servers. "" is this process. "process" is a child for each row, which is
// this binary again and finds its stack among stacks. "stack=host:port,…" names servers that run already, as rpcbench
// serve prints it: rows of other stacks, and rows over TLS, are then skipped. The flag -processes 16 has each row of
// [BenchmarkVersus] measured in that many children of this kind.
//
// m is package testing's. If m also has a method Check() error, an error of it is printed before anything runs: for flags of your own.
func Main(m interface{ Run() int }, stacks ...rpcbench.Stack) {
	if process.Serve(os.Stdin, os.Stdout, stacks) {
		exit(0, stacks)
	}
	if os.Getenv(versus.Variable) != "" {
		orExit(1, versus.Serve(context.Background(), os.Stdin, os.Stdout, func(name string) (rpcbench.Stack, error) {
			for _, s := range stacks {
				if s.Name == name {
					return s, nil
				}
			}
			return rpcbench.Stack{}, fmt.Errorf("rpcbench: TestMain does not name the stack %q: stacktest.Main takes stacks", name)
		}))
		os.Exit(0)
	}
	addFlags()
	flag.Parse()
	if c, ok := m.(interface{ Check() error }); ok {
		orExit(2, c.Check())
	}
	if bench := flag.Lookup("test.bench"); bench != nil && bench.Value.String() != "" {
		orExit(2, placed().open(stacks))
		printHeader(os.Stdout)
	}
	exit(m.Run(), stacks)
}

func orExit(code int, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(code)
	}
}

func exit(code int, stacks []rpcbench.Stack) {
	if code == 0 {
		if err := fixture.LeftBehind(fixture.Background(stacks...)...); err != nil {
			orExit(1, fmt.Errorf("rpcbench: goroutines left behind: %w", err))
		}
	}
	os.Exit(code)
}

func printHeader(w io.Writer) {
	switch placed().where { // an address is no key: it changes from run to run
	case "":
	case childProcess:
		fmt.Fprintln(w, "server: process")
	default: // no test of this binary has seen the servers there
		fmt.Fprint(w, "server: remote\nproved: no\n")
	}
	fmt.Fprintln(w, "cores:", runtime.NumCPU())
	for _, key := range [][2]string{{"goexperiment:", environ.Experiment()}, {"build:", environ.Build()}} {
		if key[1] != "" {
			fmt.Fprintln(w, key[0], key[1])
		}
	}
	for _, of := range []struct{ assumed, units string }{ // those that package testing doesn't know
		{"better=lower", "p50-ns p95-ns p99-ns cpu-ns/op sent-B/op recv-B/op reconnects round-trips/op " +
			"drops late-p50-ns late-p95-ns late-p99-ns generator-bound server-cpu-ns/op server-B/op server-allocs/op " +
			"base-ratio base-ratio-lo base-ratio-hi aa-ratio aa-ratio-lo aa-ratio-hi noise-floor-% base-moved-% " +
			"direct-ns/op direct-ratio direct-ratio-lo direct-ratio-hi"},
		{"better=higher", "req/s achieved-req/s"},
		{"better=lower assume=exact", "size-B gzip-B"},
		{"assume=nothing", "seed cpu-share processes"},
	} {
		for unit := range strings.FieldsSeq(of.units) {
			fmt.Fprintf(w, "Unit %s %s\n", unit, of.assumed)
		}
	}
	fmt.Fprintln(w, "#", strings.Join(environ.List(), " "))
}
