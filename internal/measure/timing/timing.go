// Package timing compares operations in one process. It runs them in turn, and says how many times as long one takes as
// another.
//
// Two times that are measured minutes apart differ by what the machine did in between, often by more than the
// operations differ. So each operation, or arm, has a short slice in each block. The order within a block is random,
// and the slices of one block are compared. A [Pairing] measures, a [Record] keeps every slice, and [Record.Ratio] is
// the median over blocks.
//
// A ratio is that of one process: another has another memory layout and other luck. Package versus makes an interval of
// several. docs/method.md explains the method, and its appendix has calibrations and sources.
package timing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/measure/tcp"
)

// Arm is one of the operations that are compared.
type Arm struct {
	Name  string
	Op    func() error // makes one operation
	Timed func(bool)   // told when a slice begins to count, and when it ends; may be nil

	// Window makes the operations of a slice in place of Op, where several are under way at a time. It tells edge when
	// the slice begins to count and when it ends, and returns how many operations count, and in what time.
	Window func(ctx context.Context, edge func(open bool)) (ops int, wall time.Duration, err error)

	// Server tells the CPU time of another process that works for a Window so far; nil if none does.
	Server func() (time.Duration, bool)

	// Switches tells the voluntary context switches of all processes that work for a Window so far; nil if nobody asks.
	Switches func() int64
}

// Slice is what one arm did in one turn.
type Slice struct {
	Turn int           // place in its block, from 0
	Ops  int           // never 0
	Wall time.Duration // of all Ops
	CPU  time.Duration // CPU time meanwhile, by [cpu.Time] and of the server's process; 0 if the system does not tell
	GC   int           // collections that ended meanwhile
	Lead time.Duration // time of the ops before the slice, which don't count
	Heap int64         // live bytes when the slice began, as the collection before it found

	Server time.Duration // the part of CPU that the server's process had

	// Of a window: how long all CPUs of the machine were busy and idle meanwhile, and voluntary context switches. They
	// are 0 if the system does not tell.
	Busy, Idle time.Duration
	Switches   int64
}

// Add adds another slice of the arm, whose Turn and Heap stay.
func (s *Slice) Add(o Slice) {
	s.Ops, s.Wall, s.CPU, s.Server = s.Ops+o.Ops, s.Wall+o.Wall, s.CPU+o.CPU, s.Server+o.Server
	s.GC, s.Lead = s.GC+o.GC, s.Lead+o.Lead
	s.Busy, s.Idle, s.Switches = s.Busy+o.Busy, s.Idle+o.Idle, s.Switches+o.Switches
}

// MarshalJSON encodes a slice as [turn, ops, wall, cpu, gc, lead, heap, server, busy, idle, switches], since files hold
// hundreds of thousands of slices.
func (s Slice) MarshalJSON() ([]byte, error) {
	return json.Marshal([11]int64{int64(s.Turn), int64(s.Ops), int64(s.Wall), int64(s.CPU), int64(s.GC), int64(s.Lead),
		s.Heap, int64(s.Server), int64(s.Busy), int64(s.Idle), s.Switches})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Slice) UnmarshalJSON(data []byte) error {
	var v [11]int64
	err := json.Unmarshal(data, &v)
	*s = Slice{Turn: int(v[0]), Ops: int(v[1]), Wall: time.Duration(v[2]), CPU: time.Duration(v[3]), GC: int(v[4]),
		Lead: time.Duration(v[5]), Heap: v[6], Server: time.Duration(v[7]),
		Busy: time.Duration(v[8]), Idle: time.Duration(v[9]), Switches: v[10]}
	return err
}

// Record holds what a pairing has measured, and its settings.
type Record struct {
	Arms   []string      `json:"arms"`
	Length time.Duration `json:"length"`           // the least length of a slice
	Seed   uint64        `json:"seed"`             // decides each Turn, together with the block's index
	Blocks [][]Slice     `json:"blocks"`           // one slice per arm, in the order of Arms
	Layout int           `json:"layout,omitempty"` // which link of the last arm's source was measured

	// What the arms' callers measure meanwhile, and the share of the machine that other programs used. Both are
	// absent if nothing told.
	Latencies []Latency `json:"latencies,omitempty"` // of each arm, over all blocks
	Others    float64   `json:"others,omitempty"`

	// Over a network with a router: what TCP did in the windows of each arm, and what the router did at any time.
	TCP    []tcp.Counters `json:"tcp,omitempty"`
	Router *tcp.Router    `json:"router,omitempty"`
}

// Latency tells how long single calls of an arm took in its slices. A percentile is 0 with fewer than ten calls beyond.
type Latency struct {
	Calls int64         `json:"calls"`
	P50   time.Duration `json:"p50,omitempty"`
	P95   time.Duration `json:"p95,omitempty"`
	P99   time.Duration `json:"p99,omitempty"`
	P999  time.Duration `json:"p999,omitempty"`
	Sum   time.Duration `json:"sum"` // of all calls: over the slices' time, how many were in flight

	// Of planned starts: how many were due, how many of them more than 50 ms late and skipped, and the 99th percentile of
	// how late calls began.
	Planned int64         `json:"planned,omitempty"`
	Skipped int64         `json:"skipped,omitempty"`
	Late    time.Duration `json:"late,omitempty"`
	Most    int64         `json:"most,omitempty"` // calls that were under way at once, as the loop counted them
}

// Longest is how many times its length a slice may last at most, in order to end with a collection.
const Longest = 8

const (
	remembered = 5    // collections that Go's pacer remembers: lastConsMark in runtime/mgcpacer.go, and the last one
	readings   = 64   // how often a slice reads the clock, about
	ticks      = 1000 // ticks of the clock that a slice must last, so that one tick is 0.1 %
)

// ErrClock marks the error of New for a clock that is too coarse for slices of that length.
var ErrClock = errors.New("timing: the clock is too coarse")

// clocks are what a pairing reads around a slice.
type clocks struct {
	now     func() time.Duration // since any fixed moment
	cpu     func() (time.Duration, bool)
	machine func() (busy, idle time.Duration)
	gc      func() int   // collections so far
	heap    func() int64 // bytes that the last collection has left
}

// Pairing measures arms block by block. One goroutine at a time may use it.
type Pairing struct {
	clocks
	arms   []Arm
	length time.Duration
	seed   uint64

	force  func(n int) // starts n collections beside the ops, and then sends to forced
	forced chan struct{}

	warm    bool
	batches []int // ops between two readings of the clock, per arm
	order   []int // the arms of the current block, by turn
	block   []Slice
	done    []Slice // the finished blocks end to end, so that recording a block rarely allocates
	random  *rand.PCG
}

// New returns a pairing of at least two arms. To compare an arm with itself, give the same Op two names. Slices longer
// than 25 ms make the interval wider in the same time.
//
// A slice continues past its length until the garbage collector has finished a cycle. So it pays for whole cycles, and
// leaves no garbage to the next arm.
func New(arms []Arm, slice time.Duration, seed uint64) (*Pairing, error) {
	if len(arms) < 2 {
		return nil, fmt.Errorf("timing: got %d of the two or more arms to compare", len(arms))
	}
	start := time.Now()
	now := func() time.Duration { return time.Since(start) }
	if tick, _ := Tick(now); slice < ticks*tick {
		return nil, fmt.Errorf("%w: it steps by %v, so slices take %v or more, not %v", ErrClock, tick, ticks*tick, slice)
	}
	p := &Pairing{
		arms: slices.Clone(arms), length: slice, seed: seed,
		clocks: clocks{now: now, cpu: cpu.Time, machine: cpu.Machine,
			gc: metric[int]("/gc/cycles/total:gc-cycles"), heap: metric[int64]("/gc/heap/live:bytes")},
		batches: slices.Repeat([]int{1}, len(arms)), order: make([]int, len(arms)), block: make([]Slice, len(arms)),
		random: rand.NewPCG(0, 0), forced: make(chan struct{}, 1),
	}
	n := 0
	collect := func() { // made once, so that a slice does not allocate
		for range n {
			runtime.GC()
		}
		p.forced <- struct{}{}
	}
	p.force = func(times int) {
		n = times
		go collect()
	}
	return p, nil
}

// Tick returns the smallest step by which a clock was seen to advance. The clock is coarse if most readings repeat, as
// on Windows with its step of about 0.5 ms.
func Tick(now func() time.Duration) (step time.Duration, coarse bool) {
	const readings = 100
	step, stood := time.Duration(1<<63-1), 0
	for range readings {
		before := now()
		after := now()
		if after == before {
			stood++
		}
		for after == before {
			after = now()
		}
		step = min(step, after-before)
	}
	return step, stood >= readings/2
}

// metric returns a function that reads a metric of the runtime without stopping the world.
func metric[T int | int64](name string) func() T {
	sample := []metrics.Sample{{Name: name}}
	return func() T {
		metrics.Read(sample)
		return T(sample[0].Value.Uint64())
	}
}

// Block runs one slice of every arm and records them. Before the first block every arm runs a slice that is discarded.
// A failed operation, or a ctx that is done before a slice, ends the block with an error, and nothing of it is
// recorded.
func (p *Pairing) Block(ctx context.Context) error {
	if !p.warm {
		for arm := range p.arms {
			if p.arms[arm].Window != nil {
				continue // which warms its own
			}
			if _, err := p.slice(ctx, arm); err != nil {
				return &Failed{arm, fmt.Errorf("timing: arm %q, warm-up: %w", p.arms[arm].Name, err)}
			}
		}
		p.warm = true
	}
	i := len(p.done) / len(p.arms)
	p.shuffle(i)
	for turn, arm := range p.order {
		s, err := p.slice(ctx, arm)
		if err != nil {
			return &Failed{arm, fmt.Errorf("timing: arm %q, block %d: %w", p.arms[arm].Name, i, err)}
		}
		s.Turn = turn
		p.block[arm] = s
	}
	p.done = append(p.done, p.block...)
	return nil
}

// Failed is the error of an operation.
type Failed struct {
	Arm int // whose it is
	err error
}

func (f *Failed) Error() string { return f.err.Error() }

// Unwrap is what the operation returned.
func (f *Failed) Unwrap() error { return f.err }

// shuffle makes every order of block i equally likely, independent of the earlier blocks.
func (p *Pairing) shuffle(i int) {
	p.random.Seed(p.seed, uint64(i))
	r := rand.New(p.random)
	for arm := range p.order {
		j := r.IntN(arm + 1)
		p.order[arm] = p.order[j]
		p.order[j] = arm
	}
}

func (p *Pairing) slice(ctx context.Context, arm int) (s Slice, err error) {
	if err := ctx.Err(); err != nil {
		return s, err
	}
	if p.arms[arm].Window != nil {
		return p.window(ctx, p.arms[arm])
	}
	op, batch := p.arms[arm].Op, p.batches[arm]
	if s.Lead, err = p.lead(op, batch); err != nil {
		return s, err
	}
	timed := p.arms[arm].Timed
	if timed == nil || !p.warm {
		timed = func(bool) {}
	}
	s.GC, s.Heap = -p.gc(), p.heap()
	used, known := p.cpu()
	timed(true)
	defer timed(false)
	start := p.now()
	for s.Wall < p.length {
		if err := ops(op, batch); err != nil {
			return s, err
		}
		s.Ops += batch
		s.Wall = p.now() - start
	}
	for before := p.gc(); p.gc() == before && s.Wall < Longest*p.length; {
		if err := ops(op, batch); err != nil {
			return s, err
		}
		s.Ops += batch
		s.Wall = p.now() - start
	}
	if known {
		now, _ := p.cpu()
		s.CPU = now - used
	}
	s.GC += p.gc()
	// Every arm reads the clock about as often per slice, so that fast and slow arms pay the same share for reading.
	p.batches[arm] = max(1, s.Ops/readings)
	return s, nil
}

// window measures a slice of several operations at a time. It does not wait for collections, of which it holds many.
func (p *Pairing) window(ctx context.Context, arm Arm) (s Slice, err error) {
	start, told := p.now(), true
	around := func(sign int64) { // reading takes a part of a millisecond, which is no CPU time of the window
		busy, idle := p.machine()
		s.Busy, s.Idle = s.Busy+time.Duration(sign)*busy, s.Idle+time.Duration(sign)*idle
		if arm.Switches != nil {
			s.Switches += sign * arm.Switches()
		}
	}
	s.Ops, s.Wall, err = arm.Window(ctx, func(open bool) {
		if open {
			around(-1)
		} else {
			defer around(1)
		}
		server := time.Duration(0)
		used, known := p.cpu()
		if told = told && known; arm.Server != nil {
			server, known = arm.Server()
			told = told && known
		}
		if open {
			s.Lead, s.Heap, s.GC, s.CPU, s.Server = p.now()-start, p.heap(), -p.gc(), -used-server, -server
			return
		}
		s.CPU, s.Server, s.GC = s.CPU+used+server, s.Server+server, s.GC+p.gc()
	})
	if !told {
		s.CPU, s.Server = 0, 0
	}
	if err == nil && s.Ops == 0 {
		err = fmt.Errorf("no operation ended within %v", s.Wall)
	}
	return s, err
}

// lead runs the arm through five collections, so that the garbage collector's pacer has forgotten the previous arm. All
// but the last are forced, since filling the heap for each would take longer than the slice. The last one is forced if
// it does not come in time.
func (p *Pairing) lead(op func() error, batch int) (took time.Duration, err error) {
	start := p.now()
	if err := p.during(op, batch, remembered-1); err != nil {
		return 0, err
	}
	for forced, before := p.now(), p.gc(); p.gc() == before && err == nil; {
		if p.now()-forced > 2*p.length {
			err = p.during(op, batch, 1)
			break
		}
		err = ops(op, batch)
	}
	return p.now() - start, err
}

// during makes ops until n forced collections have ended. No collection is under way after it, even if an op fails.
func (p *Pairing) during(op func() error, batch, n int) error {
	p.force(n)
	defer func() { <-p.forced }()
	for over := false; !over; over = len(p.forced) > 0 {
		if err := ops(op, max(1, batch/readings)); err != nil {
			return err
		}
		runtime.Gosched() // for ops that never wait
	}
	return nil
}

func ops(op func() error, n int) error {
	for range n {
		if err := op(); err != nil {
			return err
		}
	}
	return nil
}

// Record returns a copy of what is recorded so far.
func (p *Pairing) Record() Record {
	r := Record{Length: p.length, Seed: p.seed, Blocks: slices.Collect(slices.Chunk(slices.Clone(p.done), len(p.arms)))}
	for _, arm := range p.arms {
		r.Arms = append(r.Arms, arm.Name)
	}
	return r
}
