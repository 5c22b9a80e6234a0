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
	mu    sync.Mutex // of all connections too; held while a filter runs
	conns []*TapConn
}

// A Filter is given what has come off the wire, piece by piece, and returns what the reader gets instead: more, less or
// nothing. It may change p in place; it must not keep p, nor call the tap. After an error the connection is closed, and
// its reader gets out and then that error, for ever.
type Filter func(p []byte) (out []byte, err error)

// Replace puts one name in the place of another. A name that straddles two pieces is not found.
func Replace(old, with []byte) Filter {
	return func(p []byte) ([]byte, error) { return bytes.ReplaceAll(p, old, with), nil }
}

// Cut ends a connection after its next n bytes: the reader gets those and then io.EOF.
func Cut(n int) Filter {
	return func(p []byte) ([]byte, error) {
		if n -= len(p); n > 0 {
			return p, nil
		}
		return p[:max(0, len(p)+n)], io.EOF
	}
}

// Replay delivers recorded bytes, once, and discards what really comes.
func Replay(recorded []byte) Filter {
	return func([]byte) (out []byte, _ error) {
		out, recorded = recorded, nil
		return out, nil
	}
}

// SetFilter lets all that comes from now on pass through f, on the connections wrapped so far; nil ends that. So one
// that a client opens when these are spoilt has none. Calls of f never overlap. When SetFilter returns, the filter
// before no longer runs.
func (t *Tap) SetFilter(f Filter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.conns {
		c.filter = f
	}
}

func (t *Tap) Wrap(beneath net.Conn) net.Conn {
	c := &TapConn{conn: wrap(beneath), tap: t}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conns = append(t.conns, c)
	go c.pump(beneath, c.record)
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
	writing sync.Mutex // keeps the order on record that of the wire

	tap            *Tap // whose mutex guards what follows
	filter         Filter
	sent, received []byte
}

// Bytes returns copies of everything given to Write, which is there before the peer can have it, and of everything that
// has come, before any filter. What the owner has read is in it.
func (c *TapConn) Bytes() (sent, received []byte) {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	return bytes.Clone(c.sent), bytes.Clone(c.received)
}

func (c *TapConn) record(p []byte) ([]byte, error) {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	c.received = append(c.received, p...)
	if c.filter == nil {
		return p, nil
	}
	return c.filter(p)
}

func (c *TapConn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.tap.mu.Lock()
	c.sent = append(c.sent, p...)
	c.tap.mu.Unlock()
	return c.conn.Write(p)
}
