// Package workload lists what a service may do with its calls: which message, how many callers, which connection.
// Each workload is compared between stacks as rpcbench run does.
package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/child"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/latency"
	"github.com/rpcbench/rpcbench/internal/relay"
	"github.com/rpcbench/rpcbench/message"
)

// Workload is what a call is, and what surrounds it.
type Workload struct {
	Name  string
	Does  string // for people
	Procs int    // GOMAXPROCS that the question needs: 1 for CPU work, 0 for all cores
	Bytes *int   // of payload, of workloads that differ in nothing else

	config  rpcbench.Config
	callers int  // 0 is one, on one connection
	cold    bool // each call has a connection of its own
	link    string
	apart   bool // the server has a process of its own
	prepare Prepare

	wrap func(net.Conn) net.Conn // what Look does to connections
}

// Many tells whether there are several callers.
func (w Workload) Many() bool { return w.callers > 1 }

// Blocks is how many of n blocks a process measures: fewer where starting takes most of the time, or hardly anything
// varies.
func (w Workload) Blocks(n int) int {
	switch {
	case w.link != "":
		return 2
	case w.apart:
		return min(n, 10)
	}
	return n
}

// Extra is about how much longer than others each arm takes in a block.
func (w Workload) Extra() time.Duration {
	switch {
	case w.link != "":
		return 3 * time.Second
	case w.apart:
		return 150 * time.Millisecond
	}
	return 0
}

// Small is the workload of a small call's CPU work, which is also that of versus.
const Small = "small"

// Quick is how many of All make a first answer.
const Quick = 6

// All are the workloads.
func All() []Workload {
	many := rpcbench.Config{Conns: 20}
	return []Workload{
		{Name: Small, Does: "a small call, one core", Procs: 1, Bytes: bytes(0), prepare: User(0)},
		{Name: "mixed-50-callers", Does: "mixed fields, 50 callers", config: many, callers: 50, prepare: Echo(message.Complex())},
		{Name: "bytes-10kB", Does: "10 kB of bytes (13 kB as JSON)", Procs: 1, Bytes: bytes(10_000), prepare: User(10_000)},
		{Name: "structured-1kB", Does: "structured, 2.0 kB of JSON", Procs: 1, prepare: Echo(structured(structured1kB))},
		{Name: "cold-tls", Does: "a new TLS connection, one call", Procs: 1, config: rpcbench.Config{TLS: true}, cold: true, prepare: Cold()},
		{Name: "small-1-caller", Does: "a small call, all cores", prepare: User(0)},

		{Name: "small-50-callers", Does: "a small call, 50 callers", config: many, callers: 50, prepare: User(0)},
		{Name: "mixed", Does: "mixed fields, 418 B of JSON", Procs: 1, prepare: Echo(message.Complex())},
		{Name: "structured-10kB", Does: "structured, 18.5 kB of JSON", Procs: 1, prepare: Echo(structured(structured10kB))},
		{Name: "bytes-1kB", Does: "1 kB of bytes (1.4 kB as JSON)", Procs: 1, Bytes: bytes(1000), prepare: User(1000)},
		{Name: "bytes-100kB", Does: "100 kB of bytes (133 kB as JSON)", Procs: 1, Bytes: bytes(100_000), prepare: User(100_000)},
		{Name: "stream", Does: "a small message on a stream (JSON: a call)", Procs: 1, prepare: streamOrCall()},
		{Name: "cold", Does: "a new connection, one call", Procs: 1, cold: true, prepare: Cold()},
		{Name: "cold-4g", Does: "a new connection over 4G, one call", cold: true, link: "4g", prepare: Cold()},
		{Name: "headers", Does: "a small call, long headers", Procs: 1,
			config: rpcbench.Config{Headers: corpus.Headers()}, prepare: User(0)},
		{Name: "two-processes", Does: "a small call, two processes", apart: true, prepare: User(0)},
	}
}

// Find returns the workload of a name.
func Find(name string) (Workload, error) {
	all := All()
	i := slices.IndexFunc(all, func(w Workload) bool { return w.Name == name })
	if i < 0 {
		return Workload{}, fmt.Errorf("rpcbench: unknown workload %q: rpcbench list names them", name)
	}
	return all[i], nil
}

func bytes(n int) *int { return &n }

const structured1kB, structured10kB = 44, 480 // repeated messages

// structured is the flex message with so many repeated messages, of about 18 bytes of protobuf each.
func structured(pairs int) *message.Flex {
	m := message.Complex()
	for i := range pairs {
		m.First = append(m.First, &message.Pair{Key: fmt.Sprintf("field-%05d", i), Value: int64(i) * 7919})
	}
	return m
}

// Open is a workload that is open for one stack.
type Open struct {
	Fixture *rpcbench.Fixture
	Op      func() error
	Calls   int // that Op makes
	Warm    int // ops after which connections, pools and caches are warm

	// Latencies takes how long each call took, between Timed(true) and Timed(false).
	Latencies *latency.Recorder
	timed     bool
	last      time.Time // when the call before ended: one reading of the clock per call, about 50 ns

	conns  int64        // of the fixture
	dialed int64        // by Op
	server func() error // ends its process
}

// Connections is how many the server should have accepted by now.
func (o *Open) Connections() int64 { return o.conns + o.dialed }

// Close closes the fixture, then the server in a process of its own.
func (o *Open) Close() error {
	err := o.Fixture.Close()
	if o.server != nil {
		err = cmp.Or(err, o.server())
	}
	return err
}

// Timed begins the timing of single calls, or ends it.
func (o *Open) Timed(on bool) { o.timed, o.last = on, time.Now() }

// each is how many calls a caller goes round: a reply that sticks to a connection is then the wrong one.
const each = 4

// Open starts what the workload needs of a stack. The contexts of its calls have no deadline, since one costs a stack
// more than another.
func (w Workload) Open(ctx context.Context, stack rpcbench.Stack) (o *Open, err error) {
	config := w.config
	o = &Open{Calls: 1, Warm: 4 * corpus.Round, conns: int64(max(1, config.Conns))}
	if w.apart {
		server, err := child.Start(ctx, stack.Name, config.TLS, io.Discard)
		if err != nil {
			return nil, err
		}
		o.server, config.Server, config.Certificate = server.Close, server.Addr, server.Certificate
	}
	if w.link != "" {
		link, err := relay.FindLink(w.link)
		if err != nil {
			return nil, err
		}
		config.WrapClient = link.Wrap
	} else if w.cold {
		config.WrapClient = ResetOnClose
	}
	config.WrapClient = w.wrapped(config.WrapClient)
	if o.Fixture, err = rpcbench.Start(ctx, stack, config); err != nil {
		if o.server != nil {
			err = errors.Join(err, o.server())
		}
		return nil, err
	}
	if err := w.ready(o); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

// ready makes the op.
func (w Workload) ready(o *Open) error {
	next, background := 0, context.Background()
	dials := int64(0)
	if w.cold {
		dials, o.Warm = 1, corpus.Round
	}
	if w.link != "" {
		o.Warm = 0 // the lead-in takes seconds by itself
	}
	n := corpus.Round
	if w.callers > 0 {
		conns := max(1, w.config.Conns)
		n = each * ((w.callers + conns - 1) / conns * conns) // so that the calls of one caller share a connection
	}
	calls := make([]rpcbench.Call, n)
	for i := range calls {
		var err error
		if calls[i], err = w.prepare(o.Fixture, i); err != nil {
			return err
		}
	}
	if w.callers == 0 {
		o.Op = func() error {
			o.dialed += dials
			next++
			err := calls[next%len(calls)](background)
			if o.timed {
				now := time.Now()
				o.Latencies.Record(now.Sub(o.last))
				o.last = now
			}
			return err
		}
		return nil
	}
	o.Calls, o.Warm = w.callers*each, 4
	took := make([][each]time.Duration, w.callers)
	o.Op = func() error { // every caller makes its calls, all at the same time
		var callers sync.WaitGroup
		errs := make([]error, w.callers)
		for i := range errs {
			callers.Go(func() {
				last := time.Now()
				for j := range each {
					errs[i] = cmp.Or(errs[i], calls[i+j*n/each](background))
					now := time.Now()
					took[i][j], last = now.Sub(last), now
				}
			})
		}
		callers.Wait()
		for i := range took {
			for j := range each {
				if o.timed {
					o.Latencies.Record(took[i][j])
				}
			}
		}
		return cmp.Or(errs...)
	}
	return nil
}
