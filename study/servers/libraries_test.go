package servers_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/rpc"
	"net/rpc/jsonrpc"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	connect2 "connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"github.com/apache/thrift/lib/go/thrift"
	"github.com/cloudwego/hertz/pkg/app"
	hertzclient "github.com/cloudwego/hertz/pkg/app/client"
	hertz "github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/hlog"
	hertzprotocol "github.com/cloudwego/hertz/pkg/protocol"
	kitexclient "github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/client/genericclient"
	"github.com/cloudwego/kitex/pkg/endpoint"
	"github.com/cloudwego/kitex/pkg/generic"
	"github.com/cloudwego/kitex/pkg/klog"
	kitex "github.com/cloudwego/kitex/server"
	"github.com/cloudwego/kitex/server/genericserver"
	"github.com/cloudwego/netpoll"
	gateway1 "github.com/grpc-ecosystem/grpc-gateway/runtime"
	gateway "github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/quic-go/quic-go/http3"
	"github.com/smallnest/rpcx/protocol"
	rpcx "github.com/smallnest/rpcx/server"
	"github.com/stretchr/testify/require"
	"github.com/twitchtv/twirp"
	haberdasher "github.com/twitchtv/twirp/example"
	"github.com/valyala/fasthttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"storj.io/drpc"
	"storj.io/drpc/drpcconn"
	"storj.io/drpc/drpcmux"
	"storj.io/drpc/drpcserver"
)

// said is what every call sends and has back.
const said = "a text of some length, so that there is something to read and to write, to encode and to decode"

var libraries = []library{
	{name: "net/rpc", serve: netRPC},
	{name: "net/rpc, JSON", serve: jsonRPC},
	{name: "net/http", serve: netHTTP, ofHTTP: true},
	{name: "net/http, HTTP/2", serve: http2, ofHTTP: true},
	{name: "grpc-go", serve: grpcGo},
	{name: "grpc-go, a service generated below its path", serve: health},
	{name: "connect v1", serve: connectV1},
	{name: "connect v2", serve: connectV2},
	{name: "grpc-gateway v1", serve: gatewayV1},
	{name: "grpc-gateway v2", serve: gatewayV2},
	{name: "twirp", serve: twirpRPC},
	{name: "drpc", serve: drpcRPC},
	{name: "rpcx", serve: rpcxRPC},
	{name: "rpcx, a function", serve: rpcxFunction},
	{name: "kitex", serve: kitexRPC},
	{name: "hertz", serve: hertzHTTP, ofHTTP: true},
	{name: "netpoll", serve: netpollTCP, ofHTTP: true},
	{name: "thrift", serve: thriftRPC},
	{name: "quic-go's http3", serve: quicHTTP, ofHTTP: true},
	{name: "fasthttp", serve: fastHTTP, ofHTTP: true},
}

// Echo is a service of net/rpc.
type Echo struct{ work func() }

func (e *Echo) Say(in *string, out *string) error {
	e.work()
	e.work()
	*out = *in
	return nil
}

// serveRPC serves one connection, and returns it.
func serveRPC(t *testing.T, work func(), serve func(*rpc.Server, net.Conn)) net.Conn {
	server, ln := rpc.NewServer(), listen(t)
	require.NoError(t, server.Register(&Echo{work}))
	go func() {
		if conn, err := ln.Accept(); err == nil {
			serve(server, conn)
		}
	}()
	return dial(t, ln.Addr())
}

func callRPC(t *testing.T, client *rpc.Client) func() error {
	t.Cleanup(func() { _ = client.Close() })
	return func() error { return client.Call("Echo.Say", said, new(string)) }
}

func netRPC(t *testing.T, work func()) func() error {
	return callRPC(t, rpc.NewClient(serveRPC(t, work, func(s *rpc.Server, conn net.Conn) { s.ServeConn(conn) })))
}

func jsonRPC(t *testing.T, work func()) func() error {
	return callRPC(t, jsonrpc.NewClient(serveRPC(t, work, func(s *rpc.Server, conn net.Conn) {
		s.ServeCodec(jsonrpc.NewServerCodec(conn))
	})))
}

// handler is one of HTTP, for any library that has such handlers.
type handler struct{ work func() }

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.work()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.work()
		_, _ = io.Copy(w, r.Body)
	})
	mux.ServeHTTP(w, r)
}

// serveHTTP serves a handler and returns its address.
func serveHTTP(t *testing.T, h http.Handler) (url string, client *http.Client) {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL, server.Client()
}

// posts posts to an address.
func posts(url string, client *http.Client) func() error {
	return func() error {
		reply, err := client.Post(url, "text/plain", strings.NewReader(said))
		if err == nil {
			_, err = io.Copy(io.Discard, reply.Body)
			_ = reply.Body.Close()
		}
		return err
	}
}

func netHTTP(t *testing.T, work func()) func() error { return posts(serveHTTP(t, handler{work})) }

func http2(t *testing.T, work func()) func() error {
	server := httptest.NewUnstartedServer(handler{work})
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return posts(server.URL, server.Client())
}

func quicHTTP(t *testing.T, work func()) func() error {
	server := httptest.NewTLSServer(nil) // has a certificate
	t.Cleanup(server.Close)
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	h3 := &http3.Server{Handler: handler{work}, TLSConfig: http3.ConfigureTLSConfig(server.TLS)}
	go func() { _ = h3.Serve(conn) }()
	transport := &http3.Transport{TLSClientConfig: server.Client().Transport.(*http.Transport).TLSClientConfig}
	t.Cleanup(func() { _, _, _ = transport.Close(), h3.Close(), conn.Close() })
	return posts("https://"+conn.LocalAddr().String(), &http.Client{Transport: transport})
}

func fastHTTP(t *testing.T, work func()) func() error {
	ln := listen(t)
	h := fasthttp.CompressHandler(func(ctx *fasthttp.RequestCtx) {
		work()
		work()
		ctx.SetBody(ctx.PostBody())
	})
	server := &fasthttp.Server{Handler: h}
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(func() { _ = server.Shutdown() })
	return posts("http://"+ln.Addr().String(), &http.Client{Transport: &http.Transport{}})
}

func hertzHTTP(t *testing.T, work func()) func() error {
	hlog.SetLevel(hlog.LevelError)
	ln := listen(t)
	server := hertz.New(hertz.WithListener(ln), hertz.WithDisablePrintRoute(true))
	server.Use(func(ctx context.Context, c *app.RequestContext) {
		work()
		c.Next(ctx)
	})
	server.POST("/", func(_ context.Context, c *app.RequestContext) {
		work()
		c.SetBodyString(string(c.Request.Body()))
	})
	go func() { _ = server.Run() }()
	t.Cleanup(func() { _ = server.Close() })
	client, err := hertzclient.NewClient()
	require.NoError(t, err)
	return func() error {
		req, resp := &hertzprotocol.Request{}, &hertzprotocol.Response{}
		req.SetMethod("POST")
		req.SetRequestURI("http://" + ln.Addr().String() + "/")
		req.SetBodyString(said)
		return client.Do(context.Background(), req, resp)
	}
}

func text() *wrapperspb.StringValue { return wrapperspb.String(said) }

func around(work func()) grpc.ServerOption {
	return grpc.UnaryInterceptor(func(ctx context.Context, in any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any,
		error) {
		work()
		return next(ctx, in)
	})
}

func serveGRPC(t *testing.T, server *grpc.Server) *grpc.ClientConn {
	ln := listen(t)
	go func() { _ = server.Serve(ln) }()
	conn, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(); server.Stop() })
	return conn
}

// _Echo_Say_Handler is what protoc-gen-go-grpc generates.
func _Echo_Say_Handler(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (
	any, error) {
	in := new(wrapperspb.StringValue)
	if err := decode(in); err != nil {
		return nil, err
	}
	handler := func(_ context.Context, in any) (any, error) {
		srv.(func())()
		return in, nil
	}
	if interceptor == nil {
		return handler(ctx, in)
	}
	return interceptor(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/Echo/Say"}, handler)
}

// counts is a stats handler.
type counts struct{ work func() }

func (c counts) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (c counts) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (c counts) HandleConn(context.Context, stats.ConnStats)                       {}

func (c counts) HandleRPC(_ context.Context, s stats.RPCStats) {
	if _, header := s.(*stats.OutHeader); header {
		c.work()
	}
}

func grpcGo(t *testing.T, work func()) func() error {
	server := grpc.NewServer(around(work), grpc.StatsHandler(counts{work}))
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "Echo", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Say", Handler: _Echo_Say_Handler}}}, work)
	conn := serveGRPC(t, server)
	return func() error {
		return conn.Invoke(context.Background(), "/Echo/Say", text(), new(wrapperspb.StringValue))
	}
}

// checks is a service that checks its own health.
type checks struct {
	grpc_health_v1.UnimplementedHealthServer
	work func()
}

func (c checks) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse,
	error) {
	c.work()
	c.work()
	return &grpc_health_v1.HealthCheckResponse{}, nil
}

func health(t *testing.T, work func()) func() error {
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, checks{work: work})
	client := grpc_health_v1.NewHealthClient(serveGRPC(t, server))
	return func() error {
		_, err := client.Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
		return err
	}
}

func connectV1(t *testing.T, work func()) func() error {
	mux := http.NewServeMux()
	mux.Handle("/Echo/Say", connect.NewUnaryHandler("/Echo/Say",
		func(_ context.Context, in *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue],
			error) {
			work()
			return connect.NewResponse(in.Msg), nil
		}, connect.WithInterceptors(connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
			return func(ctx context.Context, in connect.AnyRequest) (connect.AnyResponse, error) {
				work()
				return next(ctx, in)
			}
		}))))
	url, client := serveHTTP(t, mux)
	calls := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](client, url+"/Echo/Say")
	return func() error {
		_, err := calls.CallUnary(context.Background(), connect.NewRequest(text()))
		return err
	}
}

func connectV2(t *testing.T, work func()) func() error {
	server := connect2.NewServer(func(next connect2.ServerFunc) connect2.ServerFunc {
		return func(ctx context.Context, spec connect2.Spec, stream connect2.ServerStream) error {
			work()
			return next(ctx, spec, stream)
		}
	})
	spec := connect2.Spec{StreamType: connect2.StreamTypeUnary, Procedure: "/Echo/Say"}
	server.Register(connect2.Method{Spec: spec,
		Handler: func(_ context.Context, _ connect2.Spec, stream connect2.ServerStream) error { // as it is generated
			in := new(wrapperspb.StringValue)
			if err := stream.Receive(in); err != nil {
				return err
			}
			work()
			return stream.Send(in)
		}})
	mux := http.NewServeMux()
	connecthttp.Mount(mux, server)
	url, client := serveHTTP(t, mux)
	calls := connect2.NewClient(connecthttp.NewTransport(client, url))
	return func() error { return calls.CallUnary(context.Background(), spec, text(), new(wrapperspb.StringValue)) }
}

func gatewayV1(t *testing.T, work func()) func() error {
	mux := gateway1.NewServeMux()
	pattern, err := gateway1.NewPattern(1, []int{2, 0}, []string{"say"}, "")
	require.NoError(t, err)
	mux.Handle("POST", pattern, func(w http.ResponseWriter, r *http.Request, _ map[string]string) {
		work()
		work()
		_, m := gateway1.MarshalerForRequest(mux, r)
		gateway1.ForwardResponseMessage(r.Context(), mux, m, w, r, text())
	})
	url, client := serveHTTP(t, mux)
	return posts(url+"/say", client)
}

func gatewayV2(t *testing.T, work func()) func() error {
	mux := gateway.NewServeMux(gateway.WithMiddlewares(func(next gateway.HandlerFunc) gateway.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request, path map[string]string) {
			work()
			next(w, r, path)
		}
	}))
	require.NoError(t, mux.HandlePath("POST", "/say", func(w http.ResponseWriter, r *http.Request, _ map[string]string) {
		work()
		_, m := gateway.MarshalerForRequest(mux, r)
		gateway.ForwardResponseMessage(r.Context(), mux, m, w, r, text())
	}))
	url, client := serveHTTP(t, mux)
	return posts(url+"/say", client)
}

// hats is twirp's example of a service, whose code is generated.
type hats struct{ work func() }

func (h hats) MakeHat(context.Context, *haberdasher.Size) (*haberdasher.Hat, error) {
	h.work()
	return &haberdasher.Hat{Size: 7, Color: said}, nil
}

func twirpRPC(t *testing.T, work func()) func() error {
	around := twirp.WithServerInterceptors(func(next twirp.Method) twirp.Method {
		return func(ctx context.Context, in any) (any, error) {
			work()
			return next(ctx, in)
		}
	})
	url, client := serveHTTP(t, haberdasher.NewHaberdasherServer(hats{work}, around))
	calls := haberdasher.NewHaberdasherProtobufClient(url, client)
	return func() error {
		_, err := calls.MakeHat(context.Background(), &haberdasher.Size{Inches: 7})
		return err
	}
}

// description is what protoc-gen-go-drpc generates.
type description struct{ protobuf }

type protobuf struct{}

func (protobuf) Marshal(m drpc.Message) ([]byte, error) { return proto.Marshal(m.(proto.Message)) }
func (protobuf) Unmarshal(b []byte, m drpc.Message) error {
	return proto.Unmarshal(b, m.(proto.Message))
}

func (description) NumMethods() int { return 1 }

func (d description) Method(int) (string, drpc.Encoding, drpc.Receiver, any, bool) {
	return "/Echo/Say", d, func(srv any, ctx context.Context, in, _ any) (drpc.Message, error) {
		return srv.(*speaker).Say(ctx, in.(*wrapperspb.StringValue))
	}, (*speaker).Say, true
}

type speaker struct{ work func() }

func (s *speaker) Say(_ context.Context, in *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
	s.work()
	return in, nil
}

// wrapped is a handler of drpc's around another.
type wrapped struct {
	drpc.Handler
	work func()
}

func (w wrapped) HandleRPC(stream drpc.Stream, rpc string) error {
	w.work()
	return w.Handler.HandleRPC(stream, rpc)
}

func drpcRPC(t *testing.T, work func()) func() error {
	mux, ln := drpcmux.New(), listen(t)
	require.NoError(t, mux.Register(&speaker{work}, description{}))
	server := drpcserver.New(wrapped{mux, work})
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	go func() { _ = server.Serve(ctx, ln) }()
	conn := drpcconn.New(dial(t, ln.Addr()))
	t.Cleanup(func() { _ = conn.Close() })
	return func() error { return conn.Invoke(ctx, "/Echo/Say", protobuf{}, text(), new(wrapperspb.StringValue)) }
}

// Speaker is a service of rpcx, and a plugin.
type Speaker struct{ work func() }

func (s *Speaker) Say(_ context.Context, in *wrapperspb.StringValue, out *wrapperspb.StringValue) error {
	s.work()
	out.Value = in.Value
	return nil
}

func (s *Speaker) PreCall(_ context.Context, _, _ string, in any) (any, error) {
	s.work()
	return in, nil
}

func serveRPCX(t *testing.T, server *rpcx.Server) func() error {
	ln := listen(t)
	go func() { _ = server.ServeListener("tcp", ln) }()
	t.Cleanup(func() { _ = server.Close() })
	conn := dial(t, ln.Addr())
	reply := protocol.NewMessage()
	return func() error {
		m := protocol.NewMessage()
		m.SetSerializeType(protocol.ProtoBuffer)
		m.ServicePath, m.ServiceMethod = "Echo", "Say"
		var err error
		if m.Payload, err = proto.Marshal(text()); err != nil {
			return err
		}
		if _, err = m.WriteTo(conn); err != nil {
			return err
		}
		if err = reply.Decode(conn); err == nil && reply.MessageStatusType() == protocol.Error {
			err = errors.New(reply.Metadata[protocol.ServiceError])
		}
		return err
	}
}

func rpcxRPC(t *testing.T, work func()) func() error {
	server := rpcx.NewServer()
	require.NoError(t, server.RegisterName("Echo", &Speaker{work}, ""))
	server.Plugins.Add(&Speaker{work})
	return serveRPCX(t, server)
}

func rpcxFunction(t *testing.T, work func()) func() error {
	server := rpcx.NewServer()
	server.Plugins.Add(&Speaker{work})
	require.NoError(t, server.RegisterFunctionName("Echo", "Say", (&Speaker{work}).Say, ""))
	return serveRPCX(t, server)
}

const idl = "struct Text { 1: string said }\nservice Echo { Text Say(1: Text said) }"

func (s *Speaker) GenericCall(_ context.Context, _ string, in any) (any, error) {
	s.work()
	return in, nil
}

func kitexRPC(t *testing.T, work func()) func() error {
	klog.SetLevel(klog.LevelError)
	known := func() generic.Generic {
		p, err := generic.NewThriftContentWithAbsIncludePathProvider("echo.thrift", map[string]string{"echo.thrift": idl})
		require.NoError(t, err)
		g, err := generic.JSONThriftGeneric(p)
		require.NoError(t, err)
		return g
	}
	ln := listen(t)
	server := genericserver.NewServer(&Speaker{work}, known(), kitex.WithListener(ln),
		kitex.WithExitSignal(func() <-chan error { return nil }),
		kitex.WithMiddleware(func(next endpoint.Endpoint) endpoint.Endpoint {
			return func(ctx context.Context, in, out any) error {
				work()
				return next(ctx, in, out)
			}
		}))
	go func() { _ = server.Run() }()
	t.Cleanup(func() { _ = server.Stop() })
	client, err := genericclient.NewClient("Echo", known(), kitexclient.WithHostPorts(ln.Addr().String()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return func() error {
		_, err := client.GenericCall(context.Background(), "Say", `{"said":"`+said+`"}`)
		return err
	}
}

func netpollTCP(t *testing.T, work func()) func() error {
	ln := listen(t)
	loop, err := netpoll.NewEventLoop(func(_ context.Context, conn netpoll.Connection) error {
		in, err := conn.Reader().Next(len(said))
		if err != nil {
			return err
		}
		work()
		work()
		if _, err = conn.Writer().WriteBinary(in); err == nil {
			err = conn.Writer().Flush()
		}
		return errors.Join(err, conn.Reader().Release())
	})
	require.NoError(t, err)
	go func() { _ = loop.Serve(ln) }()
	t.Cleanup(func() { _ = loop.Shutdown(context.Background()) })
	conn, err := netpoll.DialConnection("tcp", ln.Addr().String(), time.Minute)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return func() error {
		_, err := conn.Writer().WriteString(said)
		if err == nil {
			err = conn.Writer().Flush()
		}
		if err == nil {
			_, err = conn.Reader().Next(len(said))
		}
		return errors.Join(err, conn.Reader().Release())
	}
}

// words are a struct of thrift's.
type words struct{ said string }

func (w *words) Write(ctx context.Context, p thrift.TProtocol) error {
	return errors.Join(p.WriteStructBegin(ctx, "words"), p.WriteFieldBegin(ctx, "said", thrift.STRING, 1),
		p.WriteString(ctx, w.said), p.WriteFieldEnd(ctx), p.WriteFieldStop(ctx), p.WriteStructEnd(ctx))
}

func (w *words) Read(ctx context.Context, p thrift.TProtocol) error {
	_, err := p.ReadStructBegin(ctx)
	for err == nil {
		var kind thrift.TType
		if _, kind, _, err = p.ReadFieldBegin(ctx); kind == thrift.STOP || err != nil {
			break
		}
		w.said, err = p.ReadString(ctx)
	}
	return errors.Join(err, p.ReadStructEnd(ctx))
}

// processor does what a generated one does for its only method.
type processor struct {
	methods map[string]thrift.TProcessorFunction
}

func (p processor) ProcessorMap() map[string]thrift.TProcessorFunction { return p.methods }

func (p processor) AddToProcessorMap(name string, f thrift.TProcessorFunction) { p.methods[name] = f }

func (p processor) Process(ctx context.Context, in, out thrift.TProtocol) (bool, thrift.TException) {
	name, _, id, err := in.ReadMessageBegin(ctx)
	if err != nil {
		return false, thrift.WrapTException(err)
	}
	return p.methods[name].Process(ctx, id, in, out)
}

type say struct{ work func() }

func (s say) Process(ctx context.Context, id int32, in, out thrift.TProtocol) (bool, thrift.TException) {
	w := new(words)
	err := errors.Join(w.Read(ctx, in), in.ReadMessageEnd(ctx))
	s.work()
	err = errors.Join(err, out.WriteMessageBegin(ctx, "Say", thrift.REPLY, id), w.Write(ctx, out),
		out.WriteMessageEnd(ctx), out.Flush(ctx))
	return err == nil, thrift.WrapTException(err)
}

func thriftRPC(t *testing.T, work func()) func() error {
	sayer := thrift.WrapProcessor(processor{map[string]thrift.TProcessorFunction{"Say": say{work}}},
		func(_ string, next thrift.TProcessorFunction) thrift.TProcessorFunction {
			return thrift.WrappedTProcessorFunction{
				Wrapped: func(ctx context.Context, id int32, in, out thrift.TProtocol) (bool, thrift.TException) {
					work()
					return next.Process(ctx, id, in, out)
				},
			}
		})
	socket, err := thrift.NewTServerSocket("127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, socket.Listen())
	transports := thrift.NewTFramedTransportFactoryConf(thrift.NewTTransportFactory(), nil)
	protocols := thrift.NewTBinaryProtocolFactoryConf(nil)
	server := thrift.NewTSimpleServer4(sayer, socket, transports, protocols)
	go func() { _ = server.Serve() }()
	t.Cleanup(func() { _ = server.Stop() })
	conn := thrift.NewTSocketConf(socket.Addr().String(), nil)
	require.NoError(t, conn.Open())
	t.Cleanup(func() { _ = conn.Close() })
	transport, err := transports.GetTransport(conn)
	require.NoError(t, err)
	client := thrift.NewTStandardClient(protocols.GetProtocol(transport), protocols.GetProtocol(transport))
	return func() error {
		_, err := client.Call(context.Background(), "Say", &words{said}, &words{})
		return err
	}
}
