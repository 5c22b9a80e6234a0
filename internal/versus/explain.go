package versus

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/cpu"
	"github.com/rpcbench/rpcbench/internal/layers"
	"github.com/rpcbench/rpcbench/internal/workload"
)

// Explained is what a process has found of a stack, with the profiler and without.
type Explained struct {
	Profile layers.Split
	Procs   int // GOMAXPROCS of the process

	Recordings [][]byte // of which Profile is made

	Calls     int64         // without the profiler
	Wall, CPU time.Duration // of Calls; CPU is 0 if the system does not tell
}

// Explain measures the arms of spec in a process of the program, in as many rounds as spec has blocks. In a round each
// arm has its turn, so that drift of the machine meets all alike. It returns what it found of each arm. With an error
// come the rounds before it, and nil if there are none.
func Explain(ctx context.Context, spec Spec, program Program) (all []Explained, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	spec.Profiled = true
	c, err := program.start(ctx, spec)
	if err != nil {
		return nil, err
	}
	for range spec.Blocks {
		var sums []Explained
		if err := c.next(&sums, func() bool { return len(sums) == len(spec.Arms) }); err != nil {
			cancel() // which kills it
			_ = c.end()
			return all, err
		}
		all = sums
	}
	return all, c.end()
}

// explain is the child's side of Explain. For each line it measures a round, and writes the sums of all rounds so far.
func explain(ctx context.Context, w workload.Workload, length time.Duration, stacks []rpcbench.Stack,
	lines <-chan []byte, out io.Writer) (err error) {
	labelled := pprof.WithLabels(ctx, pprof.Labels("side", "client"))
	pprof.SetGoroutineLabels(labelled)
	w.Apart = false // one profile has both sides
	var open []*workload.Open
	defer func() {
		for _, o := range open {
			err = cmp.Or(err, o.Close())
		}
	}()
	sums := make([]Explained, len(stacks))
	for i, s := range stacks {
		o, err := w.Open(labelled, s, rpcbench.Config{})
		if err != nil {
			return err
		}
		open, sums[i].Procs = append(open, o), runtime.GOMAXPROCS(0)
		if _, _, err := callFor(ctx, o, o.Warm, 0); err != nil {
			return err
		}
	}
	for last := false; err == nil && <-lines != nil; last = !last {
		for i, o := range open {
			if err := sums[i].turn(ctx, o, stacks[i].Name, length, last); err != nil {
				return err
			}
		}
		err = json.NewEncoder(out).Encode(sums)
	}
	return err
}

// turn measures a stack once without and once with the profiler, in the order that last tells. Calls that don't count
// come first: the stack before has left its garbage and its caches.
func (e *Explained) turn(ctx context.Context, o *workload.Open, name string, length time.Duration, last bool) error {
	if _, _, err := callFor(ctx, o, 0, length/5); err != nil {
		return err
	}
	for _, profiled := range []bool{!last, last} {
		if !profiled {
			before, _ := cpu.Time()
			calls, took, err := callFor(ctx, o, 0, length)
			if err != nil {
				return err
			}
			after, _ := cpu.Time()
			e.Calls, e.Wall, e.CPU = e.Calls+calls, e.Wall+took, e.CPU+after-before
			continue
		}
		recording, err := layers.Start()
		if err != nil {
			return err
		}
		calls, _, err := callFor(ctx, o, 0, length)
		taken, stopErr := recording.Stop(name, calls)
		if err := cmp.Or(err, stopErr); err != nil {
			return err
		}
		split, err := layers.Of(taken)
		if err != nil {
			return fmt.Errorf("rpcbench: explain: %s: %w", name, err)
		}
		e.Recordings = append(e.Recordings, recording.Data.Bytes())
		split.Calls, split.Parts = split.Calls+e.Profile.Calls, append(e.Profile.Parts, split.Parts...)
		e.Profile = split
	}
	return nil
}

// callFor makes calls for a while, and as many ops at least.
func callFor(ctx context.Context, o *workload.Open, ops int, length time.Duration) (calls int64,
	took time.Duration, err error) {
	err = workload.Watched(time.Minute, nil, o.Fixture.Close, func() error {
		for began := time.Now(); took < length || ops > 0; took, ops = time.Since(began), ops-1 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := o.Op(); err != nil {
				return err
			}
			calls += int64(o.Calls)
		}
		return nil
	})
	return calls, took, err
}
