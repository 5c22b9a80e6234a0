// Package grpcapi is what the stacks of grpc-go share: the one service implementation and its server, the client on the
// generated stub, and rpcbench codes to gRPC status and back.
package grpcapi

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/binding/pb"
	"github.com/rpcbench/rpcbench/message/messagepb"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/user/v1/userv1grpc"
)

type service struct {
	userv1grpc.UnimplementedUserServiceServer
	create func(context.Context, *userv1.User) (*userv1.CreateUserResponse, error)
}

// NewServer is a server with the service on it and the limits that every server has.
func NewServer(config rpcbench.ServerConfig, options ...grpc.ServerOption) *grpc.Server {
	idle, header := config.Limits()
	s := grpc.NewServer(append([]grpc.ServerOption{
		grpc.MaxRecvMsgSize(rpcbench.MaxBody),
		grpc.MaxHeaderListSize(rpcbench.MaxHeader),
		grpc.ConnectionTimeout(header),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idle}),
	}, options...)...)
	register(s)
	return s
}

func register(s grpc.ServiceRegistrar) {
	userv1grpc.RegisterUserServiceServer(s, &service{create: pb.API().NewService()})
}

func (s *service) CreateUser(ctx context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
	reply, err := s.create(ctx, u)
	if err != nil {
		return nil, toStatus(err)
	}
	return reply, nil
}

func (s *service) Echo(_ context.Context, f *messagepb.Flex) (*messagepb.Flex, error) { return f, nil }

// toStatus makes the status of a service's error. Broken rules are details, as google.rpc.BadRequest.
func toStatus(err error) error {
	e, ok := errors.AsType[*rpcbench.Error](err)
	if !ok {
		return status.FromContextError(err).Err() // Unknown for all but the context's two errors
	}
	s := status.New(grpcCode(e.Code), e.Error())
	if e.Code == rpcbench.Invalid {
		details := new(errdetails.BadRequest)
		for _, v := range e.Violations {
			details.FieldViolations = append(details.FieldViolations,
				&errdetails.BadRequest_FieldViolation{Field: v.Field, Description: v.Rule})
		}
		if s, err = s.WithDetails(details); err != nil {
			return status.Error(codes.Internal, err.Error())
		}
	}
	return s.Err()
}

func grpcCode(c rpcbench.Code) codes.Code {
	switch c {
	case rpcbench.Invalid, rpcbench.Malformed:
		return codes.InvalidArgument
	case rpcbench.TooLarge:
		return codes.ResourceExhausted
	case rpcbench.Canceled:
		return codes.Canceled
	case rpcbench.DeadlineExceeded:
		return codes.DeadlineExceeded
	case rpcbench.Unavailable:
		return codes.Unavailable
	}
	return codes.Internal
}

// fromStatus turns what a grpc-go client returns into an *rpcbench.Error. InvalidArgument is Invalid with its details and
// Malformed without. The library says Internal of a message that it could not encode or decode, on either side, so
// those are told by its words: "grpc: failed to unmarshal …", "grpc: error while marshaling: …".
func fromStatus(err error) error {
	s := status.Convert(err)
	e := &rpcbench.Error{Code: rpcbench.Internal, Err: err}
	switch s.Code() {
	case codes.InvalidArgument:
		e.Code = rpcbench.Malformed
		for _, d := range s.Details() {
			if bad, ok := d.(*errdetails.BadRequest); ok {
				e.Code = rpcbench.Invalid
				for _, v := range bad.GetFieldViolations() {
					e.Violations = append(e.Violations, rpcbench.Violation{Field: v.GetField(), Rule: v.GetDescription()})
				}
			}
		}
	case codes.ResourceExhausted:
		e.Code = rpcbench.TooLarge
	case codes.Canceled:
		e.Code = rpcbench.Canceled
		if s.Message() == "grpc: the client connection is closing" { // nobody cancelled
			e.Code = rpcbench.Unavailable
		}
	case codes.DeadlineExceeded:
		e.Code = rpcbench.DeadlineExceeded
	case codes.Unavailable:
		e.Code = rpcbench.Unavailable
	case codes.Internal:
		if strings.HasPrefix(s.Message(), "grpc: failed to unmarshal") || strings.HasPrefix(s.Message(), "grpc: error while marshaling") {
			e.Code = rpcbench.Malformed
		}
	}
	return e
}
