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
func (c *crossed) since() (grown float64, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, all := c.bytes, len(c.conns)
	c.conns, c.bytes = carried(c.conns)
	return float64(c.bytes) - float64(before), len(c.conns) == all && c.bytes > 0 // older kernels don't count them
}

// Start starts the callers, who make so many calls each to warm up.
func (o *Open) Start(warm int) error {
	o.crossed.since() // and forget what a start that was tried again has closed
	before := o.Loop.Begun()
	if err := o.Loop.Start(warm); err != nil {
		return err
	}
	o.crossed.calls = o.Loop.Begun()
	calls := o.crossed.calls - before
	bytes, known := o.crossed.since()
	if calls == 0 || !known {
		return nil
	}
	each := bytes / float64(calls)
	if each < o.Least {
		return o.remembers(calls, each)
	}
	if o.Least = each / 2; o.vary {
		o.Least = each / 20
	}
	return nil
}

// missed returns an error if the calls after the warm-up carried fewer bytes than Least, or if fewer than half of those
// that open a connection did. Where neither is known, or few calls were made, there is no error.
func (o *Open) missed() error {
	const fewest = 16
	if o.Loop == nil || o.Loop.Begun()-o.crossed.calls < fewest {
		return nil
	}
	calls := o.Loop.Begun() - o.crossed.calls
	if opened := o.Fixture.Accepted(); o.dials > 0 && opened < o.Loop.Begun()/2 {
		return fmt.Errorf("%s: %d calls opened %d connections: its Call does not call each time",
			o.Fixture.Stack.Name, o.Loop.Begun(), opened)
	}
	bytes, known := o.crossed.since()
	if each := bytes / float64(calls); known && each < o.Least {
		return o.remembers(calls, each)
	}
	return nil
}

func (o *Open) remembers(calls int64, each float64) error {
	return fmt.Errorf("%s: %d calls sent and received %.0f bytes each, where those before had %.0f or more: "+
		"its Call does not call each time", o.Fixture.Stack.Name, calls, each, o.Least)
}
