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

// Experiment is a comparison that is measured in several processes.
type Experiment struct {
	Name      string
	Spec      replicate.Spec // but for the seed
	Apart     bool           // each arm in a process of its own
	Processes int
	Together  int // processes that run in a row, as those of one comparison do; 0 is 1
}

// The experiments' names. Those of garbage and idle have a suffix.
const (
	Replication  = "replication"  // two stacks, many short processes
	DefaultProcs = "defaultprocs" // the same with the default GOMAXPROCS
	Same         = "same"         // copies of httpjson, for long
	Kept         = "kept"         // copies of grpcprotobuf, for long, whose fixtures are kept throughout
	Sensitivity  = "sensitivity"  // copies of grpcprotobuf, some with work injected
	Faint        = "faint"        // copies of grpcprotobuf, one with less work than a hundredth of a call, many short processes
	Garbage      = "garbage"      // copies of grpcprotobuf, one with garbage injected
	Idle         = "idle"         // two stacks beside idle fixtures
)

const (
	jsonStack = "httpjson"
	grpcStack = "grpcprotobuf"
)

// works are the amounts injected.
func works() []time.Duration {
	return []time.Duration{250 * time.Nanosecond, 500 * time.Nanosecond, time.Microsecond, 2 * time.Microsecond}
}

// idles are how many fixtures idle.
func idles() []int { return []int{0, versus.Together, 10, 30} }

func copyWith(work time.Duration) string { return fmt.Sprintf("%s+work=%v", grpcStack, work) }

func litter(bytes int) string { return fmt.Sprintf("%s+garbage=%d", grpcStack, bytes) }

const (
	litterBytes = 8 << 10
	faintWork   = 150 * time.Nanosecond
	procsPer60s = 16 // processes of Replication that take 60 s together
	long        = 130
	short       = 24
	brief       = 12 // of processes of which 480 are measured: 16 of them take half a minute
)

// Plan is all of it: about 100 minutes on one machine.
func Plan() []Experiment {
	pair := func(procs int) replicate.Spec {
		return replicate.Spec{Arms: []string{jsonStack, jsonStack, grpcStack}, Procs: procs, Slice: versus.Slice, Blocks: short}
	}
	row := func(procs int) replicate.Spec {
		s := pair(procs)
		s.Blocks = brief
		return s
	}
	spec := func(blocks int, arms ...string) replicate.Spec {
		return replicate.Spec{Arms: arms, Procs: 1, Slice: versus.Slice, Blocks: blocks}
	}
	sensitivity := []string{copyWith(0), copyWith(0), copyWith(0)}
	for _, d := range works() {
		sensitivity = append(sensitivity, copyWith(d))
	}
	kept := spec(long, copyWith(0), copyWith(0))
	kept.Keep = true
	plan := []Experiment{
		{Name: Replication, Spec: row(1), Processes: 30 * procsPer60s, Together: procsPer60s},
		{Name: DefaultProcs, Spec: row(0), Processes: 30 * procsPer60s, Together: procsPer60s},
		{Name: Same, Spec: spec(long, jsonStack, jsonStack, jsonStack), Processes: 24},
		{Name: Kept, Spec: kept, Processes: 20},
		{Name: Sensitivity, Spec: spec(long, sensitivity...), Processes: 24},
		{Name: Faint, Spec: spec(short, copyWith(0), copyWith(0), copyWith(faintWork)), Processes: 5 * procsPer60s},
	}
	for _, slice := range []struct {
		name, apart string
		length      time.Duration
		blocks      int
		byClock     bool
	}{
		{"-25ms", "-apart", 25 * time.Millisecond, 60, false},
		{"-100ms", "-apart-100ms", 100 * time.Millisecond, 24, false},
		{"-400ms", "-apart-400ms", 400 * time.Millisecond, 10, false},
		{"-25ms-byclock", "", 25 * time.Millisecond, 120, true},
	} {
		s := spec(slice.blocks, litter(0), litter(0), litter(litterBytes))
		s.Slice, s.ByClock = slice.length, slice.byClock
		plan = append(plan, Experiment{Name: Garbage + slice.name, Spec: s, Processes: 12})
		if slice.apart != "" {
			s.Arms = s.Arms[1:]
			plan = append(plan, Experiment{Name: Garbage + slice.apart, Spec: s, Apart: true, Processes: 12})
		}
	}
	for _, n := range idles() {
		s := pair(1)
		neighbours := []string{"connectrpc", jsonStack, grpcStack, "httpxml", "grpcservehttp"}
		for i := range n {
			s.Idle = append(s.Idle, neighbours[i%len(neighbours)])
		}
		plan = append(plan, Experiment{Name: fmt.Sprintf("%s-%d", Idle, n), Spec: s, Processes: 16})
	}
	return plan
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

// task is one process, or set of processes, of an experiment.
type task struct {
	id    string
	exp   Experiment
	index int
}

// tasks come in random order, the same each time, so that a bad hour of the machine is shared. Those that run in a row stay
// together.
func tasks(plan []Experiment) []task {
	var rows [][]task
	for _, e := range plan {
		var own []task
		for i := range e.Processes {
			e.Spec.Seed = uint64(i)
			own = append(own, task{fmt.Sprintf("%s/%d", e.Name, i), e, i})
		}
		rows = slices.AppendSeq(rows, slices.Chunk(own, max(1, e.Together)))
	}
	r := rand.New(rand.NewPCG(1, 0))
	r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return slices.Concat(rows...)
}

// takes is about how long.
func (t task) takes() time.Duration {
	const start, more = 400 * time.Millisecond, versus.Turn - versus.Slice
	slices := len(t.exp.Spec.Arms)
	if t.exp.Apart {
		slices *= 2
	}
	return start + time.Duration(t.exp.Spec.Blocks*slices)*(t.exp.Spec.Slice+more)
}
