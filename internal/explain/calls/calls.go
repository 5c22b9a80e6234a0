// Package calls measures stacks under the profiler and without it, in turn, in processes of their own, and prints the
// layers of their calls. Package layers splits the profiles.
package calls

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/rpcbench/rpcbench/internal/explain/layers"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// turn is how long a stack is measured before the next one has its turn. In a process each has as many rounds: one with
// the profiler first, one with it last.
const (
	turn   = 500 * time.Millisecond
	rounds = 2
	Each   = rounds * 2 * turn // of a stack in a process
)

// OneProcess is said of a workload that is apart.
const OneProcess = "%s is explained in one process: a profile of it has both the client and the server."

// Explanation is a call of one stack, split among layers.
type Explanation struct {
	Name      string
	Processes []Process // or a profile that was read
}

// Explain has stacks measured in one process after the other, each stack for as long as length. With an error comes
// what was measured before. An explanation may then have no process.
func Explain(ctx context.Context, r Rounds, length time.Duration, show shell.Show) (all []*Explanation, err error) {
	for _, name := range r.Arms {
		all = append(all, &Explanation{Name: name})
	}
	r.Slice, r.Number = turn, rounds
	defer show("", 0)
	takes := Each * time.Duration(len(all))
	for n, left := length/Each, length/Each; left > 0 && takes > 0; left-- {
		show(fmt.Sprintf("process %d of %d", n-left+1, n), takes*left)
		found, err := r.process(ctx)
		for i, one := range found {
			all[i].Processes = append(all[i].Processes, one)
		}
		if ctx.Err() != nil {
			err = shell.ErrInterrupted
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// Keep writes the profile of all processes of a stack to a folder.
func (e *Explanation) Keep(folder string) error {
	var recordings [][]byte
	for _, p := range e.Processes {
		recordings = append(recordings, p.Recordings...)
	}
	_, calls, _ := e.count(layers.All)
	var data bytes.Buffer
	taken, err := layers.Merge(e.Name, calls, recordings...)
	if err == nil {
		name := filepath.Join(folder, filepath.Base(e.Name)+".pprof")
		if err = taken.Write(&data); err == nil {
			err = os.WriteFile(name, data.Bytes(), 0o666)
		}
	}
	if err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	return nil
}

// Process is what a process has found of a stack, with the profiler and without.
type Process struct {
	Profile layers.Split
	Procs   int // GOMAXPROCS of the process

	Recordings [][]byte // of which Profile is made

	Calls     int64         // without the profiler
	Wall, CPU time.Duration // of Calls; CPU is 0 if the system does not tell
}

// Rounds are what a process measures. In a round each arm has its turn, so that drift of the machine meets all alike. A
// child reads what has a name in JSON.
type Rounds struct {
	Arms     []string          `json:"arms"` // names of stacks
	Workload workload.Workload `json:"workload"`
	Slice    time.Duration     `json:"slice"` // of an arm in a round: one with the profiler, and one without

	Number int `json:"-"`
	Procs  int `json:"-"` // GOMAXPROCS; 0 is the default

	path string // of the program; "" is this one. Tests have others
}

// process has a process of this program measure the rounds. It returns what that found of each arm. With an error come
// the rounds before it, and nil if there are none.
func (r Rounds) process(ctx context.Context) (all []Process, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := child.Command{Path: r.path, Does: child.Profiles, Procs: r.Procs, Asked: r, Files: r.Workload.Unix,
		Limit: 10 * time.Minute}.Start(ctx)
	if err != nil {
		return nil, err
	}
	for range r.Number {
		var sums []Process
		if err = c.Ask("", &sums); err == nil && len(sums) != len(r.Arms) {
			err = errors.New("a child answered with something else than a round")
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

// Profiling is the job of a child that explains: the child's side of Explain. For each line it measures a round, and
// its answers are the sums of all rounds so far.
func Profiling() child.Job { return child.NewJob(measure) }

func measure(ctx context.Context, known child.Stacks, asked Rounds, lines <-chan []byte,
	reply func(any) error) (err error) {
	stacks, err := known.Named(asked.Arms)
	if err != nil {
		return err
	}
	w := asked.Workload
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
	sums := make([]Process, len(stacks))
	for i, s := range stacks {
		o, err := w.Open(labelled, s, workload.Setup{})
		if err != nil {
			return err
		}
		open, sums[i].Procs = append(open, o), runtime.GOMAXPROCS(0)
	}
	for last := false; err == nil && <-lines != nil; last = !last {
		for i, o := range open {
			if err := sums[i].turn(ctx, o, stacks[i].Name, asked.Slice, last); err != nil {
				return err
			}
		}
		err = reply(sums)
	}
	return err
}

// turn measures a stack once without and once with the profiler, in the order that last tells. Calls that don't count
// come first: the stack before has left its garbage and its caches.
func (e *Process) turn(ctx context.Context, o *workload.Open, name string, length time.Duration, last bool) error {
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
