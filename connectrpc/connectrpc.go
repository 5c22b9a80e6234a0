// Package connectrpc serves and calls the create-user API with connect-go on net/http: protobuf in the Connect protocol
// over HTTP/1.1, uncompressed unless a variant says otherwise. Servers answer the Connect, gRPC and gRPC-Web protocols in
// protobuf and JSON; a variant is what its client speaks. Streams are for the variants over HTTP/2. What connect-go's
// generator would add, handlers and clients by procedure, is written out here: it is no more than that, but for a schema
// that only interceptors read.
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
	"github.com/rpcbench/rpcbench/message/messagepb"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

// New uses the library's defaults but for compression, which is off, and the limits that every server has.
func New() rpcbench.Stack { return stack("connectrpc", "connect/proto", false, identity()) }

// H2C is New over HTTP/2, in clear or over TLS.
func H2C() rpcbench.Stack { return stack("connectrpc.h2c", "connect/proto/h2", true, identity()) }

// GRPC speaks the gRPC protocol: its server and grpc-go's can each be called by the other's client.
func GRPC() rpcbench.Stack {
	return stack("connectrpc.grpc", "grpc/proto", true, identity(connect.WithGRPC()))
}

// GRPCWeb speaks gRPC-Web: gRPC's messages, with its trailers as the last of them, so HTTP/1.1 will do.
func GRPCWeb() rpcbench.Stack {
	return stack("connectrpc.grpcweb", "grpcweb/proto", false, identity(connect.WithGRPCWeb()))
}

// JSON encodes and decodes with protojson.
func JSON() rpcbench.Stack {
	return stack("connectrpc.json", "connect/json", false, identity(connect.WithProtoJSON()))
}

// Gzip is the library as shipped: the client asks for gzip, the server compresses every reply, whatever its size.
func Gzip() rpcbench.Stack {
	s := stack("connectrpc.gzip", "connect/proto", false, options{})
	s.Traits.Compression = rpcbench.GzipReplies
	return s
}

// VT encodes and decodes with vtprotobuf's generated methods instead of reflection. They don't look at UTF-8, and take a
// negative zero for a zero.
func VT() rpcbench.Stack {
	o := identity(connect.WithCodec(vt{}))
	o.server = append(o.server, connect.WithCodec(vt{}))
	s := stack("connectrpc.vt", "connect/proto", false, o)
	s.Traits.Codec, s.Traits.InvalidUTF8 = "github.com/rpcbench/rpcbench/proto/user/v1", rpcbench.Kept
	s.Traits.Lossy = []string{"negative zero"}
	return s
}

type options struct {
	server []connect.HandlerOption
	client []connect.ClientOption
}

// identity takes gzip from both sides. A server that had it would offer it in a header of each reply.
func identity(client ...connect.ClientOption) options {
	return options{
		server: []connect.HandlerOption{connect.WithCompression("gzip", nil, nil)},
		client: append(client, connect.WithAcceptCompression("gzip", nil, nil)),
	}
}

// Package userv1grpc has the procedures' names too, but to import it is to compile grpc.
const (
	createUser  = "/rpcbench.user.v1.UserService/CreateUser"
	createUsers = "/rpcbench.user.v1.UserService/CreateUsers"
	echo        = "/rpcbench.user.v1.UserService/Echo"
)

func stack(name, protocol string, http2 bool, o options) rpcbench.Stack {
	o.server = append(o.server, connect.WithReadMaxBytes(rpcbench.MaxBody))
	traits := rpcbench.Traits{Codec: "google.golang.org/protobuf", HTTP: "1.1", InvalidUTF8: rpcbench.Rejected}
	traits.Server = []string{"connectrpc.com/connect", "net/http"}
	traits.Client = traits.Server
	if http2 {
		traits.HTTP, traits.Multiplexed = "2", true
	}
	return rpcbench.Stack{
		Name: name, Protocol: protocol, Traits: traits,
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			mux := http.NewServeMux()
			mux.Handle(createUser, handler(createUser, pb.API().NewService(), o.server))
			mux.Handle(echo, handler(echo, binding.Echo[messagepb.Flex], o.server))
			if http2 {
				mux.Handle(createUsers, streamHandler(pb.API().NewService(), o.server))
			}
			return httpapi.NewServer(config, mux, http2), nil
		},
		Dial: func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
			clientOptions := o.client
			if config.Headers != nil {
				clientOptions = append(slices.Clip(clientOptions), connect.WithInterceptors(addHeaders(config.Headers)))
			}
			var conns []conn
			var closers []func() error
			for _, h := range httpapi.HTTPClients(config, http2) {
				conns = append(conns, newConn(h, httpapi.BaseURL(config), clientOptions))
				closers = append(closers, httpapi.CloseIdle(h))
			}
			if http2 {
				return binding.NewStreamClient(pb.API(), conns, closers...), nil
			}
			return binding.NewClient(pb.API(), conns, closers...), nil
		},
	}
}

func handler[Q, A any](procedure string, do func(context.Context, *Q) (*A, error), options []connect.HandlerOption) *connect.Handler {
	return connect.NewUnaryHandler(procedure, func(ctx context.Context, q *connect.Request[Q]) (*connect.Response[A], error) {
		a, err := do(ctx, q.Msg)
		if err != nil {
			return nil, toConnect(err)
		}
		return connect.NewResponse(a), nil
	}, options...)
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

// conn calls through one http.Client; createUsers streams, over HTTP/2.
type conn struct {
	createUser, createUsers *connect.Client[userv1.User, userv1.CreateUserResponse]
	echo                    *connect.Client[messagepb.Flex, messagepb.Flex]
}

func newConn(h *http.Client, url string, options []connect.ClientOption) conn {
	return conn{
		createUser:  connect.NewClient[userv1.User, userv1.CreateUserResponse](h, url+createUser, options...),
		createUsers: connect.NewClient[userv1.User, userv1.CreateUserResponse](h, url+createUsers, options...),
		echo:        connect.NewClient[messagepb.Flex, messagepb.Flex](h, url+echo, options...),
	}
}

func (c conn) CreateUser(ctx context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
	return call(ctx, c.createUser, u)
}

func (c conn) Echo(ctx context.Context, f *messagepb.Flex) (*messagepb.Flex, error) {
	return call(ctx, c.echo, f)
}

func call[Q, A any](ctx context.Context, c *connect.Client[Q, A], q *Q) (*A, error) {
	r, err := c.CallUnary(ctx, connect.NewRequest(q))
	if err != nil {
		return nil, fromConnect(ctx, err)
	}
	return r.Msg, nil
}

// vt is vtprotobuf as the codec for protobuf. google.rpc.Status, in which servers tell gRPC's clients of a failure's details,
// has no such methods and is encoded by reflection; the client here, of the Connect protocol, is never sent one.
type vt struct{}

type vtMessage interface {
	SizeVT() int
	MarshalToSizedBufferVT([]byte) (int, error)
	UnmarshalVT([]byte) error
}

func (vt) Name() string                           { return "proto" } // of the wire format, which is the same
func (c vt) Marshal(v any) ([]byte, error)        { return c.MarshalAppend(nil, v) }
func (vt) Unmarshal(data []byte, fresh any) error { return fresh.(vtMessage).UnmarshalVT(data) } // it merges

// MarshalAppend is found by assertion: with it the library encodes into buffers of its pool.
func (vt) MarshalAppend(buf []byte, v any) ([]byte, error) {
	m, ok := v.(vtMessage)
	if !ok {
		return proto.MarshalOptions{}.MarshalAppend(buf, v.(proto.Message))
	}
	size := m.SizeVT()
	buf = slices.Grow(buf, size)[:len(buf)+size]
	_, err := m.MarshalToSizedBufferVT(buf[len(buf)-size:])
	return buf, err
}
