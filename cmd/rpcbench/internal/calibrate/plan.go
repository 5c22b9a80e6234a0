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

	start = 400 * time.Millisecond // of a process, about
)

// Layouts is how many links of this source the experiments draw from: the first is an experiment's if it takes one.
const Layouts = 24

// Experiment is a comparison that is made again and again, each time as versus makes it: the base, its copy and a contestant, in
// sixteen processes one after the other.
type Experiment struct {
	Name      string
	Spec      versus.Spec // but for the seed
	Repeats   int
	Processes int  // of a repeat
	Layouts   int  // of a repeat, drawn anew for each
	Apart     bool // each arm in a process of its own, with a layout of its own if there are several
}

// Plan is all of it, or the experiments of these names: about two and a half hours on one machine.
func Plan(only ...string) (plan []Experiment, err error) {
	var known []string
	add := func(name string, procs, layouts, repeats int, base, contestant string) {
		known = append(known, name)
		if len(only) == 0 || slices.Contains(only, name) {
			spec := versus.Spec{Arms: []string{base, base, contestant}, Procs: procs, Slice: versus.Slice, Blocks: blocks}
			plan = append(plan, Experiment{name, spec, repeats, processes, layouts, strings.HasPrefix(name, "apart")})
		}
	}
	const json, grpc = "httpjson", "grpcprotobuf"
	add("replication", 1, 8, 30, json, grpc)
	add("defaultprocs", 0, 8, 30, json, grpc)
	add("onebuild", 1, 1, 30, json, grpc)
	add("same", 1, 8, 30, json, json)
	for _, work := range []string{"150ns", "300ns", "600ns"} {
		add("work-"+work, 1, 8, 10, grpc, grpc+"+work="+work)
	}
	add("apart", 1, 8, 10, json, grpc)
	add("apart-same", 1, 1, 20, json, json)
	add("apart-layouts", 1, 8, 20, json, json)
	add("apart-work-1us", 1, 8, 10, grpc, grpc+"+work=1us")
	for _, name := range only {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("rpcbench: calibrate: no experiment %q, only %s", name, strings.Join(known, ", "))
		}
	}
	return plan, nil
}

// task is one process of an experiment, or one for each arm.
type task struct {
	id      string
	spec    versus.Spec
	layouts []int
}

// takes is how long a task takes, about.
func (t task) takes() time.Duration {
	slices := blocks * len(t.spec.Arms)
	if len(t.layouts) > 1 {
		slices *= 2
	}
	return start + time.Duration(slices)*versus.Turn
}

// repeat returns the processes of an experiment's i-th repeat.
func (e Experiment) repeat(i int) (tasks []task) {
	own := rand.New(rand.NewPCG(2, uint64(i))).Perm(Layouts)[:e.Layouts]
	for j := range e.Processes {
		e.Spec.Seed = uint64(i*e.Processes + j)
		t := task{id: fmt.Sprintf("%s/%d", e.Name, e.Spec.Seed), spec: e.Spec, layouts: []int{own[j%e.Layouts]}}
		for arm := 1; e.Apart && arm < len(e.Spec.Arms); arm++ {
			t.layouts = append(t.layouts, own[(j+arm)%e.Layouts])
		}
		tasks = append(tasks, t)
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
