package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
)

// Facts are what calls do beside taking time. Bytes and allocations are per call, of client and server together unless
// the server has a process of its own.
type Facts struct {
	Calls       int64   `json:"calls"`
	Sent        float64 `json:"sent"` // bytes on the client's connections, beneath TLS
	Received    float64 `json:"received"`
	Writes      float64 `json:"writes,omitzero"` // of the client to its connections: a system call each, as reads are
	Reads       float64 `json:"reads,omitzero"`
	Allocs      float64 `json:"allocs"`
	AllocBytes  float64 `json:"alloc_bytes"`
	Connections int64   `json:"connections"` // that the calls used

	// Of a server that has a process of its own; 0 in results that are older than these names.
	ServerAllocs     float64 `json:"server_allocs,omitzero"`
	ServerAllocBytes float64 `json:"server_alloc_bytes,omitzero"`

	// Of the server to its connections, wherever it is; 0 in results that are older than these names. Its bytes are the
	// client's, the other way round.
	ServerWrites float64 `json:"server_writes,omitzero"`
	ServerReads  float64 `json:"server_reads,omitzero"`

	// Handled is how many calls the server handled for each that was made. It is 0 if the server counts none, and in
	// older results.
	Handled float64 `json:"handled,omitzero"`
}

// patient is a context for opening on a machine that may be busy, whose messages may be large. It ends when nothing has
// crossed the connections for so long, and after many times that.
func patient(ctx context.Context, idle time.Duration, crossed func() int64) (_ context.Context, opened func()) {
	longest := 6 * idle
	ctx, give := context.WithCancelCause(ctx)
	ctx, cancel := context.WithTimeoutCause(ctx, longest, fmt.Errorf("not ready after %v, although it went on: quiet the "+
		"machine, or take fewer connections or a smaller message", longest))
	watch := Watch(idle, crossed, func() error {
		give(fmt.Errorf("not ready: nothing has crossed its connections for %v", idle))
		return nil
	})
	return ctx, func() {
		watch.Stop()
		cancel()
		give(nil)
	}
}

const (
	opens       = 10 * time.Second // in which something crosses connections that are opened
	hang        = 30 * time.Second // without that, after which the fixture is closed, so that a call fails
	acceptLimit = 2 * time.Second  // until a server has accepted the connections that its client has opened
)

// CountCalls makes calls of a stack at the workload, so many or as many as two seconds allow, and counts. All callers
// take part: over HTTP/2 the calls of a connection share pings and window updates.
func (w Workload) CountCalls(ctx context.Context, stack rpcbench.Stack, calls int64) (f Facts, err error) {
	const longest = 2 * time.Second
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cmp.Or(w.Procs, environ.Procs())))
	var wired tap.Counter
	crossed := func() int64 { return wired.Sent.Load() + wired.Received.Load() }
	opening, opened := patient(ctx, opens, crossed)
	defer opened()
	o, err := w.Open(opening, stack,
		Setup{Config: rpcbench.Config{WrapClient: wired.Wrap}, Starts: int(calls), Seed: 1, Counts: true})
	if opened(); err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	err = Watched(hang, crossed, o.Fixture.Close, func() error {
		if err := o.Start(o.Warm); err != nil {
			return err
		}
		accepted := int64(0)
		if w.NewConn { // then only those of the calls count
			accepted = o.Fixture.Accepted()
		}
		limited, cancel := context.WithTimeout(ctx, longest)
		defer cancel()
		before, err := o.reported()
		if err != nil {
			return err
		}
		sent, received, allocated := wired.Sent.Load(), wired.Received.Load(), Allocated()
		writes, reads := wired.Writes.Load(), wired.Reads.Load()
		if err := o.Loop.Run(limited, calls); err != nil {
			return err
		}
		bytes, allocs := allocated()
		after, err := o.reported()
		if err != nil {
			return err
		}
		f.Calls = o.Figures.Latency.Count()
		n := float64(f.Calls)
		f.Connections = o.Fixture.Accepted() - accepted
		f.Sent, f.Received = float64(wired.Sent.Load()-sent)/n, float64(wired.Received.Load()-received)/n
		f.Writes, f.Reads = float64(wired.Writes.Load()-writes)/n, float64(wired.Reads.Load()-reads)/n
		f.Allocs, f.AllocBytes = float64(allocs)/n, float64(bytes)/n
		f.ServerAllocs, f.ServerAllocBytes = float64(after.Allocs-before.Allocs)/n, float64(after.Bytes-before.Bytes)/n
		f.ServerWrites, f.ServerReads = float64(after.Writes-before.Writes)/n, float64(after.Reads-before.Reads)/n
		f.Handled = float64(after.Handled-before.Handled) / n
		if err := ctx.Err(); err != nil || o.counts(after.Handled-before.Handled) {
			return err // and if it didn't handle them all, Close says so
		}
		return o.carriesNone(f.Calls, min(wired.Sent.Load()-sent, wired.Received.Load()-received))
	})
	return f, err
}

// accepted is what a server with a process of its own reports, once it has accepted the connections that its client
// opened. A client that reconnects may give up a dial, and one side may know of a connection a little later than the
// other.
func (o *Open) accepted() (r child.Report, err error) {
	for began := time.Now(); ; {
		err := o.Server.Ask()
		r, opened := o.Server.Report, o.Fixture.Accepted()
		switch {
		case err != nil || r.Accepted == opened || o.Fixture.Stack.Traits.Reconnects:
			return r, err
		case time.Since(began) > acceptLimit:
			return r, fmt.Errorf("%s: the server's process accepted %d connections, its client opened %d",
				o.Fixture.Stack.Name, r.Accepted, opened)
		}
		<-time.After(time.Millisecond)
	}
}
