// Package relay stands between a connection and its owner: [Tap] records bytes and can change them, [Gate] holds
// requests back in front of a server, [Link] emulates a network, [Counter] counts bytes, [Listener] connections. A
// relayed connection passes golang.org/x/net/nettest and ends as TCP does: what was written before Close arrives, Close
// ends what waits with net.ErrClosed, and the peer's EOF or reset is read as it is. Relays nest, and they cost time: of
// them, only a Link belongs beneath a timed loop.
package relay

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"
)

// conn is the owner's end. What the peer sends passes a net.Pipe, which has the owner's deadlines and partial reads.
type conn struct {
	net.Conn                  // beneath
	near, far net.Conn        // of the pipe: near is the owner's
	out       net.Conn        // where writes go: beneath or near
	end       func() error    // when the owner closes
	err       error           // the peer's; set before far is closed
	closed    context.Context // by the owner
	close     context.CancelCauseFunc
}

func wrap(beneath net.Conn) *conn {
	c := &conn{Conn: beneath, out: beneath, end: beneath.Close}
	c.near, c.far = net.Pipe()
	c.closed, c.close = context.WithCancelCause(context.Background())
	return c
}

// pump hands the owner what change makes of src, piece by piece, until src or the owner has ended. After an error of
// change the connection beneath is closed, and the owner reads the last piece and then that error.
func (c *conn) pump(src io.Reader, change func(p []byte) ([]byte, error)) {
	p := make([]byte, 32<<10)
	for c.err == nil {
		n, err := src.Read(p)
		c.err = err
		if n == 0 {
			continue
		}
		out, err := change(p[:n])
		if err != nil {
			_, c.err = c.Conn.Close(), err
		}
		if len(out) > 0 { // net.Pipe would wait for a reader of nothing
			if _, gone := c.far.Write(out); gone != nil {
				return
			}
		}
	}
	_ = c.far.Close()
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.near.Read(p)
	switch err {
	case io.EOF:
		err = c.err
	case io.ErrClosedPipe:
		err = net.ErrClosed
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.out.Write(p)
	if err == io.ErrClosedPipe {
		err = cmp.Or[error](context.Cause(c.closed), syscall.EPIPE)
	}
	return n, err
}

func (c *conn) Close() error {
	c.close(net.ErrClosed)
	_ = c.near.Close()
	return c.end()
}

func (c *conn) SetReadDeadline(t time.Time) error  { return c.set(c.near.SetReadDeadline(t)) }
func (c *conn) SetWriteDeadline(t time.Time) error { return c.set(c.out.SetWriteDeadline(t)) }
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// set allows a deadline after the peer's end, as TCP does and net.Pipe does not.
func (c *conn) set(_ error) error { return context.Cause(c.closed) }
