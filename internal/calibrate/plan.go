package calibrate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/replicate"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// Experiment is a comparison that is made again and again, each time as versus makes it: the base, its copy and a contestant, in
// sixteen processes one after the other.
type Experiment struct {
	Name      string
	Spec      replicate.Spec // but for the seed
	Repeats   int
	Processes int // of a repeat
}

const (
	processes = 16 // of a repeat, which is what versus runs unless told otherwise
	blocks    = 12 // of a process, fewer than versus has by default: so intervals are wider, and no less honest
)

// Plan is all of it: about 70 minutes on one machine.
func Plan() []Experiment {
	const json, grpc = "httpjson", "grpcprotobuf"
	of := func(name string, procs, repeats int, base, contestant string) Experiment {
		arms := []string{base, base, contestant}
		return Experiment{name, replicate.Spec{Arms: arms, Procs: procs, Slice: versus.Slice, Blocks: blocks}, repeats, processes}
	}
	return []Experiment{
		of("replication", 1, 30, json, grpc),
		of("defaultprocs", 0, 30, json, grpc),
		of("same", 1, 30, json, json),
		of("work-150ns", 1, 10, grpc, grpc+"+work=150ns"),
		of("work-300ns", 1, 10, grpc, grpc+"+work=300ns"),
		of("work-600ns", 1, 10, grpc, grpc+"+work=600ns"),
	}
}

// Only returns the experiments of the given names, all without any.
func Only(plan []Experiment, names ...string) (some []Experiment, err error) {
	if len(names) == 0 {
		return plan, nil
	}
	var known []string
	for _, e := range plan {
		known = append(known, e.Name)
		if slices.Contains(names, e.Name) {
			some = append(some, e)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("rpcbench: calibrate: no experiment %q, only %s", name, strings.Join(known, ", "))
		}
	}
	return some, nil
}

// task is one process of an experiment.
type task struct {
	id   string
	spec replicate.Spec
}

// tasks come in random order, the same each time, so that experiments share a bad hour of the machine. The processes of a
// repeat stay together.
func tasks(plan []Experiment) []task {
	var repeats [][]task
	for _, e := range plan {
		for i := range e.Repeats {
			var own []task
			for j := range e.Processes {
				spec := e.Spec
				spec.Seed = uint64(i*e.Processes + j)
				own = append(own, task{fmt.Sprintf("%s/%d", e.Name, spec.Seed), spec})
			}
			repeats = append(repeats, own)
		}
	}
	r := rand.New(rand.NewPCG(1, 0))
	r.Shuffle(len(repeats), func(i, j int) { repeats[i], repeats[j] = repeats[j], repeats[i] })
	return slices.Concat(repeats...)
}

// takes is about how long.
func (t task) takes() time.Duration {
	const start = 400 * time.Millisecond
	return start + time.Duration(t.spec.Blocks*len(t.spec.Arms))*versus.Turn
}
