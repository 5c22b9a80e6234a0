package grpcapi

import (
	"context"
	"strings"

	"google.golang.org/grpc"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/binding/pb"
)

// Of returns s as a stack that serves and calls a method of one's own, on grpc-go's own server without options. The
// service's description and the call are what protoc-gen-go-grpc writes.
func Of[Q, A any](s rpcbench.Stack, m rpcbench.Method[Q, A]) rpcbench.Stack {
	s, newCaller := binding.Of(s, m, pb.Format())
	service, name, _ := strings.Cut(m.Name, "/")
	s.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		serve, err := binding.Serve(config, m)
		if err != nil {
			return nil, err
		}
		own := bare(config, withTLS(config, nil)...)
		own.RegisterService(&grpc.ServiceDesc{ServiceName: service, HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{
			MethodName: name,
			Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				q := new(Q)
				if err := decode(q); err != nil {
					return nil, err
				}
				a, err := serve(ctx, q)
				if err != nil {
					return nil, toStatus(err)
				}
				return a, nil
			},
		}}}, nil)
		return server{own}, nil
	}
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		conns, err := DialAll(config, func(cc *grpc.ClientConn) *binding.Conn[Q, A, struct{}] {
			return &binding.Conn[Q, A, struct{}]{Failure: fromStatus, Call: func(ctx context.Context, q *Q) (*A, error) {
				a := new(A)
				if err := cc.Invoke(ctx, "/"+m.Name, q, a, grpc.StaticMethod()); err != nil {
					return nil, err
				}
				return a, nil
			}}
		})
		if err != nil {
			return nil, err
		}
		return newCaller(conns)
	}
	return s
}
