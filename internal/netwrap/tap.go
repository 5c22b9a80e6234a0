package netwrap

import (
	"bytes"
	"io"
	"net"
	"slices"
	"sync"
)

// Tap records every byte of the connections it wraps, for as long as it lives, and can alter what is read from them.
type Tap struct {
	mu    sync.Mutex
	conns []*TapConn

	filtering sync.Mutex // held while filter runs
	filter    Filter
}

// A Filter stands between the tap's connections and their readers: it is given what one Read took off the wire, and
// returns what the reader gets instead, more or less or nothing. It may change p in place and return it; it must not
// keep p, nor call SetFilter. After an error c is closed, and its reader gets out and then that error, for ever.
type Filter func(c *TapConn, p []byte) (out []byte, err error)

// Replace puts one name in the place of another. It works per Read: a name that straddles two is not found.
func Replace(old, with []byte) Filter {
	return func(_ *TapConn, p []byte) ([]byte, error) { return bytes.ReplaceAll(p, old, with), nil }
}

// Cut ends the first connection that reads anything after its next n bytes: the reader gets those and then io.EOF.
func Cut(n int) Filter {
	return first(func(_ *TapConn, p []byte) ([]byte, error) {
		if len(p) < n {
			n -= len(p)
			return p, nil
		}
		return p[:n], io.EOF
	})
}

// Replay delivers recorded bytes to the first connection that reads anything, and discards what it really reads.
func Replay(recorded []byte) Filter {
	return first(func(*TapConn, []byte) ([]byte, error) {
		out := recorded
		recorded = nil
		return out, nil
	})
}

// first applies f to the connection that it is first given, and not to the one that a client opens when that is spoilt.
func first(f Filter) Filter {
	var only *TapConn
	return func(c *TapConn, p []byte) ([]byte, error) {
		if only == nil {
			only = c
		}
		if c != only {
			return p, nil
		}
		return f(c, p)
	}
}

// SetFilter lets all that is read from now on pass through f, on every connection, in Reads already waiting too; nil
// ends that. Calls of f never overlap, and when SetFilter returns the filter before it runs no more.
func (t *Tap) SetFilter(f Filter) {
	t.filtering.Lock()
	defer t.filtering.Unlock()
	t.filter = f
}

func (t *Tap) pass(c *TapConn, p []byte) ([]byte, error) {
	t.filtering.Lock()
	defer t.filtering.Unlock()
	if t.filter == nil {
		return p, nil
	}
	return t.filter(c, p)
}

func (t *Tap) Wrap(conn net.Conn) net.Conn {
	c := &TapConn{Conn: conn, tap: t, close: sync.OnceValue(conn.Close)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conns = append(t.conns, c)
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
	net.Conn
	tap   *Tap
	close func() error // once: the owner may close what the tap has closed after a filter's error

	writing, reading sync.Mutex // keep the order on record that of the wire
	left             []byte     // of the filter's output, for the next Read
	err              error      // of the filter

	mu             sync.Mutex
	sent, received []byte
}

// Sent returns a copy of everything written. What a Write has been given is there before the peer can have it: who has
// the reply has the whole request on record, whichever goroutine wrote it.
func (c *TapConn) Sent() []byte { return c.copyOf(&c.sent) }

// Received returns a copy of everything read, as it came off the wire and before any filter.
func (c *TapConn) Received() []byte { return c.copyOf(&c.received) }

func (c *TapConn) copyOf(record *[]byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(*record)
}

func (c *TapConn) append(record *[]byte, p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*record = append(*record, p...)
}

func (c *TapConn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.append(&c.sent, p)
	n, err := c.Conn.Write(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = c.sent[:len(c.sent)-len(p)+n]
	return n, err
}

// Read delivers what a filter's longer output has left over in spite of a deadline or Close.
func (c *TapConn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	for len(c.left) == 0 && c.err == nil {
		n, err := c.Conn.Read(p)
		if n == 0 {
			return 0, err
		}
		c.append(&c.received, p[:n])
		out, err := c.tap.pass(c, p[:n:n]) // an error of Read beside bytes comes again
		if err != nil {
			c.err = err
			_ = c.close()
		}
		c.left = bytes.Clone(out)
	}
	n := copy(p, c.left)
	c.left = c.left[n:]
	if n == 0 {
		return 0, c.err
	}
	return n, nil
}

func (c *TapConn) Close() error { return c.close() }
