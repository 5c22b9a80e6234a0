package direct

import (
	"context"
	"net/http"
	"testing"

	"connectrpc.com/connect"
	"github.com/go-playground/validator/v10"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding/pb"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/userservice/userserviceconnect"
)

type connectService struct {
	userserviceconnect.UnimplementedUserServiceHandler
	validate *validator.Validate
}

func (s connectService) CreateUser(_ context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
	if err := s.validate.Struct(u); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	return answer(u), nil
}

func directConnectRPC(tb testing.TB, dial dialFunc, asked []rpcbench.User) create {
	tb.Helper()
	mux := http.NewServeMux()
	mux.Handle(userserviceconnect.NewUserServiceHandler(connectService{validate: rules(&userv1.User{}, "Id")},
		connect.WithReadMaxBytes(rpcbench.MaxBody), connect.WithCompression("gzip", nil, nil)))
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	url := serveHTTP(tb, mux, protocols)

	client := userserviceconnect.NewUserServiceClient(httpClient(tb, dial, protocols), url,
		connect.WithAcceptCompression("gzip", nil, nil))
	requests, check := toProtobuf(asked), pb.API().Check
	return func(ctx context.Context, i int) error {
		reply, err := client.CreateUser(ctx, requests[i])
		if err != nil {
			return err
		}
		return check(requests[i], reply)
	}
}
