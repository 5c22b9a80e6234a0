package binding

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/rpcbench/rpcbench"
)

// Conn makes calls over one connection, or over any of several if the protocol does not multiplex.
type Conn[U, R, F any] struct {
	Call       func(context.Context, *U) (*R, error) // creates a user, or calls a method of one's own
	Echo       func(context.Context, *F) (*F, error)
	OpenStream func(context.Context) (Stream[U, R], error) // nil without streams
	Failure    func(context.Context, error) error          // turns an error of the library into an *rpcbench.Error
	Close      func()
}

// Stream is a stream of a library. After its end Send returns io.EOF, and Receive returns io.EOF or the cause.
type Stream[U, R any] struct {
	Send      func(*U) error
	Receive   func() (*R, error)
	CloseSend func() error
	Release   func() // frees the resources of a stream that has ended
}

// ring is the connections of a client, which its calls take in turn.
type ring[U, R, F any] struct {
	conns []*Conn[U, R, F]
	next  atomic.Uint64
}

func (r *ring[U, R, F]) conn() *Conn[U, R, F] {
	return r.conns[(r.next.Add(1)-1)%uint64(len(r.conns))]
}

func (r *ring[U, R, F]) Close() error {
	for _, conn := range r.conns {
		conn.Close()
	}
	return nil
}

// NewClient makes Users that bind its calls to conns in turn. They stream if conns do.
func NewClient[U, R, F, E any](api API[U, R, F, E], conns []*Conn[U, R, F]) rpcbench.Client {
	c := &client[U, R, F, E]{api: api, ring: ring[U, R, F]{conns: conns}}
	if conns[0].OpenStream != nil {
		return streamClient[U, R, F, E]{c}
	}
	return c
}

// AsIs is the Failure of a Conn whose errors are of type *rpcbench.Error already.
func AsIs(_ context.Context, err error) error { return err }

type client[U, R, F, E any] struct {
	api API[U, R, F, E]
	ring[U, R, F]
}

func (c *client[U, R, F, E]) CreateUser(ctx context.Context, u rpcbench.User) (rpcbench.Response, error) {
	conn := c.conn()
	r, err := conn.Call(ctx, Convert[U](&u))
	if err != nil {
		return rpcbench.Response{}, conn.Failure(ctx, err)
	}
	return *Convert[rpcbench.Response](r), nil
}

func (c *client[U, R, F, E]) Prepare(i int) (rpcbench.Call, error) {
	return c.PrepareUser(rpcbench.SampleUser(i, 0))
}

func (c *client[U, R, F, E]) PrepareUser(u rpcbench.User) (rpcbench.Call, error) {
	asked, conn, check := Convert[U](&u), c.conn(), c.api.Check
	return func(ctx context.Context) error {
		r, err := conn.Call(ctx, asked)
		if err != nil {
			return conn.Failure(ctx, err)
		}
		return check(asked, r)
	}, nil
}

func (c *client[U, R, F, E]) Echo(ctx context.Context, m *rpcbench.Flex) (*rpcbench.Flex, error) {
	conn := c.conn()
	f, err := conn.Echo(ctx, Convert[F](m))
	if err != nil {
		return nil, conn.Failure(ctx, err)
	}
	return Convert[rpcbench.Flex](f), nil
}

func (c *client[U, R, F, E]) PrepareEcho(m *rpcbench.Flex) (rpcbench.Call, error) {
	asked, conn, equal := Convert[F](m), c.conn(), c.api.Equal
	return func(ctx context.Context) error {
		f, err := conn.Echo(ctx, asked)
		if err != nil {
			return conn.Failure(ctx, err)
		}
		if !equal(asked, f) {
			return WrongReply("the echo")
		}
		return nil
	}, nil
}

type streamClient[U, R, F, E any] struct{ *client[U, R, F, E] }

func (c streamClient[U, R, F, E]) OpenStream(ctx context.Context) (rpcbench.Stream, error) {
	conn := c.conn()
	s, err := conn.OpenStream(ctx)
	if err != nil {
		return nil, conn.Failure(ctx, err)
	}
	failure := func(err error) error {
		if errors.Is(err, io.EOF) { // some servers take a cancelled request for its regular end
			return rpcbench.CallError(ctx, errEnded)
		}
		return conn.Failure(ctx, err)
	}
	return &stream[U, R]{Stream: s, failure: failure, check: c.api.Check}, nil
}

var errEnded = errors.New("the stream has ended")

type stream[U, R any] struct {
	Stream[U, R]
	failure func(error) error
	check   func(asked *U, r *R) error
	ended   error // what every further Call returns; nil while the stream is open
	result  error // what Close returns after the end
}

func (s *stream[U, R]) Prepare(u rpcbench.User) (rpcbench.Call, error) {
	asked := Convert[U](&u)
	return func(ctx context.Context) error {
		if s.ended != nil {
			return s.ended
		}
		if err := ctx.Err(); err != nil {
			return rpcbench.CallError(ctx, err)
		}
		err := s.Send(asked)
		if err == nil || errors.Is(err, io.EOF) {
			var r *R
			if r, err = s.Receive(); err == nil {
				return s.check(asked, r)
			}
		}
		s.Release()
		s.ended = s.failure(err)
		s.result = s.ended
		return s.ended
	}, nil
}

// Close ends the stream, waits for the server, and returns the error with which the server ends the stream.
func (s *stream[U, R]) Close() error {
	if s.ended != nil {
		return s.result
	}
	s.ended = &rpcbench.Error{Code: rpcbench.CodeUnavailable, Err: errEnded}
	defer s.Release()
	_ = s.CloseSend() // fails if the server has ended the stream, and Receive has the cause
	_, err := s.Receive()
	for ; err == nil; _, err = s.Receive() {
		s.result = WrongReply("the number of replies")
	}
	if !errors.Is(err, io.EOF) {
		s.result = s.failure(err)
	}
	return s.result
}
