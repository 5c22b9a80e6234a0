package stacktest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	process "github.com/rpcbench/rpcbench/internal/child"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/fixture"
	"github.com/rpcbench/rpcbench/internal/layers"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
)

// Main runs the tests and benchmarks of a package; call it from TestMain. It then fails if a goroutine is left that
// Traits.Background of no stack names.
//
// Main adds what results need, in the format of golang.org/x/perf/benchfmt. Keys for whatever forbids comparing two
// files, and a comment line of versions, precede the rows. The units follow the rows. Main names a flag that no row
// obeyed on stderr.
//
// The flag -server says where the servers are:
//   - "" is this process.
//   - "process" is a child process for each row. The child is this binary again, and finds its stack among stacks.
//   - "stack=host:port,…" names running servers, as rpcbench serve prints them. Rows of other stacks, and rows over
//     TLS, are then skipped.
//
// The flag -processes 16 makes [BenchmarkVersus] measure each row in 16 child processes, also where -bench=. asks for
// everything.
//
// The flag -profiles names a new folder for one CPU profile per row, without those of BenchmarkVersus and of links.
// A profile has a pass of its own with as many ops as the row, so no printed figure includes the profiler. Profiles
// have the pprof label side, client or server. With -server they are of the client alone.
//
// The flag -long lets [Conformance] hold a reply back for five seconds, in place of half a second.
//
// m is the *testing.M of TestMain. If m also has a method Check() error, Main calls it before anything runs, and exits
// with its error.
func Main(m interface{ Run() int }, stacks ...rpcbench.Stack) {
	if done, err := versus.ServeChild(os.Stdin, os.Stdout, stacks); done {
		orExit(1, err)
		exit(0, stacks)
	}
	p := &current
	flag.StringVar(&p.where, serverFlag, "", "where servers run: process is a child per row, "+
		"stack=host:port,... is what rpcbench serve prints, empty is this process")
	flag.IntVar(&p.processes,
		processesFlag, 0, "child processes that measure a row of BenchmarkVersus; 0 is 8 where -bench names it")
	flag.StringVar(&p.profiles, profilesFlag, "", "new folder for a CPU profile of each row, taken in a pass of its own")
	flag.BoolVar(&p.long, "long", false, "hold a reply back for five seconds in the suite, in place of half a second")
	flag.Parse()
	if c, ok := m.(interface{ Check() error }); ok {
		orExit(2, c.Check())
	}
	if bench := flag.Lookup("test.bench"); bench == nil || bench.Value.String() == "" {
		exit(m.Run(), stacks)
	}
	orExit(2, p.open(stacks))
	if p.profiles != "" {
		if err := os.Mkdir(p.profiles, 0o755); err != nil {
			orExit(2, fmt.Errorf("rpcbench: -profiles needs the name of a new folder: %w", err))
		}
	}
	p.printHeader(os.Stdout)
	code := m.Run()
	p.printUnits(os.Stdout)
	flag.Visit(func(f *flag.Flag) {
		if slices.Contains([]string{serverFlag, processesFlag, profilesFlag}, f.Name) && !p.seen[f.Name] {
			remark("-%s has no effect on the rows of this run", f.Name)
		}
	})
	exit(code, stacks)
}

// named returns the index of the stack with a name, or -1.
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
		if err := fixture.LeftBehind(fixture.Grace, fixture.Background(stacks...)...); err != nil {
			orExit(1, fmt.Errorf("rpcbench: goroutines left behind, which no Traits.Background names: %w", err))
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

// printUnits prints a Unit line for each unit that a row has and package testing does not define. benchstat reads its
// files to the end before it asks for a unit, so the rows may come first.
func (p *placement) printUnits(w io.Writer) {
	for _, of := range []struct{ assumed, units string }{
		{"better=lower", "p50-ns p95-ns p99-ns cpu-ns/op sent-B/op recv-B/op reconnects round-trips/op " +
			"drops overloaded late-p50-ns late-p95-ns late-p99-ns generator-bound " +
			"server-cpu-ns/op server-B/op server-allocs/op " +
			"base-ratio base-ratio-lo base-ratio-hi aa-ratio aa-ratio-lo aa-ratio-hi noise-floor-% base-moved-%"},
		{"better=higher", "req/s"},
		{"assume=nothing", "seed cpu-share in-flight processes"},
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

// note remembers a name until the run ends.
func (p *placement) note(name string) { p.seen[name] = true }

// metric reports a figure of a row.
func metric(b *testing.B, value float64, unit string) {
	current.note(unit)
	b.ReportMetric(value, unit)
}

const (
	serverFlag    = "server"
	childProcess  = "process" // value of -server
	processesFlag = "processes"
	profilesFlag  = "profiles"

	acceptLimit = 2 * time.Second // until a server has accepted the connections that its client has opened
)

// current is the placement of this process, whose flags and GOMAXPROCS it reads and sets. A benchmark of package
// testing has no other place for what has to outlast it, and benchmarks run one after the other.
var current = placement{seen: map[string]bool{}}

// placement holds the value of -server, what else Main reads, and what rows have noted.
type placement struct {
	where     string
	elsewhere map[string]string // host:port of running servers, by stack
	child     *process.Server   // server of the current row, if -server is process
	processes int               // value of -processes
	profiles  string            // value of -profiles
	long      bool              // value of -long
	seen      map[string]bool   // names of the rows that have begun, their units, and the flags that they obey
}

// open checks the flags and reads the addresses of -server. Its error is one line.
func (p *placement) open(stacks []rpcbench.Stack) error {
	switch {
	case p.profiles != "" && flag.Lookup("test.cpuprofile").Value.String() != "":
		return errors.New("rpcbench: -profiles and -cpuprofile: Go takes one CPU profile at a time: give one of them")
	case p.processes < 0:
		return fmt.Errorf("rpcbench: -processes %d: give 8 or more", p.processes)
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
		remark("-server names no server of %d stacks: their rows are skipped", n)
	}
	return nil
}

// config returns the config of a row, with the server that -server or the workload asks for. It starts a child for the
// row, or skips the row if the flag names no server of its stack.
func (p *placement) config(b *testing.B, stack rpcbench.Stack, w workload.Workload) (config rpcbench.Config) {
	b.Helper()
	p.note(serverFlag)
	switch name := process.ServerOf(stack.Name); {
	case p.where == childProcess || p.where == "" && w.Apart:
		s, err := process.Start(b.Context(), name, rpcbench.Config{TLS: w.TLS, Unix: w.Unix})
		orFail(b, stack.Name, err)
		p.child = s
		closing(b, stack, func() error {
			p.child = nil
			return s.Close()
		})
		config.Remote, config.Certificate = s.Addr, s.Certificate
	case p.where == "":
	case p.elsewhere[name] == "":
		b.Skipf("rpcbench: -server names no server of %s", name)
	case w.TLS:
		p.skip(b, "the servers that -server names have no TLS: run rows over TLS with -server process")
	case w.Unix:
		p.skip(b, "the servers that -server names have no Unix socket: run rows over one with -server process")
	default:
		config.Remote = p.elsewhere[name]
	}
	return config
}

// skip skips a row for a reason that it prints once: package testing prints those of benchmarks with -v alone.
func (p *placement) skip(b *testing.B, reason string) {
	b.Helper()
	if !p.seen[reason] {
		remark("%s", reason)
	}
	p.note(reason)
	b.Skip("rpcbench: " + reason)
}

// watchServer is called right before the timed loop. The returned function reports what the server's child process used
// for n ops. It reports nothing if the server is not a child.
func watchServer(b *testing.B, f *rpcbench.Fixture) (report func(n uint64)) {
	b.Helper()
	child := current.child
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
	before := ask(true) // after a collection, so that garbage of the warm-up is not billed to the loop
	return func(n uint64) {
		after := ask(false)
		if after.CPU > 0 {
			metric(b, float64(after.CPU-before.CPU)/float64(n), "server-cpu-ns/op")
		}
		// Whole numbers, as B/op and allocs/op are: the asking itself allocates a little.
		metric(b, float64((after.Bytes-before.Bytes)/n), "server-B/op")
		metric(b, float64((after.Allocs-before.Allocs)/n), "server-allocs/op")
	}
}

// profile writes the CPU profile of a row if -profiles asks for it. pass calls begin after its warm-up, and returns how
// many ops followed. Package testing may call a row several times, and the profile of the last one stays.
func profile(b *testing.B, pass func(begin func()) int64) {
	b.Helper()
	p := &current
	if p.profiles == "" {
		return
	}
	p.note(profilesFlag)
	name := strings.ReplaceAll(b.Name(), "/", "_")
	if procs := runtime.GOMAXPROCS(0); procs > 1 {
		name += fmt.Sprint("-", procs)
	}
	defer pprof.StopCPUProfile() // if the row fails
	var recording *layers.Recording
	ops := pass(func() {
		var err error
		recording, err = layers.Start()
		orFail(b, b.Name(), err)
	})
	taken, err := recording.Stop(b.Name(), ops)
	orFail(b, b.Name(), err)
	file, err := os.Create(filepath.Join(p.profiles, name+".pprof"))
	orFail(b, b.Name(), err)
	orFail(b, b.Name(), errors.Join(taken.Write(file), file.Close()))
}

// asClient runs do, and labels what do starts as the client's.
func asClient(b *testing.B, do func()) {
	b.Helper()
	pprof.Do(b.Context(), pprof.Labels("side", "client"), func(context.Context) { do() })
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
	current.note(b.Name())
	runtime.GOMAXPROCS(procs)
}
