package stacktest

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/cpu"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/fixture"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// Main runs the tests and benchmarks of a package; call it from TestMain. It then fails if a goroutine is left that
// Traits.Background of no stack names.
//
// Main adds what results need, in the format of golang.org/x/perf/benchfmt. Keys for whatever forbids comparing two
// files, and a comment line of versions, precede the rows. The units follow the rows, and a warning if other
// programs were busy.
//
// Main has a flag. -long lets [Conformance] hold a reply back for five seconds, in place of half a second.
//
// m is the *testing.M of TestMain.
func Main(m interface{ Run() int }, stacks ...rpcbench.Stack) {
	if done, err := versus.ServeChild(os.Stdin, os.Stdout, stacks); done {
		orExit(1, err)
		exit(0, stacks)
	}
	flag.BoolVar(&current.long,
		"long", false, "hold a reply back for five seconds in the suite, in place of half a second")
	flag.Parse()
	if bench := flag.Lookup("test.bench"); bench == nil || bench.Value.String() == "" {
		exit(m.Run(), stacks)
	}
	printHeader(os.Stdout)
	share := current.others()
	code := m.Run()
	current.printFooter(os.Stdout)
	if used := share(); used > versus.BusyMachine {
		remark("warning: other programs used %.0f %% of the machine meanwhile", 100*used)
	}
	exit(code, stacks)
}

func orExit(code int, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(code)
	}
}

func exit(code int, stacks []rpcbench.Stack) {
	if code == 0 {
		if err := fixture.LeftBehind(fixture.Grace, fixture.Background(stacks...)...); err != nil {
			orExit(1, fmt.Errorf("rpcbench: goroutines left behind, which no Traits.Background names: %w", err))
		}
	}
	os.Exit(code)
}

func printHeader(w io.Writer) {
	fmt.Fprintln(w, "cores:", runtime.NumCPU())
	if experiment := environ.Experiment(); experiment != "" {
		fmt.Fprintln(w, "goexperiment:", experiment)
	}
	if build := environ.Build(); build != "" {
		fmt.Fprintln(w, "build:", build)
	}
	fmt.Fprintln(w, "#", strings.Join(environ.Machine(), " "))
}

// printFooter prints the libraries of the stacks that ran, this one among them in a module of somebody's own. It prints
// a Unit line for each unit that a row has and package testing does not define. benchstat reads its files to the end
// before it asks for a unit, so the rows may come first.
func (p *settings) printFooter(w io.Writer) {
	if all := environ.Libraries(append(p.packages, "github.com/rpcbench/rpcbench")); len(all) > 0 {
		fmt.Fprintln(w, "# libraries:", strings.Join(all, " "))
	}
	for _, of := range []struct{ assumed, units string }{
		{"better=lower", "p50-ns p95-ns p99-ns cpu-ns/op sent-B/op recv-B/op reconnects round-trips/op"},
		{"better=higher", "req/s"},
		{"assume=nothing", "cpu-share in-flight"},
	} {
		for unit := range strings.FieldsSeq(of.units) {
			if p.seen[unit] {
				fmt.Fprintf(w, "Unit %s %s\n", unit, of.assumed)
			}
		}
	}
}

// remark tells on stderr, in a line that is a comment of benchmark format, what the rows don't have.
func remark(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "# rpcbench: "+format+"\n", args...)
}

// metric reports a figure of a row.
func metric(b *testing.B, value float64, unit string) {
	current.seen[unit] = true
	b.ReportMetric(value, unit)
}

// current has the settings of this process, whose flags and GOMAXPROCS it reads and sets. A benchmark of package
// testing has no other place for what has to outlast it, and benchmarks run one after the other.
var current = settings{seen: map[string]bool{}, others: cpu.Others}

// settings holds the flags of Main, and what rows have noted.
type settings struct {
	long     bool                          // value of -long
	others   func() (since func() float64) // what other programs use of the machine
	seen     map[string]bool               // names of the rows that have begun, their units, and why some were skipped
	packages []string                      // of libraries of the stacks that ran
}

// Procs sets GOMAXPROCS to the number that the row's label will name. Every benchmark of this package calls Procs, and
// so does Start. Call Procs from a benchmark of your own that uses b.Loop without Start.
//
// Package testing sets GOMAXPROCS for -cpu only after the first call of a benchmark, and a b.Loop benchmark does all
// its work in that call (golang/go#49980). Without Procs, the first row of -cpu 1,2 would run with what the previous
// row had left. In later calls Procs does nothing. No TestMain is needed.
func Procs(b *testing.B) {
	b.Helper()
	first, _, _ := strings.Cut(flag.Lookup("test.cpu").Value.String(), ",")
	procs, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || current.seen[b.Name()] {
		return // one GOMAXPROCS for all rows, or set by package testing
	}
	current.seen[b.Name()] = true
	runtime.GOMAXPROCS(procs)
}
