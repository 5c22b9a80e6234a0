// Package connectapi has what the stacks of connect-go share: the service and its server, the client, and the
// translation between rpcbench codes and Connect's. Every server answers the Connect, gRPC and gRPC-Web protocols, in
// protobuf and JSON. The options of the client decide what the client speaks. Stacks over HTTP/2 also have streams.
package connectapi

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/binding/pb"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
	"github.com/rpcbench/rpcbench/internal/transport/rpcstatus"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/userservice/userserviceconnect"
)

// Traits returns the traits of a stack over an HTTP version, without compression.
func Traits(http rpcbench.HTTP) rpcbench.Traits {
	t := pb.Traits()
	t.HTTP, t.Multiplexed = http, http == rpcbench.HTTP2
	t.ServerLibraries = []string{"connectrpc.com/connect", "net/http"}
	t.ClientLibraries = t.ServerLibraries
	return t
}

// VT makes a stack over HTTP/1.1 that encodes and decodes with vtprotobuf's generated methods.
func VT(name string) rpcbench.Stack {
	return Stack(name, "connect/proto", pb.VTTraits(Traits("1.1")),
		[]connect.HandlerOption{connect.WithCodec(vt{})}, connect.WithCodec(vt{}))
}

// Stack makes a stack with options for either side. It turns gzip off at both sides unless the traits name it. By
// default the server offers gzip in a header of each reply, and the client asks for it.
func Stack(name, protocol string, t rpcbench.Traits,
	server []connect.HandlerOption, client ...connect.ClientOption) rpcbench.Stack {
	http2 := t.HTTP == "2"
	if t.Compression == "" {
		server = append(server, connect.WithCompression("gzip", nil, nil))
		client = append(client, connect.WithAcceptCompression("gzip", nil, nil))
	}
	return rpcbench.Stack{
		Name: name, Protocol: protocol, Traits: t,
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			return newServer(config, pb.API().NewService(config), http2, server...), nil
		},
		Dial: func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
			options := client
			if config.Headers != nil { // before other interceptors, as a caller would
				options = append([]connect.ClientOption{connect.WithInterceptors(addHeaders(config.Headers))}, client...)
			}
			var conns []*pb.Conn
			for _, h := range httpapi.HTTPClients(config, http2) {
				stub := userserviceconnect.NewUserServiceClient(h.Client, httpapi.BaseURL(config), options...)
				c := &pb.Conn{Call: stub.CreateUser, Echo: stub.Echo, Failure: fromConnect, Close: h.Close}
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
	s := service{pb.Service{Create: create, Failure: toConnect, Config: &config}}
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
		// net/http does not look at the context while it waits for more of a request.
		stop := context.AfterFunc(ctx, func() { _ = s.CloseRequest() })
		return pb.Stream{Send: s.Send, Receive: s.Receive, CloseSend: s.CloseRequest, Release: func() {
			stop()
			_, _ = s.CloseRequest(), s.CloseResponse()
		}}, nil
	}
}

// Of returns s as a stack that serves and calls a method of one's own over HTTP/1.1, without options. Handler and
// client are made as connect-go's generator makes them.
func Of[Q, A any](s rpcbench.Stack, m rpcbench.Method[Q, A]) rpcbench.Stack {
	s, newCaller := binding.Of(s, m, pb.Format())
	s.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		serve, err := binding.Serve(config, m)
		mux := http.NewServeMux()
		mux.Handle("/"+m.Name, connect.NewUnaryHandlerSimple("/"+m.Name, func(ctx context.Context, q *Q) (*A, error) {
			a, err := serve(ctx, q)
			if err != nil {
				return nil, toConnect(err)
			}
			return a, nil
		}, connect.WithCompression("gzip", nil, nil), connect.WithReadMaxBytes(rpcbench.MaxBody)))
		return httpapi.NewServer(config, mux, false), err
	}
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		options := []connect.ClientOption{connect.WithAcceptCompression("gzip", nil, nil)}
		if config.Headers != nil {
			options = append(options, connect.WithInterceptors(addHeaders(config.Headers)))
		}
		var conns []*binding.Conn[Q, A, struct{}]
		for _, h := range httpapi.HTTPClients(config, false) {
			client := connect.NewClient[Q, A](h.Client, httpapi.BaseURL(config)+"/"+m.Name, options...)
			conns = append(conns, &binding.Conn[Q, A, struct{}]{
				Call: func(ctx context.Context, q *Q) (*A, error) {
					response, err := client.CallUnary(ctx, connect.NewRequest(q))
					if response != nil {
						return response.Msg, err
					}
					return nil, err
				},
				Failure: fromConnect, Close: h.Close,
			})
		}
		return newCaller(conns)
	}
	return s
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

// vt is a codec for protobuf that calls vtprotobuf's methods. Servers send gRPC clients the details of a failure in a
// google.rpc.Status, which lacks these methods and is encoded by reflection. Clients of VT speak Connect and never get
// one.
type vt struct{}

func (vt) Name() string                           { return "proto" } // of the wire format, which is the same
func (c vt) Marshal(v any) ([]byte, error)        { return c.MarshalAppend(nil, v) }
func (vt) Unmarshal(data []byte, fresh any) error { return fresh.(pb.VTMessage).UnmarshalVT(data) } // it merges

// MarshalAppend lets the library encode into its pooled buffers. The library finds it by a type assertion.
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

// toConnect turns an error of the service into the library's. Broken rules become details, as google.rpc.BadRequest.
func toConnect(err error) error {
	number, details := rpcstatus.Status(err)
	failure := connect.NewError(connect.Code(number), err)
	if details != nil {
		detail, _ := connect.NewErrorDetail(details) // fails for invalid UTF-8, which no rule has
		failure.AddDetail(detail)
	}
	return failure
}

// fromConnect turns an error of the library's client into an *rpcbench.Error.
func fromConnect(ctx context.Context, err error) error {
	failure, _ := errors.AsType[*connect.Error](err) // the library returns no other
	var details []any
	for _, d := range failure.Details() {
		m, _ := d.Value()
		details = append(details, m)
	}
	return rpcstatus.OfConnect(ctx, err, uint32(failure.Code()), failure.Message(), connect.IsWireError(err), details)
}
