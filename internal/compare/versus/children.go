package versus

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/arms"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/cpu"
	"github.com/rpcbench/rpcbench/internal/measure/network"
	"github.com/rpcbench/rpcbench/internal/measure/tcp"
	"github.com/rpcbench/rpcbench/internal/measure/timing"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
)

// Spec is what a process measures. A child reads what has a name in JSON.
type Spec struct {
	Arms     []string          `json:"arms"` // names of stacks; the second of a name is called again
	Workload workload.Workload `json:"workload"`
	Slice    time.Duration     `json:"slice"`
	Seed     uint64            `json:"seed"`
	Servers  map[string]string `json:"servers,omitempty"`  // host:port by stack, of servers that run already
	Settings tcp.Settings      `json:"settings,omitempty"` // of the TCP of a workload whose link is routed

	Procs  int               `json:"-"` // GOMAXPROCS; 0 is the default
	Blocks int               `json:"-"`
	Traits []rpcbench.Traits `json:"-"` // of the stacks, as far as they are known: how long calls take depends on them
}

// Measuring is the job of a child that measures a Spec, a block for each line. Its answers are blocks, as records.
func Measuring() child.Job { return child.NewJob(measure) }

func measure(ctx context.Context, stacks child.Stacks, spec Spec, lines <-chan []byte,
	reply func(any) error) (err error) {
	all, err := stacks.Named(spec.Arms)
	if err != nil {
		return err
	}
	between, err := spec.network(ctx)
	if err != nil {
		return err
	}
	if between != nil {
		defer func() { err = cmp.Or(err, between.Close()) }()
	}
	g, err := arms.Open(ctx, arms.Spec{Workload: spec.Workload, Slice: spec.Slice, Seed: spec.Seed, Network: between,
		Servers: spec.Servers, Hangs: func(hang *child.Hang) { _ = reply(hang) }}, all...)
	for err == nil && <-lines != nil {
		var r timing.Record
		if err = g.Block(ctx); err == nil {
			r, err = g.Routed(g.Record())
		}
		if err == nil {
			r.Blocks = r.Blocks[len(r.Blocks)-1:]
			err = reply(r)
		}
	}
	return cmp.Or(err, g.Close())
}

// network makes the network that calls cross, where they do. This process is in a namespace of its own then.
func (s Spec) network(ctx context.Context) (*network.Network, error) {
	link, _ := s.Workload.Linked()
	if !link.Routed {
		return nil, nil
	}
	return network.Make(ctx, network.Spec{Link: link, Seed: s.Seed, Settings: s.Settings})
}

// Program is a program whose children measure and count.
type Program struct {
	Path   string   // "" is this one
	Env    []string // what its processes have in their environment besides
	Layout int      // which link of its source this program is
}

// Check starts a process of the program, and fails if this program can't understand what it would measure.
func (p Program) Check(ctx context.Context) error {
	c, err := p.measure(ctx, Spec{})
	if err == nil {
		_ = c.End() // it fails, since it is asked for nothing
	}
	return err
}

// stacks are the names of arms without the builds, which children aren't told.
func stacks(arms []string) (names []string) {
	for _, arm := range arms {
		name, _, _ := strings.Cut(arm, "@")
		names = append(names, name)
	}
	return names
}

// measure starts a child that measures spec.
func (p Program) measure(ctx context.Context, spec Spec) (*child.Process, error) {
	spec.Arms = stacks(spec.Arms)
	c := child.Command{Does: child.Measures, Procs: spec.Procs, Files: spec.Workload.Unix, Alone: spec.Workload.Routed()}
	if c.Alone {
		spec.Settings = tcp.Present()
	}
	c.Asked = spec
	return p.start(ctx, c)
}

func (p Program) start(ctx context.Context, c child.Command) (*child.Process, error) {
	c.Path, c.Env, c.Limit = p.Path, p.Env, cmp.Or(c.Limit, 10*time.Minute)
	return c.Start(ctx)
}

var errNoBlock = errors.New("a child answered with something else than a block")

// Run measures spec in a process of the program, and what others used of the machine meanwhile. With an error comes
// what was measured before it.
//
// Given a program for each arm, each arm has a process of its own. They take their blocks in turn and so stay paired
// in time: what one arm leaves behind can't reach another. Each process holds its arm twice, and the two slices of a
// block count as one.
func Run(ctx context.Context, spec Spec, programs ...Program) (record timing.Record, err error) {
	others := cpu.Others()
	record, err = inTurn(ctx, spec, programs...)
	record.Others = others()
	return record, err
}

func inTurn(ctx context.Context, spec Spec, programs ...Program) (record timing.Record, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	apart := len(programs) > 1
	var children []*child.Process
	defer func() {
		if err != nil {
			cancel() // which kills them
		}
		for i, c := range children {
			err = cmp.Or(err, ofArm(c.End(), spec.Arms, apart, i))
		}
	}()
	for i, program := range programs {
		own := spec
		if apart {
			own.Arms = []string{spec.Arms[i], spec.Arms[i]}
		}
		c, err := program.measure(ctx, own)
		if err != nil {
			return record, ofArm(err, spec.Arms, apart, i)
		}
		children = append(children, c)
	}
	random := rand.New(rand.NewPCG(spec.Seed, 0))
	for range spec.Blocks {
		block := make([]timing.Slice, len(children))
		next := timing.Record{Arms: spec.Arms, Length: 2 * spec.Slice, Seed: spec.Seed,
			Latencies: make([]timing.Latency, len(children)), TCP: make([]tcp.Counters, len(children))}
		for turn, i := range random.Perm(len(children)) {
			var own timing.Record
			if err := children[i].Ask("", &own); err != nil {
				return record, ofArm(err, spec.Arms, apart, i)
			}
			if len(own.Blocks) != 1 {
				return record, errNoBlock
			}
			if !apart {
				next, block = own, own.Blocks[0]
				break
			}
			next.Latencies[i] = joined(own.Latencies)
			routed(&next, i, own)
			sum := &block[i]
			sum.Turn = turn
			for _, s := range own.Blocks[0] {
				sum.Add(s)
			}
		}
		next.Layout, next.Blocks = programs[len(programs)-1].Layout, append(record.Blocks, block)
		record = next
	}
	return record, nil
}

// routed gives a record of several processes what the network of one of them did for its arm.
func routed(all *timing.Record, arm int, own timing.Record) {
	if own.Router == nil {
		all.TCP = nil
		return
	}
	for _, c := range own.TCP {
		all.TCP[arm].Add(c)
	}
	if all.Router == nil {
		all.Router = new(tcp.Router)
	}
	all.Router.Add(*own.Router)
}

// ofArm gives the hang of a child its arm: that of the child where each has one, and else the first of the stack.
func ofArm(err error, arms []string, apart bool, i int) error {
	if hang, hangs := errors.AsType[*child.Hang](err); hangs {
		if hang.Arm = i; !apart {
			hang.Arm = slices.Index(arms, hang.Stack)
		}
	}
	return err
}

// joined is the latency of one arm from those of its two fixtures: percentiles are means of the two, or absent.
func joined(fixtures []timing.Latency) (l timing.Latency) {
	for i, own := range fixtures {
		n := time.Duration(i + 1)
		l.Calls, l.Sum = l.Calls+own.Calls, l.Sum+own.Sum
		l.Planned, l.Skipped, l.Late = l.Planned+own.Planned, l.Skipped+own.Skipped, max(l.Late, own.Late)
		l.Most = max(l.Most, own.Most)
		for _, p := range []struct{ to, own *time.Duration }{{&l.P50, &own.P50}, {&l.P95, &own.P95}, {&l.P99, &own.P99},
			{&l.P999, &own.P999}} {
			if mean := *p.to + (*p.own-*p.to)/n; i == 0 || min(*p.to, *p.own) > 0 {
				*p.to = mean
			} else {
				*p.to = 0
			}
		}
	}
	return l
}
