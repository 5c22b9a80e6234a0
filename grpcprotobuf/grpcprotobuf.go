// Package grpcprotobuf serves and calls the create-user API with grpc-go over its own HTTP/2 implementation: protobuf,
// generated client and server, no compression.
package grpcprotobuf

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/grpcapi"
	"github.com/rpcbench/rpcbench/internal/pbnative"
	"github.com/rpcbench/rpcbench/proto/user/v1/userv1grpc"
)

// New uses the library's defaults but for the limits that every server has.
func New() rpcbench.Stack {
	return rpcbench.Stack{
		Name:     "grpcprotobuf",
		Protocol: "grpc/proto",
		Traits: rpcbench.Traits{
			Codec:       "google.golang.org/protobuf",
			HTTP:        "2",
			Multiplexed: true,
			InvalidUTF8: rpcbench.Rejected,
		},
		Server: newServer,
		Dial:   dial,
	}
}

type server struct{ *grpc.Server }

func (s server) Close() error {
	s.Stop()
	return nil
}

func newServer(config rpcbench.ServerConfig) (rpcbench.Server, error) {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(rpcbench.MaxBody),
		grpc.MaxHeaderListSize(rpcbench.MaxHeader),
		grpc.ConnectionTimeout(rpcbench.HeaderTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: rpcbench.IdleTimeout}),
	}
	if config.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(config.TLS)))
	}
	s := grpc.NewServer(options...)
	grpcapi.Register(s)
	return server{s}, nil
}

type client struct {
	conns []*grpc.ClientConn
	next  atomic.Uint64
}

func dial(config rpcbench.ClientConfig) (rpcbench.Client, error) {
	creds := insecure.NewCredentials()
	if config.TLS != nil {
		creds = credentials.NewTLS(config.TLS)
	}
	c := &client{}
	for range config.Conns {
		conn, err := grpc.NewClient(config.Addr,
			grpc.WithTransportCredentials(creds),
			grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
				return config.DialContext(ctx, "tcp", addr)
			}))
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.conns = append(c.conns, conn)
	}
	return c, nil
}

func (c *client) stub() userv1grpc.UserServiceClient {
	return userv1grpc.NewUserServiceClient(c.conns[(c.next.Add(1)-1)%uint64(len(c.conns))])
}

func (c *client) CreateUser(ctx context.Context, u rpcbench.User) (rpcbench.Response, error) {
	r, err := c.stub().CreateUser(ctx, pbnative.FromUser(u))
	if err != nil {
		return rpcbench.Response{}, grpcapi.Error(err)
	}
	return pbnative.ToResponse(r), nil
}

func (c *client) Prepare(u rpcbench.User) (rpcbench.Call, error) {
	native, stub := pbnative.FromUser(u), c.stub()
	return func(ctx context.Context) error {
		r, err := stub.CreateUser(ctx, native)
		if err != nil {
			return grpcapi.Error(err)
		}
		return pbnative.Check(native, r)
	}, nil
}

func (c *client) Close() error {
	var errs []error
	for _, conn := range c.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}
