package relay

import (
	"bytes"
	"io"
	"net"
	"slices"
	"sync"
)

// Tap records every byte of the connections it wraps, for as long as it lives, and can alter what is read from them.
type Tap struct {
	mu     sync.Mutex // held while filter runs
	conns  []*TapConn
	filter Filter
}

// A Filter is given what has come off the wire, piece by piece, and returns what the reader gets instead: more, less or
// nothing. It may change p in place; it must not keep p, nor call the tap. After an error c is closed, and its reader gets
// out and then that error, for ever.
type Filter func(c *TapConn, p []byte) (out []byte, err error)

// Replace puts one name in the place of another. A name that straddles two pieces is not found.
func Replace(old, with []byte) Filter {
	return func(_ *TapConn, p []byte) ([]byte, error) { return bytes.ReplaceAll(p, old, with), nil }
}

// Cut ends the first connection that receives anything after its next n bytes: the reader gets those and then io.EOF.
func Cut(n int) Filter {
	return first(func(p []byte) ([]byte, error) {
		if n -= len(p); n > 0 {
			return p, nil
		}
		return p[:len(p)+n], io.EOF
	})
}

// Replay delivers recorded bytes to the first connection that receives anything, and discards what really comes.
func Replay(recorded []byte) Filter {
	return first(func([]byte) (out []byte, _ error) {
		out, recorded = recorded, nil
		return out, nil
	})
}

// first applies f to the connection that it is first given, and not to the one that a client opens when that is spoilt.
func first(f func(p []byte) ([]byte, error)) Filter {
	var only *TapConn
	return func(c *TapConn, p []byte) ([]byte, error) {
		if only == nil {
			only = c
		}
		if c != only {
			return p, nil
		}
		return f(p)
	}
}

// SetFilter lets all that comes from now on pass through f, on every connection; nil ends that. Calls of f never overlap.
// When SetFilter returns, the filter before no longer runs.
func (t *Tap) SetFilter(f Filter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.filter = f
}

func (t *Tap) Wrap(beneath net.Conn) net.Conn {
	c := &TapConn{conn: wrap(beneath)}
	t.mu.Lock()
	t.conns = append(t.conns, c)
	t.mu.Unlock()
	go c.pump(beneath, func(p []byte) ([]byte, error) {
		c.received.add(p)
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.filter == nil {
			return p, nil
		}
		return t.filter(c, p)
	})
	return c
}

// Conns returns the connections in the order they were wrapped, closed ones too.
func (t *Tap) Conns() []*TapConn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.conns)
}

// TapConn is one recorded connection.
type TapConn struct {
	*conn
	writing        sync.Mutex // keeps the order on record that of the wire
	sent, received record
}

// Sent returns a copy of everything given to Write. It is there before the peer can have it.
func (c *TapConn) Sent() []byte { return c.sent.copy() }

// Received returns a copy of everything that has come, before any filter. What the owner has read is in it.
func (c *TapConn) Received() []byte { return c.received.copy() }

func (c *TapConn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.sent.add(p)
	return c.conn.Write(p)
}

type record struct {
	mu    sync.Mutex
	bytes []byte
}

func (r *record) copy() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.bytes)
}

func (r *record) add(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes = append(r.bytes, p...)
}
