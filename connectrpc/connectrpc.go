// Package connectrpc serves and calls the create-user API with connect-go on net/http: protobuf in the Connect protocol
// over HTTP/1.1, uncompressed unless a variant says otherwise. Servers answer the Connect, gRPC and gRPC-Web protocols in
// protobuf and JSON; a variant is what its client speaks. Streams are for the variants over HTTP/2. Handlers and clients
// are connect-go's generated ones.
package connectrpc

import (
	"context"
	"net/http"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/binding/pb"
	"github.com/rpcbench/rpcbench/internal/httpapi"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/userservice/userserviceconnect"
)

// New uses the library's defaults but for compression, which is off, and the limits that every server has.
func New() rpcbench.Stack {
	return stack("connectrpc", "connect/proto", traits("1.1"), identityServer(), identityClient())
}

// H2C is New over HTTP/2, in clear or over TLS.
func H2C() rpcbench.Stack {
	return stack("connectrpc.h2c", "connect/proto/h2", traits("2"), identityServer(), identityClient())
}

// GRPC speaks the gRPC protocol: its server and grpc-go's can each be called by the other's client.
func GRPC() rpcbench.Stack {
	return stack("connectrpc.grpc", "grpc/proto", traits("2"), identityServer(), identityClient(connect.WithGRPC()))
}

// GRPCWeb speaks gRPC-Web: gRPC's messages, with its trailers as the last of them, so HTTP/1.1 will do.
func GRPCWeb() rpcbench.Stack {
	return stack("connectrpc.grpcweb", "grpcweb/proto", traits("1.1"), identityServer(), identityClient(connect.WithGRPCWeb()))
}

// JSON encodes and decodes with protojson.
func JSON() rpcbench.Stack {
	return stack("connectrpc.json", "connect/json", traits("1.1"), identityServer(), identityClient(connect.WithProtoJSON()))
}

// Gzip is the library as shipped: the client asks for gzip, the server compresses every reply, whatever its size.
func Gzip() rpcbench.Stack {
	t := traits("1.1")
	t.Compression = rpcbench.GzipReplies
	return stack("connectrpc.gzip", "connect/proto", t, nil, nil)
}

// VT encodes and decodes with vtprotobuf's generated methods instead of reflection. They don't look at UTF-8, and take a
// negative zero for a zero.
func VT() rpcbench.Stack {
	return stack("connectrpc.vt", "connect/proto", pb.VTTraits(traits("1.1")),
		identityServer(connect.WithCodec(vt{})), identityClient(connect.WithCodec(vt{})))
}

func traits(http string) rpcbench.Traits {
	t := pb.Traits()
	t.HTTP, t.Multiplexed = http, http == "2"
	t.Server = []string{"connectrpc.com/connect", "net/http"}
	t.Client = t.Server
	return t
}

// identityServer takes gzip from the server, which would else offer it in a header of each reply.
func identityServer(options ...connect.HandlerOption) []connect.HandlerOption {
	return append(options, connect.WithCompression("gzip", nil, nil))
}

// identityClient takes gzip from the client, which would else ask for it.
func identityClient(options ...connect.ClientOption) []connect.ClientOption {
	return append(options, connect.WithAcceptCompression("gzip", nil, nil))
}

func stack(name, protocol string, t rpcbench.Traits, server []connect.HandlerOption, client []connect.ClientOption) rpcbench.Stack {
	http2 := t.HTTP == "2"
	return rpcbench.Stack{
		Name: name, Protocol: protocol, Traits: t,
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			return newServer(config, service{pb.Service{Create: pb.API().NewService(), Failure: toConnect}}, http2, server...), nil
		},
		Dial: func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
			options := client
			if config.Headers != nil {
				options = append(slices.Clip(options), connect.WithInterceptors(addHeaders(config.Headers)))
			}
			var conns []*pb.Conn
			for _, h := range httpapi.HTTPClients(config, http2) {
				stub := userserviceconnect.NewUserServiceClient(h, httpapi.BaseURL(config), options...)
				c := &pb.Conn{CreateUser: stub.CreateUser, Echo: stub.Echo, Failure: fromConnect, Close: httpapi.CloseIdle(h)}
				if http2 {
					c.OpenStream = openStream(stub)
				}
				conns = append(conns, c)
			}
			return binding.NewClient(pb.API(), conns), nil
		},
	}
}

func newServer(config rpcbench.ServerConfig, s userserviceconnect.UserServiceHandler, http2 bool, options ...connect.HandlerOption) rpcbench.Server {
	mux := http.NewServeMux()
	mux.Handle(userserviceconnect.NewUserServiceHandler(s, append(slices.Clip(options), connect.WithReadMaxBytes(rpcbench.MaxBody))...))
	return httpapi.NewServer(config, mux, http2)
}

// service implements the generated interface.
type service struct{ pb.Service }

func (s service) CreateUsers(ctx context.Context, stream *connect.BidiStream[userv1.User, userv1.CreateUserResponse]) error {
	return s.Answer(ctx, stream.Receive, stream.Send)
}

func openStream(stub userserviceconnect.UserServiceClient) func(context.Context) (pb.Stream, error) {
	return func(ctx context.Context) (pb.Stream, error) {
		s, err := stub.CreateUsers(ctx)
		if err != nil {
			return pb.Stream{}, err
		}
		// While net/http waits for more of a request it does not look at the context, not even if a reply is waited for.
		stop := context.AfterFunc(ctx, func() { _ = s.CloseRequest() })
		return pb.Stream{Send: s.Send, Receive: s.Receive, CloseSend: s.CloseRequest, Release: func() {
			stop()
			_, _ = s.CloseRequest(), s.CloseResponse()
		}}, nil
	}
}

func addHeaders(h *rpcbench.Headers) connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			req.Header().Set("User-Agent", h.UserAgent)
			req.Header().Set("Authorization", h.Authorization)
			req.Header().Set("Traceparent", h.Traceparent())
			return next(ctx, req)
		}
	}
}

// vt is vtprotobuf as the codec for protobuf. google.rpc.Status, in which servers tell gRPC's clients of a failure's details,
// has no such methods and is encoded by reflection; the client here, of the Connect protocol, is never sent one.
type vt struct{}

func (vt) Name() string                           { return "proto" } // of the wire format, which is the same
func (c vt) Marshal(v any) ([]byte, error)        { return c.MarshalAppend(nil, v) }
func (vt) Unmarshal(data []byte, fresh any) error { return fresh.(pb.VTMessage).UnmarshalVT(data) } // it merges

// MarshalAppend is found by assertion: with it the library encodes into buffers of its pool.
func (vt) MarshalAppend(buf []byte, v any) ([]byte, error) {
	m, ok := v.(pb.VTMessage)
	if !ok {
		return proto.MarshalOptions{}.MarshalAppend(buf, v.(proto.Message))
	}
	size := m.SizeVT()
	buf = slices.Grow(buf, size)[:len(buf)+size]
	_, err := m.MarshalToSizedBufferVT(buf[len(buf)-size:])
	return buf, err
}
