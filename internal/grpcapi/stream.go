package grpcapi

import (
	"context"
	"io"

	"google.golang.org/grpc"

	"github.com/rpcbench/rpcbench/internal/binding"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

func (s *service) CreateUsers(stream grpc.BidiStreamingServer[userv1.User, userv1.CreateUserResponse]) error {
	for {
		u, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		reply, err := s.create(stream.Context(), u)
		if err != nil {
			return toStatus(err)
		}
		if err := stream.Send(reply); err != nil {
			return err
		}
	}
}

func (c conn) OpenStream(ctx context.Context) (binding.Exchanger[userv1.User, userv1.CreateUserResponse], error) {
	s, err := c.stub.CreateUsers(ctx)
	if err != nil {
		return nil, fromStatus(err)
	}
	return stream{s}, nil
}

type stream struct {
	stub grpc.BidiStreamingClient[userv1.User, userv1.CreateUserResponse]
}

func (s stream) Exchange(u *userv1.User) (*userv1.CreateUserResponse, error) {
	if err := s.stub.Send(u); err != nil && err != io.EOF { // of io.EOF, Recv has the cause
		return nil, fromStatus(err)
	}
	r, err := s.stub.Recv()
	if err == io.EOF {
		return nil, binding.Ended()
	}
	if err != nil {
		return nil, fromStatus(err)
	}
	return r, nil
}

func (s stream) Close() error {
	if err := s.stub.CloseSend(); err != nil {
		return fromStatus(err)
	}
	var unasked error
	for { // until the library has let go of the stream
		switch _, err := s.stub.Recv(); {
		case err == io.EOF:
			return unasked
		case err != nil:
			return fromStatus(err)
		}
		unasked = binding.WrongReply("the number of replies")
	}
}
