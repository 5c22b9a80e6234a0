package workload

import (
	"fmt"
	"net"
	"sync"
)

// crossed knows the bytes of a client's own connections, which nothing wraps, and which are not asked while calls are
// timed.
type crossed struct {
	mu    sync.Mutex
	conns []net.Conn // none over a link, and where each call has one
	calls int64      // made until the warm-up ended
	bytes uint64     // so far
	known bool
}

// keep remembers a connection, and returns it.
func (c *crossed) keep(conn net.Conn) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conn)
	return conn
}

// since returns how many bytes were sent and received since it was called last.
func (c *crossed) since() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.bytes
	c.bytes, c.known = carried(c.conns)
	return float64(c.bytes) - float64(before)
}

// Start starts the callers, who make so many calls each to warm up.
func (o *Open) Start(warm int) error {
	o.crossed.since()
	before, known := o.Loop.Begun.Load(), o.crossed.known
	if err := o.Loop.Start(warm); err != nil {
		return err
	}
	o.crossed.calls = o.Loop.Begun.Load()
	bytes, calls := o.crossed.since(), o.crossed.calls-before
	o.crossed.known = o.crossed.known && known
	if calls == 0 || !o.crossed.known { // such as after a connection that net/http has given up
		return nil
	}
	each := bytes / float64(calls)
	if each < o.Least {
		return o.remembers(calls, each)
	}
	o.Least = each / 2
	return nil
}

// missed returns an error if the calls after the warm-up carried fewer bytes than Least, or if fewer than half of those
// that open a connection did. Where neither is known, or few calls were made, there is no error.
func (o *Open) missed() error {
	const fewest = 16
	if o.Loop == nil || o.Loop.Begun.Load()-o.crossed.calls < fewest {
		return nil
	}
	calls := o.Loop.Begun.Load() - o.crossed.calls
	if opened := o.Fixture.Accepted(); o.dials > 0 && opened < o.Loop.Begun.Load()/2 {
		return fmt.Errorf("rpcbench: %s: %d calls opened %d connections: its Call does not call each time",
			o.Fixture.Stack.Name, o.Loop.Begun.Load(), opened)
	}
	known := o.crossed.known
	if each := o.crossed.since() / float64(calls); known && o.crossed.known && each < o.Least {
		return o.remembers(calls, each)
	}
	return nil
}

func (o *Open) remembers(calls int64, each float64) error {
	return fmt.Errorf("rpcbench: %s: %d calls sent and received %.0f bytes each, where those before had %.0f or more: "+
		"its Call does not call each time", o.Fixture.Stack.Name, calls, each, o.Least)
}
