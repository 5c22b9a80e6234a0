package connectrpc

import (
	"context"
	"errors"
	"io"

	"connectrpc.com/connect"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/binding"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

func (s service) CreateUsers(ctx context.Context, stream *connect.BidiStream[userv1.User, userv1.CreateUserResponse]) error {
	for {
		u, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		reply, err := s.CreateUser(ctx, u)
		if err != nil {
			return err
		}
		if err := stream.Send(reply); err != nil {
			return err
		}
	}
}

func (c conn) OpenStream(ctx context.Context) (binding.Exchanger[userv1.User, userv1.CreateUserResponse], error) {
	call, err := c.stub.CreateUsers(ctx)
	if err != nil {
		return nil, fromConnect(ctx, err)
	}
	// While net/http waits for more of a request it does not look at the context, not even if a reply is waited for.
	release := context.AfterFunc(ctx, func() { _ = call.CloseRequest() })
	return &stream{ctx, call, release}, nil
}

type stream struct {
	ctx     context.Context // of its whole life
	call    *connect.BidiStreamForClientSimple[userv1.User, userv1.CreateUserResponse]
	release func() bool
}

func (s *stream) Exchange(u *userv1.User) (*userv1.CreateUserResponse, error) {
	err := s.call.Send(u)
	if err == nil || errors.Is(err, io.EOF) { // of io.EOF, Receive has the cause
		var r *userv1.CreateUserResponse
		if r, err = s.call.Receive(); err == nil {
			return r, nil
		}
	}
	s.release()
	_, _ = s.call.CloseRequest(), s.call.CloseResponse()
	switch {
	case !errors.Is(err, io.EOF):
		return nil, fromConnect(s.ctx, err)
	case s.ctx.Err() != nil: // and the server took the end of the request for the end of the stream
		return nil, rpcbench.CallError(s.ctx, s.ctx.Err())
	}
	return nil, binding.Ended()
}

func (s *stream) Close() error {
	defer s.release()
	_ = s.call.CloseRequest() // fails if the server has ended the stream, and Receive has the cause
	var unasked error
	for {
		_, err := s.call.Receive()
		if err == nil {
			unasked = binding.WrongReply("the number of replies")
			continue
		}
		_ = s.call.CloseResponse()
		if errors.Is(err, io.EOF) {
			return unasked
		}
		return fromConnect(s.ctx, err)
	}
}
