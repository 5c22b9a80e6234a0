package relay

import (
	"bytes"
	"net"
	"sync"
)

// Gate holds back what the connections it wraps receive, so that a test decides when a request arrives at a server.
type Gate struct {
	mu      sync.Mutex
	marker  []byte
	arrived func()        // nil while the gate is open
	opened  chan struct{} // closed to let go what is held
	held    []*conn
}

func (g *Gate) Wrap(beneath net.Conn) net.Conn {
	c := wrap(beneath)
	go c.pump(beneath, func(p []byte) ([]byte, error) {
		if opened := g.hold(c, p); opened != nil {
			select {
			case <-opened:
			case <-c.closed.Done(): // the pipe may still be open
				return nil, net.ErrClosed
			}
		}
		return p, nil
	})
	return c
}

// Hold shuts the gate: from the first bytes on that contain marker, a connection delivers nothing until it is released,
// dropped or closed. The channel is closed when the first connection is held. An empty marker holds whatever comes next,
// which over HTTP/2 may be a PING or WINDOW_UPDATE of the call before.
func (g *Gate) Hold(marker []byte) <-chan struct{} {
	held := make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.marker, g.arrived = bytes.Clone(marker), sync.OnceFunc(func() { close(held) })
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
	return held
}

// hold returns what c must wait for before it delivers p; nil if nothing.
func (g *Gate) hold(c *conn, p []byte) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.arrived == nil || !bytes.Contains(p, g.marker) {
		return nil
	}
	g.held = append(g.held, c)
	g.arrived()
	return g.opened
}

// Release opens the gate: what was held is delivered.
func (g *Gate) Release() { g.open(func(*conn) {}) }

// Drop opens the gate and closes the connections that were held: what they held is never delivered.
func (g *Gate) Drop() { g.open(func(c *conn) { _ = c.Close() }) }

func (g *Gate) open(before func(*conn)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		return
	}
	for _, c := range g.held {
		before(c)
	}
	close(g.opened)
	g.arrived, g.opened, g.held = nil, nil, nil
}
