package direct

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"

	"github.com/go-playground/validator/v10"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/rpcbench/rpcbench"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/user/v1/userv1grpc"
)

type grpcService struct {
	userv1grpc.UnimplementedUserServiceServer
	validate *validator.Validate
}

func (s *grpcService) CreateUser(_ context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
	if err := s.validate.Struct(u); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	u.Id = rpcbench.UserID
	return &userv1.CreateUserResponse{Code: rpcbench.OKCode, Message: rpcbench.OKMessage, User: u}, nil
}

func directGRPCProtobuf(tb testing.TB, dial dialFunc, asked []rpcbench.User) create {
	tb.Helper()
	validate := validator.New(validator.WithRequiredStructEnabled())
	validate.RegisterStructValidationMapRules(map[string]string{
		"Id":       "-",
		"Email":    "required,email,max=254",
		"Name":     "min=4,max=100",
		"Password": "min=4,max=72",
		"Avatar":   "max=" + strconv.Itoa(rpcbench.MaxAvatar),
	}, &userv1.User{})
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(rpcbench.MaxBody),
		grpc.MaxHeaderListSize(rpcbench.MaxHeader),
		grpc.ConnectionTimeout(rpcbench.HeaderTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: rpcbench.IdleTimeout}),
	)
	userv1grpc.RegisterUserServiceServer(server, &grpcService{validate: validate})
	ln := listen(tb)
	serveUntilEnd(tb, func() error { return server.Serve(ln) }, func() error { server.Stop(); return nil })

	conn, err := grpc.NewClient(ln.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return dial(ctx, "tcp", addr) }))
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, conn.Close()) })
	client := userv1grpc.NewUserServiceClient(conn)

	requests := make([]*userv1.User, len(asked))
	for i, u := range asked {
		requests[i] = &userv1.User{Id: u.ID, Email: u.Email, Name: u.Name, Password: u.Password, Avatar: u.Avatar}
	}
	return func(ctx context.Context, i int) error { return callCreateUser(ctx, client, requests[i]) }
}

func callCreateUser(ctx context.Context, client userv1grpc.UserServiceClient, u *userv1.User) error {
	reply, err := client.CreateUser(ctx, u)
	if err != nil {
		return err
	}
	if reply.GetCode() != rpcbench.OKCode || reply.GetMessage() != rpcbench.OKMessage || reply.GetUser() == nil {
		return fmt.Errorf("wrong reply: %v", reply)
	}
	if got := reply.GetUser(); got.GetId() != rpcbench.UserID || got.GetEmail() != u.GetEmail() || got.GetName() != u.GetName() ||
		got.GetPassword() != u.GetPassword() || !bytes.Equal(got.GetAvatar(), u.GetAvatar()) {
		return fmt.Errorf("asked for %v, got %v", u, got)
	}
	return nil
}
