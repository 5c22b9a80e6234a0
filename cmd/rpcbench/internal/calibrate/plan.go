package calibrate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/versus"
)

const (
	processes = 16 // of a repeat, which is what versus runs unless told otherwise
	blocks    = 12 // of a process, fewer than versus has by default: so intervals are wider, and no less honest

	takes = 400*time.Millisecond + 3*blocks*versus.Turn // what a process takes, about
)

// Experiment is a comparison that is made again and again, each time as versus makes it: the base, its copy and a contestant, in
// sixteen processes one after the other.
type Experiment struct {
	Name      string
	Spec      versus.Spec // but for the seed
	Repeats   int
	Processes int // of a repeat
}

// Plan is all of it, or the experiments of these names: about 70 minutes on one machine.
func Plan(only ...string) (plan []Experiment, err error) {
	var known []string
	add := func(name string, procs, repeats int, base, contestant string) {
		known = append(known, name)
		if len(only) == 0 || slices.Contains(only, name) {
			spec := versus.Spec{Arms: []string{base, base, contestant}, Procs: procs, Slice: versus.Slice, Blocks: blocks}
			plan = append(plan, Experiment{name, spec, repeats, processes})
		}
	}
	const json, grpc = "httpjson", "grpcprotobuf"
	add("replication", 1, 30, json, grpc)
	add("defaultprocs", 0, 30, json, grpc)
	add("same", 1, 30, json, json)
	for _, work := range []string{"150ns", "300ns", "600ns"} {
		add("work-"+work, 1, 10, grpc, grpc+"+work="+work)
	}
	for _, name := range only {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("rpcbench: calibrate: no experiment %q, only %s", name, strings.Join(known, ", "))
		}
	}
	return plan, nil
}

// task is one process of an experiment.
type task struct {
	id   string
	spec versus.Spec
}

// repeat returns the processes of an experiment's i-th repeat.
func (e Experiment) repeat(i int) (tasks []task) {
	for j := range e.Processes {
		e.Spec.Seed = uint64(i*e.Processes + j)
		tasks = append(tasks, task{fmt.Sprintf("%s/%d", e.Name, e.Spec.Seed), e.Spec})
	}
	return tasks
}

// tasks come in random order, the same each time, so that experiments share a bad hour of the machine. The processes of a
// repeat stay together.
func tasks(plan []Experiment) []task {
	var repeats [][]task
	for _, e := range plan {
		for i := range e.Repeats {
			repeats = append(repeats, e.repeat(i))
		}
	}
	r := rand.New(rand.NewPCG(1, 0))
	r.Shuffle(len(repeats), func(i, j int) { repeats[i], repeats[j] = repeats[j], repeats[i] })
	return slices.Concat(repeats...)
}
