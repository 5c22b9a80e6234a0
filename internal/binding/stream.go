package binding

import (
	"context"

	"github.com/rpcbench/rpcbench"
)

// StreamConn is a Conn that can also stream.
type StreamConn[U, R, F any] interface {
	Conn[U, R, F]
	OpenStream(context.Context) (Exchanger[U, R], error)
}

// Exchanger is a stream of a library. Errors are *rpcbench.Error.
type Exchanger[U, R any] interface {
	// Exchange sends a user and receives the reply. With an error the stream has ended and holds nothing any more.
	Exchange(*U) (*R, error)
	// Close ends the stream, waits for the server, and returns the error that it ends it with. It comes last, if no
	// Exchange has failed.
	Close() error
}

// Ended is the error of a call on a stream that has ended without one.
func Ended() error {
	return &rpcbench.Error{Code: rpcbench.Unavailable, Message: "the stream has ended"}
}

// NewStreamClient is NewClient for a client that streams.
func NewStreamClient[U, R, F, E any, C StreamConn[U, R, F]](api API[U, R, F, E], conns []C, closers ...func() error) rpcbench.Client {
	return &streamClient[U, R, F, E, C]{client[U, R, F, E, C]{api: api, conns: conns, closers: closers}}
}

type streamClient[U, R, F, E any, C StreamConn[U, R, F]] struct{ client[U, R, F, E, C] }

func (c *streamClient[U, R, F, E, C]) OpenStream(ctx context.Context) (rpcbench.Stream, error) {
	s, err := c.conn().OpenStream(ctx)
	if err != nil {
		return nil, err
	}
	return &stream[U, R]{native: s, check: c.api.Check}, nil
}

type stream[U, R any] struct {
	native Exchanger[U, R]
	check  func(asked *U, r *R) error
	ended  error // of every Call from now on; nil while the stream is open
	result error // of Close, once the stream has ended
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
		r, err := s.native.Exchange(asked)
		if err != nil {
			s.ended, s.result = err, err
			return err
		}
		return s.check(asked, r)
	}, nil
}

func (s *stream[U, R]) Close() error {
	if s.ended == nil {
		s.ended, s.result = Ended(), s.native.Close()
	}
	return s.result
}
