package tap

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"
)

// conn is the owner's end. What the peer sends passes through a net.Pipe, which handles deadlines and partial reads.
type conn struct {
	net.Conn                  // the connection beneath
	near, far net.Conn        // the ends of the pipe; the owner reads from near
	out       net.Conn        // the destination of writes: the connection beneath or near
	end       func() error    // called if the owner closes
	err       error           // the peer's error; set before far is closed
	closed    context.Context // done if the owner has closed
	close     context.CancelCauseFunc
}

func wrap(beneath net.Conn) *conn {
	c := &conn{Conn: beneath, out: beneath, end: beneath.Close}
	c.near, c.far = net.Pipe()
	c.closed, c.close = context.WithCancelCause(context.Background())
	return c
}

// pump sends src to the owner, piece by piece and changed by change, until either end closes. After an error of change
// it closes the connection beneath, and the owner reads the last piece and then that error.
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
		if len(out) > 0 { // net.Pipe would wait for a reader even of 0 bytes
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
		err = cmp.Or(context.Cause(c.closed), c.err)
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

// set allows a deadline after the peer has closed, as TCP does and net.Pipe does not.
func (c *conn) set(_ error) error { return context.Cause(c.closed) }
