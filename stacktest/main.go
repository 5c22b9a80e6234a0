package stacktest

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	process "github.com/rpcbench/rpcbench/internal/child"
	"github.com/rpcbench/rpcbench/internal/environ"
)

// Main is a TestMain: it runs the tests and benchmarks, then fails if a goroutine is left that no stack's Traits.Background
// names. When benchmarks run it first
// prints what their results need beside them, in benchmark format (golang.org/x/perf/benchfmt): as keys only what forbids
// comparing two files, the units, and a comment line with commit, versions and settings, which may well differ between
// the files one compares.
//
// The flag -server says where the loops have their servers. "" is this process. "process" is a child for each row, which is
// this binary again and finds its stack among stacks. "stack=host:port,…" names servers that run already, as rpcbench
// serve prints it: rows of other stacks, and rows over TLS, are then skipped.
func Main(m *testing.M, stacks ...rpcbench.Stack) {
	if process.Serve(os.Stdin, os.Stdout, stacks) {
		exit(0, background(stacks...)...)
	}
	Flags()
	flag.Parse()
	if bench := flag.Lookup("test.bench"); bench != nil && bench.Value.String() != "" {
		if err := placed().open(stacks); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		fmt.Print(placed().keys())
		printHeader(os.Stdout)
	}
	exit(m.Run(), background(stacks...)...)
}

func exit(code int, options ...goleak.Option) {
	if code == 0 {
		if err := leftBehind(options...); err != nil {
			fmt.Fprintln(os.Stderr, "rpcbench: goroutines left behind:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// background are the goroutines that the stacks' libraries are declared to keep.
func background(stacks ...rpcbench.Stack) (options []goleak.Option) {
	for _, s := range stacks {
		for _, function := range s.Traits.Background {
			options = append(options, goleak.IgnoreAnyFunction(function))
		}
	}
	return options
}

// leftBehind gives goroutines three seconds to end: net/http keeps a connection for half a second after it refused a body
// that was too large, and goleak by itself waits for less.
func leftBehind(options ...goleak.Option) error {
	err := goleak.Find(options...)
	for start := time.Now(); err != nil && time.Since(start) < 3*time.Second; {
		err = goleak.Find(options...)
	}
	return err
}

// units of the figures that the testing package doesn't know.
func units() []string {
	return []string{
		"p50-ns", "p95-ns", "p99-ns", "cpu-ns/op", "sent-B/op", "recv-B/op", "reconnects",
		"round-trips/op",
		"drops", "late-p50-ns", "late-p95-ns", "late-p99-ns", "generator-bound",
		"server-cpu-ns/op", "server-B/op", "server-allocs/op",
		"base-ratio", "base-ratio-lo", "base-ratio-hi", "aa-ratio", "aa-ratio-lo", "aa-ratio-hi", "noise-floor-%",
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
	fmt.Fprintln(w, "Unit seed assume=nothing")
	fmt.Fprintln(w, "Unit cpu-share assume=nothing")
	fmt.Fprintln(w, "#", strings.Join(environ.List(), " "))
}
