// Package grpcapi has what the stacks of grpc-go share: the service and its server, the client, and the translation
// between rpcbench codes and gRPC status.
package grpcapi

import (
	"context"
	"net"
	"net/netip"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/binding/pb"
	"github.com/rpcbench/rpcbench/internal/transport/rpcstatus"
	messagepb "github.com/rpcbench/rpcbench/proto/message/v1"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/userservice/userservicegrpc"
)

// Transport describes how a server gets its calls.
type Transport struct {
	Libraries []string // their import paths
	Serve     func(rpcbench.ServerConfig, ...grpc.ServerOption) rpcbench.Server
}

// Stack makes a stack of grpc-go's client and of a server on the transport, with options for either.
func (t Transport) Stack(name string, server []grpc.ServerOption, client ...grpc.DialOption) rpcbench.Stack {
	traits := pb.Traits()
	traits.HTTP, traits.Multiplexed = "2", true
	traits.ServerLibraries, traits.ClientLibraries = t.Libraries, []string{"google.golang.org/grpc"}
	return rpcbench.Stack{
		Name: name, Protocol: "grpc/proto", Traits: traits,
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) { return t.Serve(config, server...), nil },
		Dial: func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
			conns, err := DialAll(config, newConn, client...)
			if err != nil {
				return nil, err
			}
			return binding.NewClient(pb.API(), conns), nil
		},
	}
}

// VT makes a stack that encodes and decodes with vtprotobuf's generated methods. The codec is an option of one server
// and one client: registering the codec would change every client of the process.
func (t Transport) VT(name string) rpcbench.Stack {
	codec := vt{encoding.GetCodecV2("proto")}
	s := t.Stack(name, []grpc.ServerOption{grpc.ForceServerCodecV2(codec)},
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec)))
	s.Traits = pb.VTTraits(s.Traits)
	return s
}

// service implements the generated interface.
type service struct {
	userservicegrpc.UnsafeUserServiceServer // has the unexported method of the interface
	pb.Service
}

func (s service) CreateUsers(stream grpc.BidiStreamingServer[userv1.User, userv1.CreateUserResponse]) error {
	return s.Answer(stream.Context(), stream.Recv, stream.Send)
}

// NewServer makes a server of the service with the limits that every server has.
func NewServer(config rpcbench.ServerConfig, options ...grpc.ServerOption) *grpc.Server {
	s := bare(config, options...)
	userservicegrpc.RegisterUserServiceServer(s, NewService(config))
	return s
}

// bare makes a server without a service.
func bare(config rpcbench.ServerConfig, options ...grpc.ServerOption) *grpc.Server {
	idle, header := config.Limits()
	return grpc.NewServer(append([]grpc.ServerOption{
		grpc.MaxRecvMsgSize(rpcbench.MaxBody),
		grpc.MaxHeaderListSize(rpcbench.MaxHeader),
		grpc.ConnectionTimeout(header),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idle}),
	}, options...)...)
}

// NewService makes the service as a server of gRPC calls it.
func NewService(config rpcbench.ServerConfig) userservicegrpc.UserServiceServer {
	return service{Service: pb.Service{Create: pb.API().NewService(config), Failure: toStatus, Config: &config}}
}

// OwnServer is NewServer for a server that accepts connections itself, with or without TLS.
func OwnServer(config rpcbench.ServerConfig, options ...grpc.ServerOption) rpcbench.Server {
	return server{NewServer(config, withTLS(config, options)...)}
}

func withTLS(config rpcbench.ServerConfig, options []grpc.ServerOption) []grpc.ServerOption {
	if config.TLS != nil {
		options = append([]grpc.ServerOption{grpc.Creds(credentials.NewTLS(config.TLS))}, options...)
	}
	return options
}

type server struct{ *grpc.Server }

func (s server) Close() error {
	s.Stop()
	return nil
}

// DialAll makes the connections of a client, each of a grpc.ClientConn of its own. It opens nothing yet, and fails for
// the first connection if at all.
func DialAll[U, R, F any](config rpcbench.ClientConfig, conn func(*grpc.ClientConn) *binding.Conn[U, R, F],
	options ...grpc.DialOption) (conns []*binding.Conn[U, R, F], err error) {
	creds := insecure.NewCredentials()
	if config.TLS != nil {
		creds = credentials.NewTLS(config.TLS)
	}
	options = append(options,
		grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return config.DialContext(ctx, "tcp", addr)
		}))
	if h := config.Headers; h != nil {
		options = append(options, grpc.WithUserAgent(h.UserAgent), grpc.WithUnaryInterceptor(addHeaders(h)))
	}
	for range config.Conns {
		cc, err := grpc.NewClient(target(config.Addr), options...)
		if err != nil {
			return nil, err
		}
		c := conn(cc)
		c.Close = func() { _ = cc.Close() } // fails if it is closed already
		conns = append(conns, c)
	}
	return conns, nil
}

// target has the dialer resolve a name, as it does for every other stack. grpc-go's own resolver also asks for a TXT
// record, the service config, and each new connection would wait for that. It asks nothing about an IP address, which
// stays as most users write it.
func target(addr string) string {
	if _, err := netip.ParseAddrPort(addr); err != nil {
		return "passthrough:///" + addr
	}
	return addr
}

func addHeaders(h *rpcbench.Headers) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any,
		cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", h.Authorization, "traceparent", h.Traceparent())
		return invoke(ctx, method, req, reply, cc, options...)
	}
}

func newConn(cc *grpc.ClientConn) *pb.Conn {
	stub := userservicegrpc.NewUserServiceClient(cc)
	return &pb.Conn{
		Call: func(ctx context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
			return stub.CreateUser(ctx, u)
		},
		Echo: func(ctx context.Context, f *messagepb.Flex) (*messagepb.Flex, error) { return stub.Echo(ctx, f) },
		OpenStream: func(ctx context.Context) (pb.Stream, error) {
			s, err := stub.CreateUsers(ctx)
			if err != nil {
				return pb.Stream{}, err
			}
			return pb.Stream{Send: s.Send, Receive: s.Recv, CloseSend: s.CloseSend, Release: func() {}}, nil
		},
		Failure: fromStatus,
	}
}

// toStatus turns an error of the service into a gRPC status. Broken rules become details, as google.rpc.BadRequest.
func toStatus(err error) error {
	number, details := rpcstatus.Status(err)
	s := status.New(codes.Code(number), err.Error())
	if details != nil {
		s, _ = s.WithDetails(details) // fails for invalid UTF-8, which no rule has
	}
	return s.Err()
}

func fromStatus(_ context.Context, err error) error { return FromStatus(err) }

// FromStatus turns an error with a gRPC status, such as a client's, into an *rpcbench.Error.
func FromStatus(err error) *rpcbench.Error {
	s := status.Convert(err)
	e := rpcstatus.Error(err, uint32(s.Code()), s.Message())
	if s.Code() == codes.Canceled && s.Message() == "grpc: the client connection is closing" {
		e.Code = rpcbench.CodeUnavailable // the context was not cancelled
	}
	for _, d := range s.Details() {
		rpcstatus.AddDetail(e, d)
	}
	return e
}

// vt is a codec that calls vtprotobuf's methods, and uses grpc-go's buffer pool as grpc-go's own codec does. The older
// Codec interface would need a copy. The embedded codec handles messages without vtprotobuf's methods, such as those of
// gRPC reflection.
type vt struct{ encoding.CodecV2 }

func (c vt) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(pb.VTMessage)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	size := m.SizeVT()
	if mem.IsBelowBufferPoolingThreshold(size) {
		buf := make([]byte, size)
		_, err := m.MarshalToSizedBufferVT(buf)
		return mem.BufferSlice{mem.SliceBuffer(buf)}, err
	}
	pool := mem.DefaultBufferPool()
	buf := pool.Get(size)
	if _, err := m.MarshalToSizedBufferVT((*buf)[:size]); err != nil {
		pool.Put(buf)
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(buf, pool)}, nil
}

// Unmarshal needs a fresh v, since UnmarshalVT merges.
func (c vt) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(pb.VTMessage)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	return m.UnmarshalVT(buf.ReadOnlyData())
}
