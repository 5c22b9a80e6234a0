package direct

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/go-playground/validator/v10"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/transport/binding/pb"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/userservice/userservicegrpc"
)

func directGRPCProtobuf(tb testing.TB, dial dialFunc, asked []rpcbench.User) create {
	tb.Helper()
	server := grpcServer()
	addr := testkit.Serve(tb, testkit.Server{OnServe: server.Serve, OnClose: func() error { server.Stop(); return nil }})
	return callGRPC(tb, dial, addr, asked)
}

func directGRPCServeHTTP(tb testing.TB, dial dialFunc, asked []rpcbench.User) create {
	tb.Helper()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	url := serveHTTP(tb, grpcServer(), protocols)
	return callGRPC(tb, dial, strings.TrimPrefix(url, "http://"), asked)
}

// grpcInMemory calls grpc-go's server over grpc's bufconn, as its tests do: HTTP/2 and encoding without a kernel.
func grpcInMemory(tb testing.TB, _ dialFunc, asked []rpcbench.User) create {
	tb.Helper()
	pipe := bufconn.Listen(64 << 10)
	server := grpcServer()
	served := make(chan error, 1)
	go func() { served <- server.Serve(pipe) }()
	tb.Cleanup(func() {
		server.Stop()
		require.NoError(tb, <-served)
	})
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }
	return callGRPC(tb, dial, "passthrough:///bufconn", asked)
}

type grpcService struct {
	userservicegrpc.UnimplementedUserServiceServer
	validate *validator.Validate
}

func (s *grpcService) CreateUser(_ context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
	if err := s.validate.Struct(u); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return answer(u), nil
}

func grpcServer() *grpc.Server {
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(rpcbench.MaxBody),
		grpc.MaxHeaderListSize(rpcbench.MaxHeader),
		grpc.ConnectionTimeout(rpcbench.HeaderTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: rpcbench.IdleTimeout}),
	)
	userservicegrpc.RegisterUserServiceServer(server, &grpcService{validate: rules(&userv1.User{}, "Id")})
	return server
}

// callGRPC is the client of all three.
func callGRPC(tb testing.TB, dial dialFunc, addr string, asked []rpcbench.User) create {
	tb.Helper()
	conn, err := grpc.NewClient(addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return dial(ctx, "tcp", addr) }))
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, conn.Close()) })
	client := userservicegrpc.NewUserServiceClient(conn)
	requests, check := toProtobuf(asked), pb.API().Check
	return func(ctx context.Context, i int) error {
		reply, err := client.CreateUser(ctx, requests[i])
		if err != nil {
			return err
		}
		return check(requests[i], reply)
	}
}
