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
	var conns []conn
	var closers []func() error
	for range config.Conns {
		cc, err := grpc.NewClient(config.Addr, options...)
		if err != nil {
			for _, closer := range closers {
				err = errors.Join(err, closer())
			}
			return nil, err
		}
		conns = append(conns, conn{userservicegrpc.NewUserServiceClient(cc)})
		closers = append(closers, cc.Close)
	}
	return binding.NewStreamClient(pb.API(), conns, closers...), nil
}

func addHeaders(h *rpcbench.Headers) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", h.Authorization, "traceparent", h.Traceparent())
		return invoke(ctx, method, req, reply, cc, options...)
	}
}

// conn calls the generated client and makes an *rpcbench.Error of its errors.
type conn struct {
	stub userservicegrpc.UserServiceClient
}

func (c conn) CreateUser(ctx context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
	r, err := c.stub.CreateUser(ctx, u)
	if err != nil {
		return nil, fromStatus(err)
	}
	return r, nil
}

func (c conn) Echo(ctx context.Context, f *messagepb.Flex) (*messagepb.Flex, error) {
	echo, err := c.stub.Echo(ctx, f)
	if err != nil {
		return nil, fromStatus(err)
	}
	return echo, nil
}
