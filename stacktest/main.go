package stacktest

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/fixture"
	"github.com/rpcbench/rpcbench/internal/remote"
)

// Main is a TestMain: it runs the tests and benchmarks, then fails if a goroutine is left that no stack's Traits.Background
// names. When benchmarks run it first
// prints what their results need beside them, in benchmark format (golang.org/x/perf/benchfmt): as keys only what forbids
// comparing two files, the units, and a comment line with commit, versions and settings, which may well differ between
// the files one compares.
//
// The flag -server says where the loops have their servers: "" in this process; process, in a child for each fixture,
// which is this binary again and finds its stack among stacks; or, at host:port, on the machine where rpcbench serve
// prints that address.
func Main(m *testing.M, stacks ...rpcbench.Stack) {
	if os.Getenv(serverProcess) != "" {
		remote.Serve(os.Stdin, os.Stdout, finder(stacks))
		exit(0)
	}
	Flags()
	flag.Parse()
	if err := placed().open(os.Stderr, stacks); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if bench := flag.Lookup("test.bench"); bench != nil && bench.Value.String() != "" {
		if err := placed().reach(stacks); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		fmt.Print(placed().keys())
		printHeader(os.Stdout)
	}
	exit(m.Run(), fixture.Background(stacks...)...)
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
