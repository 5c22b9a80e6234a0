package relay

import (
	"net"
	"sync/atomic"
)

// Listener counts the connections it accepts.
type Listener struct {
	net.Listener
	Wrap func(net.Conn) net.Conn // nil: Accept returns the bare connection, with nothing in its way

	accepted atomic.Int64
}

func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
		if l.Wrap != nil {
			c = l.Wrap(c)
		}
	}
	return c, err
}

// Accepted returns how many connections Accept has returned.
func (l *Listener) Accepted() int64 { return l.accepted.Load() }

// Counter counts the bytes of all connections it has wrapped.
type Counter struct{ sent, received atomic.Int64 }

func (c *Counter) Wrap(beneath net.Conn) net.Conn { return &counted{beneath, c} }

// Sent returns the bytes given to Write, counted before the peer can have them.
func (c *Counter) Sent() int64 { return c.sent.Load() }

// Received returns the bytes read.
func (c *Counter) Received() int64 { return c.received.Load() }

type counted struct {
	net.Conn
	by *Counter
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.by.received.Add(int64(n))
	return n, err
}

func (c *counted) Write(p []byte) (int, error) {
	c.by.sent.Add(int64(len(p)))
	return c.Conn.Write(p)
}
