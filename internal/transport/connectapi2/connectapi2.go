// Package connectapi2 has what the stacks of connect-go v2 share, as package connectapi has it of v1: the service and
// its server, the client, and the translation between rpcbench codes and Connect's. Every server answers the Connect,
// gRPC and gRPC-Web protocols, in protobuf and JSON. The options decide what the client speaks. Stacks over HTTP/2 also
// have streams.
package connectapi2

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"connectrpc.com/connect/v2/connectproto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/binding/pb"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
	"github.com/rpcbench/rpcbench/internal/transport/rpcstatus"
	"github.com/rpcbench/rpcbench/proto/userservice/userserviceconnect2"
)

// Traits returns the traits of a stack over an HTTP version, without compression.
func Traits(http rpcbench.HTTP) rpcbench.Traits {
	t := pb.Traits()
	t.HTTP, t.Multiplexed = http, http == rpcbench.HTTP2
	t.ServerLibraries = []string{"connectrpc.com/connect/v2", "net/http"}
	t.ClientLibraries = t.ServerLibraries
	return t
}

// VT makes a stack over HTTP/1.1 that encodes and decodes with vtprotobuf's generated methods.
func VT(name string) rpcbench.Stack {
	return Stack(name, "connect/proto", pb.VTTraits(Traits("1.1")),
		connecthttp.WithCodecs(vt{}, connectproto.NewJSONCodec())) // the list replaces the default codecs
}

// Stack makes a stack with options that both sides take: the server ignores those that are the client's. It turns gzip
// off unless the traits name it. By default the client asks for it, and the server compresses every reply.
func Stack(name, protocol string, t rpcbench.Traits, options ...connecthttp.Option) rpcbench.Stack {
	http2 := t.HTTP == "2"
	if t.Compression == "" {
		options = append(options, connecthttp.WithCompressors())
	}
	return rpcbench.Stack{
		Name: name, Protocol: protocol, Traits: t,
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			return newServer(config, pb.API().NewService(config), http2, options...), nil
		},
		Dial: func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
			var conns []*pb.Conn
			for _, h := range httpapi.HTTPClients(config, http2) {
				stub := userserviceconnect2.NewUserServiceClient(newClient(config, h.Client, options...))
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
	config rpcbench.ServerConfig, create pb.Create, http2 bool, options ...connecthttp.Option) rpcbench.Server {
	server := connect.NewServer()
	s := service{pb.Service{Create: create, Failure: toConnect, Config: &config}}
	userserviceconnect2.RegisterUserServiceHandler(server, s)
	return mount(config, server, http2, options...)
}

func mount(
	config rpcbench.ServerConfig, s *connect.Server, http2 bool, options ...connecthttp.Option) rpcbench.Server {
	mux := http.NewServeMux()
	connecthttp.Mount(mux, s, append(slices.Clip(options), connecthttp.WithReadMaxBytes(rpcbench.MaxBody))...)
	return httpapi.NewServer(config, mux, http2)
}

func newClient(config rpcbench.ClientConfig, h *http.Client, options ...connecthttp.Option) *connect.Client {
	var interceptors []connect.ClientInterceptor
	if config.Headers != nil {
		interceptors = append(interceptors, addHeaders(config.Headers))
	}
	return connect.NewClient(connecthttp.NewTransport(h, httpapi.BaseURL(config), options...), interceptors...)
}

// service implements the generated interface.
type service struct{ pb.Service }

func (s service) CreateUsers(
	ctx context.Context, stream userserviceconnect2.UserServiceCreateUsersServerStream) error {
	return s.Answer(ctx, stream.Receive, stream.Send)
}

func openStream(stub userserviceconnect2.UserServiceClient) func(context.Context) (pb.Stream, error) {
	return func(ctx context.Context) (pb.Stream, error) {
		s, err := stub.CreateUsers(ctx)
		if err != nil {
			return pb.Stream{}, err
		}
		// As v1 does by itself. Else the first Send writes headers, perhaps while Close of an ended context reads them.
		if err := s.SendHeaders(); err != nil {
			return pb.Stream{}, err
		}
		// net/http does not look at the context while it waits for more of a request.
		stop := context.AfterFunc(ctx, func() { _ = s.Close() })
		return pb.Stream{Send: s.Send, Receive: s.Receive, CloseSend: s.CloseSend, Release: func() {
			stop()
			_ = s.Close()
		}}, nil
	}
}

// Of returns s as a stack that serves and calls a method of one's own over HTTP/1.1, without options. Handler and
// client are made as connect-go's generator makes them.
func Of[Q, A any](s rpcbench.Stack, m rpcbench.Method[Q, A]) rpcbench.Stack {
	s, newCaller := binding.Of(s, m, pb.Format())
	spec := connect.Spec{StreamType: connect.StreamTypeUnary, Procedure: "/" + m.Name}
	s.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		serve, err := binding.Serve(config, m)
		server := connect.NewServer()
		server.Register(connect.Method{Spec: spec,
			Handler: func(ctx context.Context, _ connect.Spec, stream connect.ServerStream) error {
				q := new(Q)
				if err := stream.Receive(q); err != nil {
					return err
				}
				a, err := serve(ctx, q)
				if err != nil {
					return toConnect(err)
				}
				return stream.Send(a)
			}})
		return mount(config, server, false, connecthttp.WithCompressors()), err
	}
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		var conns []*binding.Conn[Q, A, struct{}]
		for _, h := range httpapi.HTTPClients(config, false) {
			client := newClient(config, h.Client, connecthttp.WithCompressors())
			conns = append(conns, &binding.Conn[Q, A, struct{}]{
				Call: func(ctx context.Context, q *Q) (*A, error) {
					a := new(A)
					if err := client.CallUnary(ctx, spec, q, a); err != nil {
						return nil, err
					}
					return a, nil
				},
				Failure: fromConnect, Close: h.Close,
			})
		}
		return newCaller(conns)
	}
	return s
}

func addHeaders(h *rpcbench.Headers) connect.ClientInterceptor {
	return func(next connect.ClientFunc) connect.ClientFunc {
		return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
			info, _ := connect.CallInfoForClientContext(ctx) // the client has made one
			info.RequestHeader().Set("User-Agent", h.UserAgent)
			info.RequestHeader().Set("Authorization", h.Authorization)
			info.RequestHeader().Set("Traceparent", h.Traceparent())
			return next(ctx, spec)
		}
	}
}

// vt is a codec for protobuf that calls vtprotobuf's methods, and encodes into the library's buffers as the library's
// own codec does. Servers send gRPC clients the details of a failure in a google.rpc.Status, which lacks these methods
// and is encoded by reflection. Clients of VT speak Connect and never get one.
type vt struct{}

func (vt) Name() string { return connect.CodecNameProto } // of the wire format, which is the same

func (vt) MarshalWrite(ctx context.Context, dst io.Writer, v any) error {
	m, ok := v.(pb.VTMessage)
	if !ok {
		return connectproto.NewBinaryCodec().MarshalWrite(ctx, dst, v)
	}
	buf := dst.(interface { // as Codec says of the library's writers
		AvailableBuffer() []byte
		Grow(int)
	})
	size := m.SizeVT()
	buf.Grow(size)
	data := buf.AvailableBuffer()[:size]
	if _, err := m.MarshalToSizedBufferVT(data); err != nil {
		return err
	}
	_, err := dst.Write(data)
	return err
}

// UnmarshalRead merges into fresh, which is new.
func (vt) UnmarshalRead(_ context.Context, src io.Reader, fresh any) error {
	buf := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buf)
	buf.Reset()
	if _, err := buf.ReadFrom(src); err != nil {
		return err
	}
	return fresh.(pb.VTMessage).UnmarshalVT(buf.Bytes())
}

// buffers have one message each, as those have that the library's own codec reads into.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// toConnect turns an error of the service into the library's. Broken rules become details, as google.rpc.BadRequest.
func toConnect(err error) error {
	number, details := rpcstatus.Status(err)
	failure := connect.NewError(connect.Code(number), err.Error())
	if details != nil {
		detail, _ := connectproto.NewErrorDetail(details) // fails for invalid UTF-8, which no rule has
		failure = failure.WithDetail(detail)
	}
	return failure
}

// fromConnect turns an error of the library's client into an *rpcbench.Error.
func fromConnect(ctx context.Context, err error) error {
	failure, _ := errors.AsType[*connect.Error](err)
	if failure == nil { // as the library may report the end of the context
		return rpcbench.CallError(ctx, err)
	}
	var details []any
	for _, d := range failure.Details() {
		m, _ := connectproto.UnmarshalErrorDetail(d)
		details = append(details, m)
	}
	return rpcstatus.OfConnect(ctx, err, uint32(failure.Code()), failure.Message(), failure.IsRemote(), details)
}
