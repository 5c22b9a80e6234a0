package baseline

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/rpcbench/rpcbench"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/userservice/userservicegrpc"
)

func directGRPCProtobuf(tb testing.TB, dial dialFunc, asked []rpcbench.User) create {
	tb.Helper()
	n := nativeProtobuf()
	server := grpcServer(n)
	ln := listen(tb)
	serveUntilEnd(tb, func() error { return server.Serve(ln) }, func() error { server.Stop(); return nil })
	return callGRPC(tb, dial, ln.Addr().String(), n, asked)
}

func directGRPCServeHTTP(tb testing.TB, dial dialFunc, asked []rpcbench.User) create {
	tb.Helper()
	n := nativeProtobuf()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	url := serveHTTP(tb, grpcServer(n), protocols)
	return callGRPC(tb, dial, strings.TrimPrefix(url, "http://"), n, asked)
}

type grpcService struct {
	userservicegrpc.UnimplementedUserServiceServer
	nativePB
}

type nativePB = native[userv1.User, userv1.CreateUserResponse]

func (s *grpcService) CreateUser(_ context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
	if err := s.validate.Struct(u); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return s.answer(u), nil
}

func grpcServer(n nativePB) *grpc.Server {
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(rpcbench.MaxBody),
		grpc.MaxHeaderListSize(rpcbench.MaxHeader),
		grpc.ConnectionTimeout(rpcbench.HeaderTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: rpcbench.IdleTimeout}),
	)
	userservicegrpc.RegisterUserServiceServer(server, &grpcService{nativePB: n})
	return server
}

// callGRPC is the client of both.
func callGRPC(tb testing.TB, dial dialFunc, addr string, n nativePB, asked []rpcbench.User) create {
	tb.Helper()
	conn, err := grpc.NewClient(addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return dial(ctx, "tcp", addr) }))
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, conn.Close()) })
	client := userservicegrpc.NewUserServiceClient(conn)
	requests := n.requests(asked)
	return func(ctx context.Context, i int) error {
		reply, err := client.CreateUser(ctx, requests[i])
		if err != nil {
			return err
		}
		return n.check(requests[i], reply)
	}
}
