package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/loop"
	"github.com/rpcbench/rpcbench/internal/measure/network"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
)

// Setup is what opening a workload needs besides. The zero value opens it by itself, with figures of its own.
type Setup struct {
	rpcbench.Config               // where the server is, and what to wrap connections with
	Figures         *loop.Figures // of the calls; nil makes new ones
	Starts          int           // that are planned, of a workload with a rate; 0 plans none
	Seed            uint64        // of the plan, and of when callers begin
	Spread          time.Duration // over which callers without a plan begin
	InTurn          bool          // a planned call was seen to take long
	Server          *child.Server // at Remote, if this process has started it
	Counts          bool          // what connections carry, and wraps them at both ends

	Network *network.Network // of a workload whose link is routed
}

// Open is a workload that is open for one stack.
type Open struct {
	Fixture *rpcbench.Fixture
	Loop    loop.Loop // makes the calls
	Figures *loop.Figures
	Warm    int           // calls of each caller after which connections, pools and caches are warm
	Server  *child.Server // that has a process of its own; else nil

	starts  bool         // Server, which then ends with it
	counted *tap.Counter // of the server's connections in this process; nil: nobody counts
	echoes  bool         // which own servers need not count
	conns   int64        // of the fixture
	spare   int64        // that its client may open besides
	dials   int64        // of a call
	handled int64        // by the server before the first call
	crossed crossed
}

// Beyond is how many connections the server has accepted that the workload does not declare. A stack that reconnects
// declares none.
func (o *Open) Beyond() int64 {
	if o.Fixture.Stack.Traits.Reconnects {
		return 0
	}
	beyond := o.Fixture.Accepted() - o.conns - o.dials*o.Loop.Begun()
	return beyond - max(0, min(beyond, o.spare))
}

// Close closes the fixture, then the server in a process of its own. It returns an error if the calls stopped crossing
// the connections.
func (o *Open) Close() error {
	err := cmp.Or(o.missed(), o.Fixture.Close())
	if o.starts {
		err = cmp.Or(err, o.Server.Close())
	}
	return err
}

// Serve starts the server of a workload that is apart, and tells the setup where it is. It returns nil if the workload
// is not apart, or if the setup tells already.
func (w Workload) Serve(ctx context.Context, stack rpcbench.Stack, setup *Setup) (server *child.Server, err error) {
	if !w.Apart || setup.Remote != "" {
		return nil, nil
	}
	config := rpcbench.Config{TLS: w.TLS, Unix: w.Unix, Wait: w.Wait}
	start := func() (err error) {
		server, err = child.Start(ctx, stack, config, setup.Counts)
		return err
	}
	if setup.Network == nil {
		err = start()
	} else {
		config.Addr = network.Server + ":0"
		err = setup.Network.There(start)
	}
	if err != nil {
		return nil, err
	}
	setup.Remote, setup.Certificate, setup.Server = server.Addr, server.Certificate, server
	return server, nil
}

// Open starts what the workload needs of a stack, and prepares the calls. The calls of a stack without streams are
// single ones. Unless the workload asks for it, the contexts of calls have no deadline, since one costs a stack more
// than another.
func (w Workload) Open(ctx context.Context, stack rpcbench.Stack, setup Setup) (o *Open, err error) {
	err = cmp.Or(w.Check(), w.checkStreams(stack.Traits))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", stack.Name, err)
	}
	link, linked := w.Linked()
	if link.Routed && setup.Network == nil {
		return nil, fmt.Errorf("%s: Link %s is a network with a router, which rpcbench run makes alone", stack.Name, w.Link)
	}
	o = &Open{Figures: setup.Figures, echoes: w.Structured()}
	started, err := w.Serve(ctx, stack, &setup)
	if err != nil {
		return nil, err
	}
	o.Server, o.starts = setup.Server, started != nil
	config := setup.Config
	config.Conns, config.TLS, config.Unix = w.Connections(stack.Traits), w.TLS, w.Unix
	if w.Headers {
		config.Headers = corpus.Headers()
	}
	if linked && !link.Routed {
		config.WrapClient = wrapped(link.Shared(), config.WrapClient)
	}
	if w.NewConn {
		o.dials, config.WrapClient = 1, wrapped(resetOnClose, config.WrapClient)
	}
	if config.WrapClient == nil && !stack.Traits.Reconnects { // which would take a lock for each dial of timed calls
		config.WrapClient = o.crossed.keep
	}
	if config.Remote == "" { // else it was told when it was started
		config.Wait = w.Wait
		if setup.Counts {
			o.counted = new(tap.Counter)
			config.WrapServer = wrapped(config.WrapServer, o.counted.Wrap)
		}
	}
	if o.Fixture, err = rpcbench.Start(ctx, stack, config); err != nil {
		if o.starts {
			err = errors.Join(err, o.Server.Close())
		}
		return nil, err
	}
	o.conns, o.spare = int64(config.Conns), w.spare(stack.Traits, setup.Remote != "" && !w.Apart)
	if err := w.prepare(o, setup); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", stack.Name, err), o.Close())
	}
	return o, nil
}

// prepare prepares the calls of each caller. A multiplexed stack binds each call to the next connection in turn. The
// calls are therefore those of a multiple of the connections, so that the calls of one caller share a connection. The
// surplus is never made.
func (w Workload) prepare(o *Open, setup Setup) error {
	callers, calls := w.callers()
	conns := int(o.conns)
	rounds := make([][]func(context.Context) error, (callers+conns-1)/conns*conns)
	p := prepared{Workload: w, fixture: o.Fixture}
	for j := range calls {
		for i := range rounds {
			call, err := p.call(i*calls + j)
			if err != nil {
				return err
			}
			rounds[i] = append(rounds[i], call)
		}
	}
	var plan [][]time.Duration
	if w.Rate > 0 && setup.Starts > 0 {
		inTurn := setup.InTurn || w.InTurn(w.delay())
		plan = loop.Plan(callers, w.Rate, setup.Starts, setup.Seed, inTurn)
	}
	if o.Figures == nil {
		o.Figures = loop.NewFigures(plan != nil)
	}
	o.Loop, o.Warm = loop.New(loop.Spec{Rounds: rounds[:callers], Plan: plan, Figures: o.Figures,
		Spread: setup.Spread, Seed: setup.Seed, Patient: w.Routed()}), w.warm(callers, calls)
	return nil
}

// warm is how many calls of a round each caller makes until it is warm.
func (w Workload) warm(callers, calls int) int {
	warm := 4 * calls
	switch {
	case w.Link != "" && callers == 1 && !w.Windowed():
		return 0 // the lead-in takes seconds by itself
	case w.Link != "":
		return 1
	case w.NewConn:
		warm /= 4
	case w.Payload == Drawn:
		warm = calls
	}
	return warm
}
