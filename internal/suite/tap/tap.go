// Package tap wraps connections: [Tap] records bytes and can change them, [Gate] holds requests back in front of a
// server, [Link] emulates a network, and [Counter] counts bytes.
//
// A wrapped connection passes golang.org/x/net/nettest and ends as TCP does. What was written before Close arrives,
// Close ends waiting reads and writes with net.ErrClosed, and the owner reads the peer's EOF or reset. Wrappers nest.
// They cost time, so only a Link belongs beneath a timed loop.
package tap

import (
	"bytes"
	"io"
	"net"
	"slices"
	"sync"
)

// Tap records every byte of the connections that it wraps, and can change what is read from them.
type Tap struct {
	mu    sync.Mutex // guards all connections too; held while a filter runs
	conns []*TapConn
}

// A Filter gets what comes off the wire, piece by piece, and returns what the reader gets instead, which may be longer,
// shorter or empty. It may change p in place. It must neither keep p nor call the tap. After an error the connection is
// closed, and its reader gets out and then that error at each read.
type Filter func(p []byte) (out []byte, err error)

// Replace replaces one name by another. It does not find a name that is split between two pieces.
func Replace(old, with []byte) Filter {
	return func(p []byte) ([]byte, error) { return bytes.ReplaceAll(p, old, with), nil }
}

// Cut ends a connection after the next n bytes: the reader gets these bytes and then io.EOF.
func Cut(n int) Filter {
	return func(p []byte) ([]byte, error) {
		if n -= len(p); n > 0 {
			return p, nil
		}
		return p[:max(0, len(p)+n)], io.EOF
	}
}

// Replay delivers recorded bytes once, and discards what really comes.
func Replay(recorded []byte) Filter {
	return func([]byte) (out []byte, _ error) {
		out, recorded = recorded, nil
		return out, nil
	}
}

// SetFilter sends what comes from now on through f, on the connections that are wrapped so far. A connection that a
// client opens later has no filter. nil removes the filter. Calls of f never overlap. After SetFilter returns, the
// previous filter no longer runs.
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
	writing sync.Mutex // keeps the recorded order equal to that on the wire

	tap            *Tap // its mutex guards the next fields
	filter         Filter
	sent, received []byte
}

// Bytes returns everything that was written and everything that has come, before any filter. Bytes are recorded before
// the peer or the owner can read them. They are the tap's own: the caller must not change them.
func (c *TapConn) Bytes() (sent, received []byte) {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	return slices.Clip(c.sent), slices.Clip(c.received)
}

func (c *TapConn) record(p []byte) ([]byte, error) {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	c.received = kept(c.received, p)
	if c.filter == nil {
		return p, nil
	}
	return c.filter(p)
}

func (c *TapConn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.tap.mu.Lock()
	c.sent = kept(c.sent, p)
	c.tap.mu.Unlock()
	return c.conn.Write(p)
}

// kept appends to bytes, of which there may be megabytes. Room grows by as much as there is: by a quarter, as append
// does it, each byte would be copied five times.
func kept(all, p []byte) []byte {
	if cap(all)-len(all) < len(p) {
		all = slices.Grow(all, max(len(all), len(p)))
	}
	return append(all, p...)
}
