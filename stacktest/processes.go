package stacktest

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
)

const processesFlag = "processes"

// processes is the value of -processes: in how many children of this process BenchmarkVersus measures a row.
type processes struct {
	text    string
	count   int // 0 is none, in this process
	program versus.Program
	abort   func(why string) // ends this process after a signal
}

func (p *processes) String() string     { return p.text }
func (p *processes) Set(v string) error { p.text = v; return nil }

// inProcesses is what -processes says; without Main, nothing.
func inProcesses() *processes {
	if f := flag.Lookup(processesFlag); f != nil {
		if p, ok := f.Value.(*processes); ok {
			return p
		}
	}
	return new(processes)
}

// check says in one line what is wrong with the flag.
func (p *processes) check(stacks []rpcbench.Stack) (err error) {
	if p.text == "" || p.text == "0" {
		return nil
	}
	p.count, err = strconv.Atoi(p.text)
	switch {
	case err != nil:
		return fmt.Errorf("rpcbench: -processes %q is no number of processes, such as 16", p.text)
	case p.count < versus.Fewest:
		return fmt.Errorf("rpcbench: -processes %d: too few for an interval: %d or more", p.count, versus.Fewest)
	case len(stacks) == 0:
		return fmt.Errorf("rpcbench: -processes: TestMain does not name the stacks that they measure: stacktest.Main(m, mystack.New())")
	}
	path, err := os.Executable()
	p.program = versus.Program(path)
	return err
}

// row measures in children.
func (p *processes) row(b *testing.B, level float64, seed uint64, arms []rpcbench.Stack) (again, arm versus.Figures) {
	b.Helper()
	ctx, stop := signal.NotifyContext(b.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	last := len(arms) - 1
	spec := versus.Spec{Slice: versus.Slice, Seed: seed, Procs: runtime.GOMAXPROCS(0)}
	for _, s := range arms {
		spec.Arms = append(spec.Arms, s.Name)
	}
	spec.Blocks = max(versus.FewestBlocks, int(benchtime()/(versus.Turn*time.Duration(len(arms)*p.count))))
	var records []timing.Record
	says := func() string {
		i := versus.Read(records, last, level).Ratio
		said := fmt.Sprintf("rpcbench: versus: in %d processes %s took %.4f times as long as %s", len(records), arms[last].Name, i.Median, arms[0].Name)
		if len(records) >= versus.Fewest {
			said += fmt.Sprintf(", %.1f %% interval %.4f–%.4f", 100*level, i.Lo, i.Hi)
		}
		return said
	}
	process := func() {
		record, err := p.program.Run(ctx, spec)
		if err == nil {
			records = append(records, record)
			spec.Seed++
			return
		}
		why := err.Error()
		if ctx.Err() != nil {
			why = "rpcbench: versus: interrupted"
		}
		if len(records) > 0 {
			why = says() + "; then: " + why
		}
		if ctx.Err() != nil {
			p.abort(why)
		}
		b.Fatal(why)
	}
	for b.Loop() {
		process()
	}
	for len(records) < p.count {
		process()
	}
	base := versus.Read(records, 0, level)
	again, arm = versus.Read(records, 1, level), versus.Read(records, last, level)
	b.ReportMetric(100*base.Moved, "base-moved-%")
	b.ReportMetric(float64(len(records)), "processes")
	if last > 1 {
		b.Log(says()+":", versus.Verdict(base, again, arm, versus.Margin))
	}
	return again, arm
}
