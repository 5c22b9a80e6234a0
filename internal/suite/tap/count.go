package tap

import (
	"net"
	"sync/atomic"
)

// Counter counts the bytes of all connections that it wraps, and the calls of their methods.
type Counter struct {
	Sent     atomic.Int64 // bytes written, counted before the peer can read them
	Received atomic.Int64 // bytes read

	Writes, Reads atomic.Int64 // beneath TLS each is a system call at least
}

func (c *Counter) Wrap(beneath net.Conn) net.Conn { return &counted{beneath, c} }

type counted struct {
	net.Conn
	by *Counter
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.by.Received.Add(int64(n))
	c.by.Reads.Add(1)
	return n, err
}

func (c *counted) Write(p []byte) (int, error) {
	c.by.Sent.Add(int64(len(p)))
	c.by.Writes.Add(1)
	return c.Conn.Write(p)
}
