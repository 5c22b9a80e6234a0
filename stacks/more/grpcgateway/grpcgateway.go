// Package grpcgateway serves the create-user API as JSON over HTTP/1.1 with grpc-gateway/v2 in front of a gRPC service,
// and calls it with net/http. Both sides use protojson. Handlers are what protoc-gen-grpc-gateway makes of
// gateway.yaml.
package grpcgateway

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding/pb"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
	"github.com/rpcbench/rpcbench/internal/transport/codec/protobuf"
	"github.com/rpcbench/rpcbench/internal/transport/grpcapi"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
	"github.com/rpcbench/rpcbench/stacks/more/grpcgateway/userservice"
)

//go:generate go run ./gen

// New calls the gRPC service in process, without a gRPC connection: RegisterUserServiceHandlerServer. Interceptors of
// gRPC would not run.
func New() rpcbench.Stack {
	return stack("grpcgateway", func(config rpcbench.ServerConfig, mux *runtime.ServeMux) (rpcbench.Server, error) {
		service := grpcapi.NewService(config)
		err := userservice.RegisterUserServiceHandlerServer(context.Background(), mux, service)
		return httpapi.NewServer(config, limited(mux), false), err
	})
}

// Proxy calls a server of grpc-go in the same process over a connection in memory: RegisterUserServiceHandler. Every
// call is then a call of gRPC too.
func Proxy() rpcbench.Stack {
	return stack("grpcgateway.proxy", func(config rpcbench.ServerConfig, mux *runtime.ServeMux) (rpcbench.Server, error) {
		const buffer = 64 << 10
		pipe := bufconn.Listen(buffer)
		cc, err := grpc.NewClient("passthrough:///inside", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }))
		if err != nil {
			return nil, err
		}
		if err := userservice.RegisterUserServiceHandler(context.Background(), mux, cc); err != nil {
			return nil, errors.Join(err, cc.Close())
		}
		within := config
		within.TLS, within.HeaderTimeout = nil, 0
		inside := grpcapi.NewServer(within)
		return &proxy{httpapi.NewServer(config, limited(mux), false), cc, inside, pipe}, nil
	})
}

// proxy is a gateway with its gRPC server and the connection between them.
type proxy struct {
	rpcbench.Server
	cc     *grpc.ClientConn
	inside *grpc.Server
	pipe   *bufconn.Listener
}

func (p *proxy) Serve(ln net.Listener) error {
	ended := make(chan error, 1)
	go func() { ended <- p.inside.Serve(p.pipe) }()
	err := p.Server.Serve(ln)
	p.inside.Stop()
	return errors.Join(err, <-ended)
}

func (p *proxy) Close() error {
	err := errors.Join(p.Server.Close(), p.cc.Close())
	p.inside.Stop()
	return err
}

func stack(name string, serve func(rpcbench.ServerConfig, *runtime.ServeMux) (rpcbench.Server, error)) rpcbench.Stack {
	s := httpapi.Stack(name, "http/protojson", jsonCodec{}, pb.API(), httpapi.Options{})
	s.Traits.ServerLibraries = []string{"google.golang.org/grpc", "net/http"}
	s.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		return serve(config, runtime.NewServeMux(runtime.WithErrorHandler(fail)))
	}
	return s
}

// limited bounds a body, which the library does not.
func limited(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, rpcbench.MaxBody)
		h.ServeHTTP(w, r)
	})
}

// fail maps a gRPC status to the codes and statuses of the HTTP stacks.
func fail(
	_ context.Context, _ *runtime.ServeMux, m runtime.Marshaler, w http.ResponseWriter, r *http.Request, err error) {
	e := grpcapi.FromStatus(err)
	_, readErr := r.Body.Read(make([]byte, 1)) // the library has put the error into a text
	if _, tooLarge := errors.AsType[*http.MaxBytesError](readErr); tooLarge {
		e.Code = rpcbench.CodeTooLarge
	}
	e.Message = err.Error()
	body := pb.API().FromError(e)
	data, err := m.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", m.ContentType(body))
	w.WriteHeader(httpapi.Status(e.Code))
	_, _ = w.Write(data) // fails only if the client is gone
}

// jsonCodec is the client's codec: protojson as it comes.
type jsonCodec struct{}

func (jsonCodec) ContentType() string           { return "application/json" }
func (jsonCodec) Marshal(v any) ([]byte, error) { return protojson.Marshal(v.(proto.Message)) }
func (jsonCodec) Unmarshal(data []byte, v any) error {
	return protojson.Unmarshal(data, v.(proto.Message))
}
func (jsonCodec) Traits() codec.Traits { return protobuf.Codec{}.Traits() }
