package stacktest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	process "github.com/rpcbench/rpcbench/internal/child"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/fixture"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// Main is a TestMain: it parses the flags, runs the tests and benchmarks, then fails if a goroutine is left that no
// stack's Traits.Background names. Before benchmarks it prints what their results need beside them, in benchmark format
// (golang.org/x/perf/benchfmt): keys for what forbids comparing two files, and a comment line of versions. After them it
// prints their units. A flag that no row obeyed is named on stderr.
//
// The flag -server says where the loops have their servers. "" is this process. "process" is a child for each row,
// which is this binary again and finds its stack among stacks. "stack=host:port,…" names servers that run already, as
// rpcbench serve prints it: rows of other stacks, and rows over TLS, are then skipped. The flag -processes 16 has each
// row of [BenchmarkVersus] measured in that many children.
//
// m is package testing's. If m also has a method Check() error, an error of it is printed before anything runs.
func Main(m interface{ Run() int }, stacks ...rpcbench.Stack) {
	if process.Serve(os.Stdin, os.Stdout, stacks) {
		exit(0, stacks)
	}
	if os.Getenv(versus.Variable) != "" {
		find := func(name string) (rpcbench.Stack, error) {
			if i := named(stacks, name); i >= 0 {
				return stacks[i], nil
			}
			const unknown = "rpcbench: TestMain does not name the stack %q: stacktest.Main takes stacks"
			return rpcbench.Stack{}, fmt.Errorf(unknown, name)
		}
		orExit(1, versus.Serve(context.Background(), os.Stdin, os.Stdout, find))
		os.Exit(0)
	}
	p := &placement{seen: map[string]bool{}}
	flag.Var(p, serverFlag, "where rows have their servers: process, or what rpcbench serve prints; here if empty")
	flag.IntVar(&p.processes, processesFlag, 0, "in how many processes BenchmarkVersus measures a row; 0 is in this one")
	flag.Parse()
	if c, ok := m.(interface{ Check() error }); ok {
		orExit(2, c.Check())
	}
	if bench := flag.Lookup("test.bench"); bench == nil || bench.Value.String() == "" {
		exit(m.Run(), stacks)
	}
	orExit(2, p.open(stacks))
	p.printHeader(os.Stdout)
	code := m.Run()
	p.printUnits(os.Stdout)
	flag.Visit(func(f *flag.Flag) {
		if (f.Name == serverFlag || f.Name == processesFlag) && !p.seen[f.Name] {
			fmt.Fprintf(os.Stderr, "# rpcbench: -%s has no effect on the rows of this run\n", f.Name)
		}
	})
	exit(code, stacks)
}

// named is the place of the stack of a name, or negative.
func named(stacks []rpcbench.Stack, name string) int {
	return slices.IndexFunc(stacks, func(s rpcbench.Stack) bool { return s.Name == name })
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

func (p *placement) printHeader(w io.Writer) {
	switch p.where { // an address is no key: it changes from run to run
	case "":
	case childProcess:
		fmt.Fprintln(w, "server: process")
	default: // no test of this binary has seen the servers there
		fmt.Fprint(w, "server: remote\nproved: no\n")
	}
	fmt.Fprintln(w, "cores:", runtime.NumCPU())
	if experiment := environ.Experiment(); experiment != "" {
		fmt.Fprintln(w, "goexperiment:", experiment)
	}
	if build := environ.Build(); build != "" {
		fmt.Fprintln(w, "build:", build)
	}
	fmt.Fprintln(w, "#", strings.Join(environ.List(), " "))
}

// printUnits describes the units of the rows that were printed, where package testing doesn't know them. benchstat
// reads its files to the end before it asks for a unit, so the rows may come first.
func (p *placement) printUnits(w io.Writer) {
	for _, of := range []struct{ assumed, units string }{
		{"better=lower", "p50-ns p95-ns p99-ns cpu-ns/op sent-B/op recv-B/op reconnects round-trips/op " +
			"drops late-p50-ns late-p95-ns late-p99-ns generator-bound server-cpu-ns/op server-B/op server-allocs/op " +
			"base-ratio base-ratio-lo base-ratio-hi aa-ratio aa-ratio-lo aa-ratio-hi noise-floor-% base-moved-%"},
		{"better=higher", "req/s achieved-req/s"},
		{"better=lower assume=exact", "size-B gzip-B"},
		{"assume=nothing", "seed cpu-share processes"},
	} {
		for unit := range strings.FieldsSeq(of.units) {
			if p.seen[unit] {
				fmt.Fprintf(w, "Unit %s %s\n", unit, of.assumed)
			}
		}
	}
}

// note remembers a name until the run ends, if there is a Main.
func (p *placement) note(name string) {
	if p.seen != nil {
		p.seen[name] = true
	}
}

// metric reports a figure of a row.
func metric(b *testing.B, value float64, unit string) {
	placed().note(unit)
	b.ReportMetric(value, unit)
}

const (
	serverFlag    = "server"
	childProcess  = "process" // its value for a child of this process
	processesFlag = "processes"

	acceptLimit = 2 * time.Second // for a server to accept what its client has opened
)

// placement is the value of -server, and what else Main keeps for the benchmarks.
type placement struct {
	where     string
	elsewhere map[string]string // host:port of servers that are no children, by stack
	child     *process.Server   // of the row that runs
	processes int               // children in which a row of BenchmarkVersus is measured; 0 is this process
	seen      map[string]bool   // names of the rows that have begun, their units, and the flags that they obey
}

func (p *placement) String() string     { return p.where }
func (p *placement) Set(v string) error { p.where = v; return nil }

// placed is what the flags say; without Main, nothing.
func placed() *placement {
	if f := flag.Lookup(serverFlag); f != nil {
		if p, ok := f.Value.(*placement); ok {
			return p
		}
	}
	return new(placement)
}

// open checks the flags. Its error is one line.
func (p *placement) open(stacks []rpcbench.Stack) error {
	switch {
	case p.processes != 0 && p.processes < versus.Fewest:
		return fmt.Errorf("rpcbench: -processes %d: too few for an interval: %d or more", p.processes, versus.Fewest)
	case len(stacks) == 0 && (p.processes > 0 || p.where != ""):
		return errors.New("rpcbench: TestMain does not name the stacks that -server and -processes need: " +
			"stacktest.Main(m, mystack.New())")
	case p.where == "" || p.where == childProcess:
		return nil
	}
	p.elsewhere = map[string]string{}
	for item := range strings.SplitSeq(p.where, ",") {
		name, addr, _ := strings.Cut(item, "=")
		if named(stacks, name) < 0 || addr == "" || p.elsewhere[name] != "" {
			return fmt.Errorf("rpcbench: -server: %q is neither process nor stack=host:port, "+
				"as rpcbench serve prints it, each stack once", item)
		}
		p.elsewhere[name] = addr
	}
	if n := len(stacks) - len(p.elsewhere); n > 0 {
		fmt.Fprintf(os.Stderr, "# rpcbench: -server names no server of %d stacks: their rows are skipped\n", n)
	}
	return nil
}

// config is the config of a row of stack, with the server where the flag says. It starts a child for the row, or skips
// the row if the flag names no server for it. Tests have their servers in this process whatever the flag says.
func (p *placement) config(b *testing.B, stack rpcbench.Stack, config rpcbench.Config) rpcbench.Config {
	b.Helper()
	p.note(serverFlag)
	switch name := process.ServerOf(stack.Name); {
	case p.where == "" || config.Server != "":
	case p.where == childProcess:
		s, err := process.Start(b.Context(), name, config.TLS, os.Stderr)
		orFail(b, stack.Name, err)
		b.Cleanup(func() {
			p.child = nil
			if err := s.Close(); err != nil {
				b.Errorf("rpcbench: %s: close: %v", stack.Name, err)
			}
		})
		p.child = s
		config.Server, config.Certificate = s.Addr, s.Certificate
	case p.elsewhere[name] == "":
		b.Skipf("rpcbench: -server names no server of %s", name)
	case config.TLS:
		b.Skip("rpcbench: the servers that -server names are in clear: run rows over TLS with -server process")
	default:
		config.Server = p.elsewhere[name]
	}
	return config
}

// watchServer, called right before the timed loop, returns what reports what the child of the row used for n ops:
// nothing, where the server is no child.
func watchServer(b *testing.B, f *rpcbench.Fixture) (report func(n uint64)) {
	b.Helper()
	child := placed().child
	if child == nil {
		return func(uint64) {}
	}
	ask := func(afterCollection bool) process.Report {
		began := time.Now()
		orFail(b, f.Stack.Name, child.Ask(afterCollection))
		for child.Accepted != f.Accepted() { // one side may know of a connection a little later than the other
			if time.Since(began) > acceptLimit {
				b.Fatalf("rpcbench: %s: the server's process accepted %d connections, its client opened %d",
					f.Stack.Name, child.Accepted, f.Accepted())
			}
			orFail(b, f.Stack.Name, child.Ask(afterCollection))
		}
		return child.Report
	}
	before := ask(true) // what starting and warming left there is not the loop's either
	return func(n uint64) {
		after := ask(false)
		if after.CPU > 0 {
			metric(b, float64(after.CPU-before.CPU)/float64(n), "server-cpu-ns/op")
		}
		// Whole numbers, as B/op and allocs/op are: what the questions allocate must not show.
		metric(b, float64((after.Bytes-before.Bytes)/n), "server-B/op")
		metric(b, float64((after.Allocs-before.Allocs)/n), "server-allocs/op")
	}
}

// Procs gives a row the GOMAXPROCS that its label will name. Every row of this package calls it; so does a benchmark of
// your own that uses b.Loop.
//
// Package testing calls a benchmark for the first time before it sets GOMAXPROCS for -cpu, and a b.Loop benchmark does
// all its work in that call (golang/go#49980). So with -cpu 1,2 the first row labelled as one of 1 P ran with what the
// row before it had left. Package testing sets GOMAXPROCS right before every later call, which Procs leaves alone.
func Procs(b *testing.B) {
	b.Helper()
	first, _, list := strings.Cut(flag.Lookup("test.cpu").Value.String(), ",")
	procs, err := strconv.Atoi(strings.TrimSpace(first))
	p := placed()
	switch {
	case err != nil || p.seen[b.Name()]: // one GOMAXPROCS for all rows, or set by package testing
	case p.seen == nil && list:
		b.Fatal("rpcbench: a list in -cpu needs a TestMain that calls stacktest.Main: give one number")
	default:
		p.note(b.Name())
		runtime.GOMAXPROCS(procs)
	}
}
