package workload

import (
	"fmt"
	"net"
	"sync"

	"github.com/rpcbench/rpcbench/internal/measure/child"
)

// crossed knows the bytes of a client's own connections, which nothing wraps, and which are not asked while calls are
// timed.
type crossed struct {
	mu    sync.Mutex
	conns []net.Conn // none over a link, and where each call has one
	calls int64      // made until the warm-up ended
	bytes uint64     // so far
}

// keep remembers a connection, and returns it.
func (c *crossed) keep(conn net.Conn) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conn)
	return conn
}

// since returns how many bytes were sent and received since it was called last. They are not known if a connection was
// closed meanwhile, such as one that net/http has given up. It is forgotten, and what comes after it is known again.
func (c *crossed) since() (grown int64, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, all := c.bytes, len(c.conns)
	c.conns, c.bytes = carried(c.conns)
	return int64(c.bytes - before), len(c.conns) == all && c.bytes > 0 // older kernels don't count them
}

// Start starts the callers, who make so many calls each to warm up.
func (o *Open) Start(warm int) error {
	if o.Loop.Begun() == 0 {
		r, err := o.reported()
		if err != nil {
			return err
		}
		o.handled = r.Handled
	}
	o.crossed.since() // and forget what a start that was tried again has closed
	if err := o.Loop.Start(warm); err != nil {
		return err
	}
	o.crossed.since()
	o.crossed.calls = o.Loop.Begun()
	return nil
}

// missed returns an error if calls didn't do what they are measured for: if they opened fewer connections, where each
// opens its own, if the server handled fewer, or, where it doesn't count, if those after the warm-up carried no bytes.
// Of a call that failed there is another error.
func (o *Open) missed() error {
	if o.Loop == nil || o.Loop.Begun() == 0 || o.Loop.Finish() != nil {
		return nil
	}
	r, err := o.reported()
	if err != nil {
		return err
	}
	calls, handled := o.Loop.Begun(), r.Handled-o.handled
	if opened := o.Fixture.Accepted(); opened < o.dials*calls {
		return o.skips("%d calls opened %d connections", calls, opened)
	}
	if o.counts(handled) { // it may have handled more, since a library tries a call again
		if handled < calls {
			return o.skips("its client made %d calls, and its server handled %d", calls, handled)
		}
		return nil
	}
	if bytes, known := o.crossed.since(); known {
		return o.carriesNone(calls-o.crossed.calls, bytes)
	}
	return nil
}

// counts tells whether the server counts the calls, of which it has handled so many: one that has counted none of those
// that opened the connections does not, and the handler of an echo need not.
func (o *Open) counts(handled int64) bool { return o.handled > 0 && (handled > 0 || !o.echoes) }

// carriesNone returns an error if calls have carried no bytes, or less than one each. How little more they carry says
// nothing: what a client compresses, with what it has sent before, may shrink to a few bytes.
func (o *Open) carriesNone(calls, bytes int64) error {
	if bytes < calls {
		return o.skips("%d calls carried %d bytes", calls, bytes)
	}
	return nil
}

func (o *Open) skips(seen string, of ...any) error {
	return fmt.Errorf("%s: "+seen+": its Call does not call each time", append([]any{o.Fixture.Stack.Name}, of...)...)
}

// reported is what the server reports. It fails if a process of its own has accepted other connections than its client
// opened: those of a client that dials by itself would be in no figure.
func (o *Open) reported() (r child.Report, err error) {
	switch {
	case o.Server == nil:
		r = child.Report{Handled: o.Fixture.Handled(), Accepted: o.Fixture.Accepted()}
		if o.counted != nil {
			r.Writes, r.Reads = o.counted.Writes.Load(), o.counted.Reads.Load()
		}
		return r, nil
	case !o.starts: // it serves others too
		err = o.Server.Ask()
		return o.Server.Report, err
	}
	return o.accepted()
}
