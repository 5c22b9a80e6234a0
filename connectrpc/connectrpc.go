// Package connectrpc serves and calls the create-user API with connect-go on net/http: protobuf in the Connect protocol
// over HTTP/1.1, uncompressed unless a variant says otherwise. Servers answer the Connect, gRPC and gRPC-Web protocols
// in protobuf and JSON; a variant is what its client speaks. Streams are for the variants over HTTP/2. Handlers and
// clients are connect-go's generated ones.
package connectrpc

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/binding/pb"
	"github.com/rpcbench/rpcbench/internal/httpapi"
	"github.com/rpcbench/rpcbench/internal/rpcstatus"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/userservice/userserviceconnect"
)

// New uses the library's defaults but for compression, which is off, and the limits that every server has.
func New() rpcbench.Stack { return stack("connectrpc", "connect/proto", traits("1.1"), nil) }

// H2C is New over HTTP/2, in clear or over TLS.
func H2C() rpcbench.Stack { return stack("connectrpc.h2c", "connect/proto/h2", traits("2"), nil) }

// GRPC speaks the gRPC protocol: its server and grpc-go's can each be called by the other's client.
func GRPC() rpcbench.Stack {
	return stack("connectrpc.grpc", "grpc/proto", traits("2"), nil, connect.WithGRPC())
}

// GRPCWeb speaks gRPC-Web: gRPC's messages, with its trailers as the last of them, so HTTP/1.1 will do.
func GRPCWeb() rpcbench.Stack {
	return stack("connectrpc.grpcweb", "grpcweb/proto", traits("1.1"), nil, connect.WithGRPCWeb())
}

// JSON encodes and decodes with protojson.
func JSON() rpcbench.Stack {
	return stack("connectrpc.json", "connect/json", traits("1.1"), nil, connect.WithProtoJSON())
}

// Gzip is the library as shipped: the client asks for gzip, the server compresses every reply, whatever its size.
func Gzip() rpcbench.Stack {
	t := traits("1.1")
	t.Compression = rpcbench.GzipReplies
	return stack("connectrpc.gzip", "connect/proto", t, nil)
}

// VT encodes and decodes with vtprotobuf's generated methods instead of reflection. They don't look at UTF-8, and take
// a negative zero for a zero.
func VT() rpcbench.Stack {
	return stack("connectrpc.vt", "connect/proto", pb.VTTraits(traits("1.1")),
		[]connect.HandlerOption{connect.WithCodec(vt{})}, connect.WithCodec(vt{}))
}

func traits(http string) rpcbench.Traits {
	t := pb.Traits()
	t.HTTP, t.Multiplexed = http, http == "2"
	t.Server = []string{"connectrpc.com/connect", "net/http"}
	t.Client = t.Server
	return t
}

// stack takes gzip from both sides unless the traits name it: the server would offer it in a header of each reply, and
// the client would ask for it.
func stack(name, protocol string, t rpcbench.Traits,
	server []connect.HandlerOption, client ...connect.ClientOption) rpcbench.Stack {
	http2 := t.HTTP == "2"
	if t.Compression == "" {
		server = append(server, connect.WithCompression("gzip", nil, nil))
		client = append(client, connect.WithAcceptCompression("gzip", nil, nil))
	}
	return rpcbench.Stack{
		Name: name, Protocol: protocol, Traits: t,
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			return newServer(config, pb.API().NewService(), http2, server...), nil
		},
		Dial: func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
			options := slices.Clip(client)
			if config.Headers != nil {
				options = append(options, connect.WithInterceptors(addHeaders(config.Headers)))
			}
			var conns []*pb.Conn
			for _, h := range httpapi.HTTPClients(config, http2) {
				stub := userserviceconnect.NewUserServiceClient(h, httpapi.BaseURL(config), options...)
				c := &pb.Conn{
					CreateUser: stub.CreateUser, Echo: stub.Echo, Failure: fromConnect, Close: h.CloseIdleConnections,
				}
				if http2 {
					c.OpenStream = openStream(stub)
				}
				conns = append(conns, c)
			}
			return binding.NewClient(pb.API(), conns), nil
		},
	}
}

func newServer(
	config rpcbench.ServerConfig, create pb.Create, http2 bool, options ...connect.HandlerOption) rpcbench.Server {
	options = append(slices.Clip(options), connect.WithReadMaxBytes(rpcbench.MaxBody))
	s := service{pb.Service{Create: create, Failure: toConnect}}
	mux := http.NewServeMux()
	mux.Handle(userserviceconnect.NewUserServiceHandler(s, options...))
	return httpapi.NewServer(config, mux, http2)
}

// service implements the generated interface.
type service struct{ pb.Service }

func (s service) CreateUsers(
	ctx context.Context, stream *connect.BidiStream[userv1.User, userv1.CreateUserResponse]) error {
	return s.Answer(ctx, stream.Receive, stream.Send)
}

func openStream(stub userserviceconnect.UserServiceClient) func(context.Context) (pb.Stream, error) {
	return func(ctx context.Context) (pb.Stream, error) {
		s, err := stub.CreateUsers(ctx)
		if err != nil {
			return pb.Stream{}, err
		}
		// While net/http waits for more of a request it does not look at the context, not even if a reply is waited
		// for.
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

// vt is vtprotobuf as the codec for protobuf. google.rpc.Status, in which servers tell gRPC's clients of a failure's
// details, has no such methods and is encoded by reflection. The client here speaks Connect, and is never sent one.
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

// toConnect makes the library's error of a service's. Broken rules are details, as google.rpc.BadRequest.
func toConnect(err error) error {
	number, details := rpcstatus.Status(err)
	failure := connect.NewError(connect.Code(number), err)
	if details != nil {
		detail, _ := connect.NewErrorDetail(details) // fails for invalid UTF-8, which no rule has
		failure.AddDetail(detail)
	}
	return failure
}

// fromConnect turns what a client returns into an *rpcbench.Error. The server's errors keep their code. The client's
// own are told by their code, by what they wrap, and by the beginning of their message.
func fromConnect(ctx context.Context, err error) error {
	failure, _ := errors.AsType[*connect.Error](err) // the library returns no other
	code := failure.Code()
	begins := func(words string) bool { return strings.HasPrefix(failure.Message(), words) }
	e := rpcstatus.Error(err, uint32(code), failure.Message())
	switch {
	case code == connect.CodeInvalidArgument: // without details, either side's own failure to decode
		for _, d := range failure.Details() {
			m, _ := d.Value()
			rpcstatus.AddDetail(e, m)
		}
	case connect.IsWireError(err): // the server's
	case code == connect.CodeDeadlineExceeded: // of the context, or of net's timer before it
	case errors.As(err, new(net.Error)), errors.Is(err, io.ErrUnexpectedEOF), begins("read "),
		begins("protocol error: incomplete envelope: "), code == connect.CodeUnavailable, code == connect.CodeCanceled:
		return rpcbench.CallError(ctx, err) // no connection, or it broke, or was reset, or the context ended
	case begins("stream error: "): // the server reset the stream
	case code == connect.CodeInternal: // a message that can't be encoded or decoded
		e.Code = rpcbench.Malformed
	}
	return e
}
