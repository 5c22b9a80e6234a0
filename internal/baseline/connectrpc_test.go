package baseline

import (
	"context"
	"net/http"
	"testing"

	"connectrpc.com/connect"

	"github.com/rpcbench/rpcbench"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/userservice/userserviceconnect"
)

type connectService struct {
	userserviceconnect.UnimplementedUserServiceHandler
	nativePB
}

func (s connectService) CreateUser(_ context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
	if err := s.validate.Struct(u); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	return s.answer(u), nil
}

func directConnectRPC(tb testing.TB, dial dialFunc, asked []rpcbench.User) create {
	tb.Helper()
	n := nativeProtobuf()
	mux := http.NewServeMux()
	mux.Handle(userserviceconnect.NewUserServiceHandler(connectService{nativePB: n},
		connect.WithReadMaxBytes(rpcbench.MaxBody), connect.WithCompression("gzip", nil, nil)))
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	url := serveHTTP(tb, mux, protocols)

	client := userserviceconnect.NewUserServiceClient(httpClient(tb, dial, protocols), url,
		connect.WithAcceptCompression("gzip", nil, nil))
	requests := n.requests(asked)
	return func(ctx context.Context, i int) error {
		reply, err := client.CreateUser(ctx, requests[i])
		if err != nil {
			return err
		}
		return n.check(requests[i], reply)
	}
}
