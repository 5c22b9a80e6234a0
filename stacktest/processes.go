package stacktest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
)

const processesFlag = "processes"

// processes is in how many children of this process a row of BenchmarkVersus is measured: 0 is in this one.
func processes() (n int) {
	if f := flag.Lookup(processesFlag); f != nil {
		n, _ = f.Value.(flag.Getter).Get().(int)
	}
	return n
}

// checkProcesses says in one line what is wrong with the flag.
func checkProcesses(n int, stacks []rpcbench.Stack) error {
	switch {
	case n != 0 && n < versus.Fewest:
		return fmt.Errorf("rpcbench: -processes %d: too few for an interval: %d or more", n, versus.Fewest)
	case n > 0 && len(stacks) == 0:
		return errors.New("rpcbench: -processes: TestMain does not name the stacks that they measure: stacktest.Main(m, mystack.New())")
	}
	return nil
}

// measureApart measures a row in children, one after the other. A signal ends this process, after what is measured is printed.
func measureApart(b *testing.B, level float64, seed uint64, stacks []rpcbench.Stack) (again, arm versus.Figures) {
	b.Helper()
	ctx, stop := signal.NotifyContext(b.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	path, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	last := len(stacks) - 1
	turns := benchtime() / versus.Turn / time.Duration(len(stacks)*processes())
	spec := versus.Spec{Slice: versus.Slice, Seed: seed, Procs: runtime.GOMAXPROCS(0), Blocks: max(versus.FewestBlocks, int(turns))}
	for _, s := range stacks {
		spec.Arms = append(spec.Arms, s.Name)
	}
	var records []timing.Record
	said := func() string {
		i := versus.Read(records, last, level).Ratio
		said := fmt.Sprintf("rpcbench: versus: in %d processes %s took %.4f times as long as %s", len(records), spec.Arms[last], i.Median, spec.Arms[0])
		if len(records) >= versus.Fewest {
			said += fmt.Sprintf(", %.1f %% interval %.4f–%.4f", 100*level, i.Lo, i.Hi)
		}
		return said
	}
	process := func() {
		record, err := versus.Program(path).Run(ctx, spec)
		interrupted := ctx.Err() != nil
		if interrupted {
			err = errors.New("rpcbench: versus: interrupted")
		}
		if err != nil && len(records) > 0 {
			err = fmt.Errorf("%s; then: %w", said(), err)
		}
		if interrupted {
			orExit(1, err)
		} else if err != nil {
			b.Fatal(err)
		}
		records = append(records, record)
		spec.Seed++
	}
	for b.Loop() {
		process()
	}
	for len(records) < processes() {
		process()
	}
	base := versus.Read(records, 0, level)
	again, arm = versus.Read(records, 1, level), versus.Read(records, last, level)
	b.ReportMetric(100*base.Moved, "base-moved-%")
	b.ReportMetric(float64(len(records)), "processes")
	if last > 1 {
		b.Log(said()+":", versus.Verdict(base, again, arm, versus.Margin))
	}
	return again, arm
}
