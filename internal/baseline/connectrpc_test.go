package baseline

import (
	"context"
	"net/http"
	"testing"

	"connectrpc.com/connect"

	"github.com/rpcbench/rpcbench"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/userservice/userservicegrpc"
)

func directConnectRPC(tb testing.TB, dial dialFunc, asked []rpcbench.User) create {
	tb.Helper()
	n := nativeProtobuf()
	const procedure = userservicegrpc.UserService_CreateUser_FullMethodName
	mux := http.NewServeMux()
	mux.Handle(procedure, connect.NewUnaryHandler(procedure,
		func(_ context.Context, r *connect.Request[userv1.User]) (*connect.Response[userv1.CreateUserResponse], error) {
			if err := n.validate.Struct(r.Msg); err != nil {
				return nil, connect.NewError(connect.CodeInvalidArgument, err)
			}
			return connect.NewResponse(n.answer(r.Msg)), nil
		},
		connect.WithReadMaxBytes(rpcbench.MaxBody),
		connect.WithCompression("gzip", nil, nil)))
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	url := serveHTTP(tb, mux, protocols)

	client := connect.NewClient[userv1.User, userv1.CreateUserResponse](httpClient(tb, dial, protocols), url+procedure,
		connect.WithAcceptCompression("gzip", nil, nil))
	requests := n.requests(asked)
	return func(ctx context.Context, i int) error {
		reply, err := client.CallUnary(ctx, connect.NewRequest(requests[i]))
		if err != nil {
			return err
		}
		return n.check(requests[i], reply.Msg)
	}
}
