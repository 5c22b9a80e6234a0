package direct

import (
	"context"
	"net/http"
	"testing"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"connectrpc.com/connect/v2/connectinprocess"
	"github.com/go-playground/validator/v10"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding/pb"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/userservice/userserviceconnect2"
)

type connect2Service struct {
	userserviceconnect2.UnimplementedUserServiceHandler
	validate *validator.Validate
}

func (s connect2Service) CreateUser(_ context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
	if err := s.validate.Struct(u); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	return answer(u), nil
}

func connect2Server() *connect.Server {
	server := connect.NewServer()
	userserviceconnect2.RegisterUserServiceHandler(server, connect2Service{validate: rules(&userv1.User{}, "Id")})
	return server
}

func directConnectRPC2(tb testing.TB, dial dialFunc, asked []rpcbench.User) create {
	tb.Helper()
	mux := http.NewServeMux()
	connecthttp.Mount(mux, connect2Server(), connecthttp.WithReadMaxBytes(rpcbench.MaxBody), connecthttp.WithCompressors())
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	url := serveHTTP(tb, mux, protocols)
	client := httpClient(tb, dial, protocols)
	return callConnect2(connecthttp.NewTransport(client, url, connecthttp.WithCompressors()), asked)
}

func connectInProcess(_ testing.TB, _ dialFunc, asked []rpcbench.User) create {
	return callConnect2(connectinprocess.New(connect2Server()), asked)
}

// callConnect2 is the client of both.
func callConnect2(transport connect.Transport, asked []rpcbench.User) create {
	client := userserviceconnect2.NewUserServiceClient(connect.NewClient(transport))
	requests, check := toProtobuf(asked), pb.API().Check
	return func(ctx context.Context, i int) error {
		reply, err := client.CreateUser(ctx, requests[i])
		if err != nil {
			return err
		}
		return check(requests[i], reply)
	}
}
