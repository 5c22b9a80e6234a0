package stacktest

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/suite/leaks"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// Main runs the tests and benchmarks of a package; call it from TestMain. It fails if a goroutine is left that no stack
// names in Traits.Background.
//
// No test or benchmark needs Main. It warns after the rows if other programs were busy meanwhile, and adds the flag
// -long, with which [Conformance] holds a reply back for five seconds in place of half a second.
//
// m is the *testing.M of TestMain.
func Main(m interface{ Run() int }, stacks ...rpcbench.Stack) {
	flag.BoolVar(&current.long,
		"long", false, "hold a reply back for five seconds in the suite, in place of half a second")
	flag.Parse()
	current.reader, _ = m.(reader)
	if bench := flag.Lookup("test.bench"); bench == nil || bench.Value.String() == "" {
		exit(m.Run(), stacks)
	}
	current.announce(nil, nil) // also above rows of other benchmarks
	share := current.others()
	code := m.Run()
	if used := share(); used > verdict.BusyMachine {
		remark("warning: other programs used %.0f%% of the machine meanwhile", 100*used)
	}
	exit(code, stacks)
}

func exit(code int, stacks []rpcbench.Stack) {
	if code == 0 {
		if err := leaks.LeftBehind(leaks.Grace, leaks.Background(stacks...)...); err != nil {
			fmt.Fprintln(os.Stderr, "rpcbench: goroutines left behind, which no Traits.Background names:", err)
			code = 1
		}
	}
	os.Exit(code)
}

func printHeader(w io.Writer) {
	fmt.Fprintln(w, "cores:", environ.Cores())
	if experiment := environ.Experiment(); experiment != "" {
		fmt.Fprintln(w, "goexperiment:", experiment)
	}
	if build := environ.Build(); build != "" {
		fmt.Fprintln(w, "build:", build)
	}
	for _, setting := range environ.Machine() {
		fmt.Fprintln(w, "#", setting)
	}
}

// announce prints what readers of rows need, in the format of golang.org/x/perf/benchfmt, each line once in a process:
// keys for whatever forbids comparing two files, comments of the machine, of versions and of a stack's libraries, and
// what benchstat is to assume of units that package testing does not define. A benchmark's first call ends before
// package testing prints its name, so lines that are printed in it stand above the row.
func (p *settings) announce(packages, units []string) {
	if p.once("header") {
		printHeader(os.Stdout)
	}
	for _, library := range environ.Libraries(packages) {
		if p.once(library) {
			fmt.Println("# library=" + library)
		}
	}
	for _, unit := range units {
		if p.once(unit) {
			fmt.Println("Unit", unit)
		}
	}
}

// once tells whether something is noted for the first time.
func (p *settings) once(what string) bool {
	before := p.seen[what]
	p.seen[what] = true
	return !before
}

// packages are those whose versions a stack's rows depend on. This one is among them, in a module of somebody's own.
func packages(s rpcbench.Stack) []string {
	return slices.Concat([]string{"github.com/rpcbench/rpcbench", s.Traits.Codec}, s.Traits.ClientLibraries,
		s.Traits.ServerLibraries)
}

// remark tells on stderr, in a line that is a comment of benchmark format, what the rows don't have.
func remark(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "# rpcbench: "+format+"\n", args...)
}

// current has the settings of this process, whose flags and GOMAXPROCS it reads and sets. A benchmark of package
// testing has no other place for what has to outlast it, and benchmarks run one after the other.
var current = settings{seen: map[string]bool{}, first: map[string]rpcbench.Stack{}, others: cpu.Others}

// settings holds the flags of Main, and what rows have noted.
type settings struct {
	long   bool                          // value of -long
	reader reader                        // of the rows; or nil
	others func() (since func() float64) // what other programs use of the machine
	seen   map[string]bool               // names of the rows that have begun, and what was printed
	first  map[string]rpcbench.Stack     // of each method of one's own that has rows
}

// reader is a *testing.M of Main that chooses the figures of rows, as that of this module's root does, and reads them.
// Without one rows have all figures.
type reader interface {
	Wants(unit string) bool
	// Row is told a row's figures when it ends. Package testing makes a row of several callers again with more ops, and
	// prints the last one.
	Row(name string, figures map[string]float64)
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
