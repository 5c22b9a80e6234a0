// Package grpcapi is what the stacks of grpc-go share: the one service implementation and its server, the client on the
// generated stub, and rpcbench codes to gRPC status and back.
package grpcapi

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/binding/pb"
	"github.com/rpcbench/rpcbench/internal/rpcstatus"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/userservice/userservicegrpc"
)

// Traits are those of a stack whose server runs on the given libraries, with the codec that grpc-go has for protobuf.
func Traits(server ...string) rpcbench.Traits {
	t := pb.Traits()
	t.HTTP, t.Multiplexed = "2", true
	t.Server, t.Client = server, []string{"google.golang.org/grpc"}
	return t
}

// service implements the generated interface.
type service struct {
	unimplemented
	pb.Service
}

// unimplemented puts the generated methods one level below pb.Service's, which hide them.
type unimplemented struct {
	userservicegrpc.UnimplementedUserServiceServer
}

func (s service) CreateUsers(stream grpc.BidiStreamingServer[userv1.User, userv1.CreateUserResponse]) error {
	return s.Answer(stream.Context(), stream.Recv, stream.Send)
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

// OwnServer is NewServer, which accepts connections itself, in clear or over TLS.
func OwnServer(config rpcbench.ServerConfig, options ...grpc.ServerOption) rpcbench.Server {
	if config.TLS != nil {
		options = append([]grpc.ServerOption{grpc.Creds(credentials.NewTLS(config.TLS))}, options...)
	}
	return server{NewServer(config, options...)}
}

type server struct{ *grpc.Server }

func (s server) Close() error {
	s.Stop()
	return nil
}

func register(s grpc.ServiceRegistrar) {
	userservicegrpc.RegisterUserServiceServer(s, service{Service: pb.Service{Create: pb.API().NewService(), Failure: toStatus}})
}

// toStatus makes the status of a service's error. Broken rules are details, as google.rpc.BadRequest.
func toStatus(err error) error {
	s := status.New(codes.Code(rpcstatus.Number(rpcbench.CodeOf(err))), err.Error())
	if details, ok := rpcstatus.Details(err); ok {
		if s, err = s.WithDetails(details); err != nil {
			return status.Error(codes.Internal, err.Error())
		}
	}
	return s.Err()
}

// fromStatus turns what a grpc-go client returns into an *rpcbench.Error. Two causes are told by the library's words alone:
//
//   - Internal, "grpc: failed to unmarshal …" or "grpc: error while marshaling: …": either side's codec has failed.
//   - Canceled, "grpc: the client connection is closing": nobody has cancelled.
func fromStatus(_ context.Context, err error) error {
	s := status.Convert(err)
	e := &rpcbench.Error{Code: rpcstatus.Code(uint32(s.Code())), Err: err}
	switch words := s.Message(); {
	case s.Code() == codes.InvalidArgument:
		for _, d := range s.Details() {
			rpcstatus.Broken(e, d)
		}
	case s.Code() == codes.Canceled && words == "grpc: the client connection is closing":
		e.Code = rpcbench.Unavailable
	case s.Code() == codes.Internal && rpcstatus.CodecFailed(words):
		e.Code = rpcbench.Malformed
	}
	return e
}
