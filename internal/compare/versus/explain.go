package versus

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/explain/layers"
	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
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
		if err = c.Ask("", &sums); err == nil && len(sums) != len(spec.Arms) {
			err = errNoBlock
		}
		if err != nil {
			cancel() // which kills it
			_ = c.End()
			return all, err
		}
		all = sums
	}
	return all, c.End()
}

// explain is the child's side of Explain. For each line it measures a round, and writes the sums of all rounds so far.
func explain(ctx context.Context, w workload.Workload, length time.Duration, stacks []rpcbench.Stack,
	lines <-chan []byte, answer func(any) error) (err error) {
	labelled := pprof.WithLabels(ctx, pprof.Labels("side", "client"))
	pprof.SetGoroutineLabels(labelled)
	w.Apart = false // one profile has both sides
	if w.Rate != 0 {
		w.Callers, w.Rate = w.AtOnce(), 0
	}
	var open []*workload.Open
	defer func() {
		for _, o := range open {
			err = cmp.Or(err, o.Close())
		}
	}()
	sums := make([]Explained, len(stacks))
	for i, s := range stacks {
		o, err := w.Open(labelled, s, workload.Setup{})
		if err != nil {
			return err
		}
		open, sums[i].Procs = append(open, o), runtime.GOMAXPROCS(0)
	}
	for last := false; err == nil && <-lines != nil; last = !last {
		for i, o := range open {
			if err := sums[i].turn(ctx, o, stacks[i].Name, length, last); err != nil {
				return err
			}
		}
		err = answer(sums)
	}
	return err
}

// turn measures a stack once without and once with the profiler, in the order that last tells. Calls that don't count
// come first: the stack before has left its garbage and its caches.
func (e *Explained) turn(ctx context.Context, o *workload.Open, name string, length time.Duration, last bool) error {
	lead := length / 5
	for _, profiled := range []bool{!last, last} {
		var recording *layers.Recording
		var used time.Duration
		var failed error
		before := o.Figures.Latency.Count()
		took, err := during(ctx, o, lead, length, func(open bool) {
			now, _ := cpu.Time()
			switch {
			case !profiled && open:
				used = -now
			case !profiled:
				used += now
			case open:
				recording, failed = layers.Start()
			default:
				pprof.StopCPUProfile()
			}
		})
		calls := o.Figures.Latency.Count() - before
		if err := cmp.Or(err, failed); err != nil {
			return err
		}
		lead = 0
		if !profiled {
			e.Calls, e.Wall, e.CPU = e.Calls+calls, e.Wall+took, e.CPU+used
			continue
		}
		taken, err := recording.Stop(name, calls)
		if err != nil {
			return err
		}
		split, err := layers.Of(taken)
		if err != nil {
			return fmt.Errorf("explain: %s: %w", name, err)
		}
		e.Recordings = append(e.Recordings, recording.Data.Bytes())
		split.Calls, split.Parts = split.Calls+e.Profile.Calls, append(e.Profile.Parts, split.Parts...)
		e.Profile = split
	}
	return nil
}

// during makes calls for a while, after those that lead in.
func during(ctx context.Context, o *workload.Open, lead, length time.Duration, edge func(open bool)) (
	took time.Duration, err error) {
	err = workload.Watched(time.Minute, o.Loop.Begun, o.Fixture.Close, func() error {
		if err := o.Start(o.Warm); err != nil {
			return err
		}
		took, err = o.Loop.During(ctx, lead, length, edge)
		return err
	})
	return took, err
}
