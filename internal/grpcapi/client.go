package grpcapi

import (
	"context"
	"errors"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/binding/pb"
	"github.com/rpcbench/rpcbench/message/messagepb"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/userservice/userservicegrpc"
)

// Dial makes a client with one grpc.ClientConn per connection.
func Dial(config rpcbench.ClientConfig, options ...grpc.DialOption) (rpcbench.Client, error) {
	creds := insecure.NewCredentials()
	if config.TLS != nil {
		creds = credentials.NewTLS(config.TLS)
	}
	options = append(options,
		grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return config.DialContext(ctx, "tcp", addr)
		}))
	if config.Headers != nil {
		options = append(options, grpc.WithUserAgent(config.Headers.UserAgent), grpc.WithUnaryInterceptor(addHeaders(config.Headers)))
	}
	var conns []*pb.Conn
	for range config.Conns {
		cc, err := grpc.NewClient(config.Addr, options...)
		if err != nil {
			for _, c := range conns {
				err = errors.Join(err, c.Close())
			}
			return nil, err
		}
		conns = append(conns, newConn(cc))
	}
	return binding.NewClient(pb.API(), conns), nil
}

func addHeaders(h *rpcbench.Headers) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", h.Authorization, "traceparent", h.Traceparent())
		return invoke(ctx, method, req, reply, cc, options...)
	}
}

func newConn(cc *grpc.ClientConn) *pb.Conn {
	stub := userservicegrpc.NewUserServiceClient(cc)
	return &pb.Conn{
		CreateUser: func(ctx context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
			return stub.CreateUser(ctx, u)
		},
		Echo: func(ctx context.Context, f *messagepb.Flex) (*messagepb.Flex, error) { return stub.Echo(ctx, f) },
		OpenStream: func(ctx context.Context) (pb.Stream, error) {
			s, err := stub.CreateUsers(ctx)
			if err != nil {
				return pb.Stream{}, err
			}
			return pb.Stream{Send: s.Send, Receive: s.Recv, CloseSend: s.CloseSend, Release: func() {}}, nil
		},
		Failure: fromStatus,
		Close:   cc.Close,
	}
}
