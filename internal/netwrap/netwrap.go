// Package netwrap wraps net.Listener and net.Conn to see what really crosses a connection, and to spoil it on purpose:
// [Listener] counts connections, [Counter] bytes, [Tap] records them and can alter what is read, [Gate] holds requests
// back in front of a server, [Link] emulates a network. All but the first have a Wrap method to be given to whatever
// listens or dials; they nest.
//
// A wrapped connection passes golang.org/x/net/nettest, but it hides *net.TCPConn's fast paths and costs time: none of
// this belongs beneath a timed loop, but for a Link whose delay is what the loop is about. There is nothing of TLS here,
// so beneath it all bytes are ciphertext.
package netwrap

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
	if err != nil {
		return nil, err
	}
	l.accepted.Add(1)
	if l.Wrap == nil {
		return c, nil
	}
	return l.Wrap(c), nil
}

// Accepted returns how many connections Accept has returned.
func (l *Listener) Accepted() int64 { return l.accepted.Load() }

// Counter counts the bytes of all connections it has wrapped.
type Counter struct{ sent, received atomic.Int64 }

func (c *Counter) Wrap(conn net.Conn) net.Conn { return &countedConn{conn, c} }

// Sent returns the bytes written. They count from before the peer can have them: who has the reply has the whole request
// counted, whichever goroutine wrote it.
func (c *Counter) Sent() int64 { return c.sent.Load() }

// Received returns the bytes read.
func (c *Counter) Received() int64 { return c.received.Load() }

type countedConn struct {
	net.Conn
	counter *Counter
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.counter.received.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.counter.sent.Add(int64(len(p)))
	n, err := c.Conn.Write(p)
	if n < len(p) {
		c.counter.sent.Add(int64(n - len(p)))
	}
	return n, err
}
