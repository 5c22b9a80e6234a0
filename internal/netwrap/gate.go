package netwrap

import (
	"bytes"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// Gate holds back what the connections it wraps read, so that a test decides when a request arrives, if ever. It goes
// on a server's side, where it knows that the bytes have come. Writing is never held.
type Gate struct {
	mu     sync.Mutex
	marker []byte
	arrive func()             // nil while the gate is open
	held   map[*gateConn]bool // since the last Hold
}

func (g *Gate) Wrap(conn net.Conn) net.Conn {
	return &gateConn{Conn: conn, gate: g, wake: sync.NewCond(&g.mu)}
}

// Hold shuts the gate: from the first Read on that finds marker in its data, a connection delivers nothing until it is
// released, dropped or closed. The channel it returns is closed when the first connection is held. An empty marker holds
// whatever comes next, which over HTTP/2 may well be a straggler of the call before: a PING or WINDOW_UPDATE.
func (g *Gate) Hold(marker []byte) <-chan struct{} {
	held := make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.marker = bytes.Clone(marker)
	g.arrive = sync.OnceFunc(func() { close(held) })
	if g.held == nil {
		g.held = map[*gateConn]bool{}
	}
	return held
}

// Release opens the gate: what was held is delivered.
func (g *Gate) Release() { g.open(false) }

// Drop opens the gate and closes the connections that were held: what they held is never delivered.
func (g *Gate) Drop() {
	for _, c := range g.open(true) {
		_ = c.Close()
	}
}

func (g *Gate) open(drop bool) []*gateConn {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.arrive = nil
	held := slices.Collect(maps.Keys(g.held))
	clear(g.held)
	for _, c := range held {
		c.closed = c.closed || drop
		c.wake.Broadcast()
	}
	return held
}

// holds says whether c may not deliver data yet.
func (g *Gate) holds(c *gateConn, data []byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.arrive != nil && !g.held[c] && bytes.Contains(data, g.marker) {
		g.held[c] = true
		g.arrive()
	}
	return g.held[c]
}

type gateConn struct {
	net.Conn
	gate *Gate

	reading sync.Mutex
	data    []byte // read and not delivered

	wake     *sync.Cond // on the gate's mutex, as what follows
	closed   bool
	deadline time.Time
	timer    *time.Timer
}

func (c *gateConn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if len(c.data) == 0 {
		n, err := c.Conn.Read(p)
		if n == 0 || !c.gate.holds(c, p[:n]) {
			return n, err
		}
		c.data = bytes.Clone(p[:n]) // an error beside bytes comes again
	} else {
		c.gate.holds(c, c.data) // what one Hold has left is subject to the next
	}
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case !c.deadline.IsZero() && !time.Now().Before(c.deadline):
			return 0, os.ErrDeadlineExceeded // net/http ends its background read so, and reads on: the data stay
		case !c.gate.held[c]:
			n := copy(p, c.data)
			c.data = c.data[n:]
			return n, nil
		}
		c.wake.Wait()
	}
}

func (c *gateConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *gateConn) SetReadDeadline(t time.Time) error {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
	c.deadline = t
	if left := time.Until(t); left > 0 {
		c.deadline = time.Now().Add(left) // on the monotonic clock, which the timer runs on
		c.timer = time.AfterFunc(left, c.awake)
	}
	c.wake.Broadcast()
	return c.Conn.SetReadDeadline(t)
}

// awake makes a waiting Read look again.
func (c *gateConn) awake() {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	c.wake.Broadcast()
}

func (c *gateConn) Close() error {
	c.gate.mu.Lock()
	c.closed = true
	c.wake.Broadcast()
	c.gate.mu.Unlock()
	return c.Conn.Close()
}
