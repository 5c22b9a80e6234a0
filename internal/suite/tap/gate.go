package tap

import (
	"bytes"
	"context"
	"net"
	"sync"
)

// Gate holds back what the wrapped connections receive, so that a test decides when a request arrives at a server.
type Gate struct {
	mu     sync.Mutex
	marker []byte
	tell   func()          // says that a connection is held
	shut   context.Context // the gate is shut until it is done; nil before the first Hold
	open   context.CancelCauseFunc
}

func (g *Gate) Wrap(beneath net.Conn) net.Conn {
	c := wrap(beneath)
	go c.pump(beneath, func(p []byte) ([]byte, error) {
		if shut := g.hold(p); shut != nil {
			select {
			case <-shut.Done():
			case <-c.closed.Done(): // the pipe may still be open, and a Read would get p
				return nil, nil
			}
			if context.Cause(shut) == net.ErrClosed {
				return nil, net.ErrClosed
			}
		}
		return p, nil
	})
	return c
}

// Hold shuts an open gate. From the first bytes on that contain marker, a connection delivers nothing until it is
// released, dropped or closed. The channel is closed when the first connection is held. An empty marker holds whatever
// comes next, which over HTTP/2 may be a PING or WINDOW_UPDATE of the previous call.
func (g *Gate) Hold(marker []byte) <-chan struct{} {
	held, tell := context.WithCancel(context.Background())
	g.mu.Lock()
	defer g.mu.Unlock()
	g.marker, g.tell = bytes.Clone(marker), tell
	g.shut, g.open = context.WithCancelCause(context.Background())
	return held.Done()
}

// hold returns the context to wait for before p is delivered, or nil.
func (g *Gate) hold(p []byte) context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil || g.shut.Err() != nil || !bytes.Contains(p, g.marker) {
		return nil
	}
	g.tell()
	return g.shut
}

// Release opens the gate and delivers what was held.
func (g *Gate) Release() { g.end(nil) }

// Drop opens the gate and closes the connections that were held, without delivering anything.
func (g *Gate) Drop() { g.end(net.ErrClosed) }

func (g *Gate) end(cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		g.open(cause)
	}
}
