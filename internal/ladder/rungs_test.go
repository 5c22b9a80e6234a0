package ladder_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync/atomic"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/binding/pb"
	"github.com/rpcbench/rpcbench/internal/codec"
	"github.com/rpcbench/rpcbench/internal/codec/jsonstd"
	"github.com/rpcbench/rpcbench/internal/grpcapi"
	"github.com/rpcbench/rpcbench/internal/httpapi"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/userservice/userservicegrpc"
)

// form is a wire format, for the rungs that pass bytes.
//
// The bytes are those of the real stack, in both directions. A reply contains its request, so answer puts constants
// around the request and decodes nothing. That is one allocation and a copy, on every rung. The reply is the real one
// for every valid user.
type form struct {
	encode func(rpcbench.User) (request, reply []byte, err error) // by the real codec, before calls are timed
	answer func(request []byte) (reply []byte)
}

func protobufForm() form {
	return form{
		encode: func(u rpcbench.User) (request, reply []byte, err error) {
			asked := binding.Convert[userv1.User](&u)
			request, err = proto.Marshal(asked)
			if err == nil {
				reply, err = proto.Marshal(pb.API().Answer(asked))
			}
			return request, reply, err
		},
		answer: func(request []byte) []byte {
			const codeAndMessage, id = "\x08\xc8\x01\x12\x02" + rpcbench.OKMessage + "\x1a", "\x0a\x07" + rpcbench.UserID
			size := len(id) + len(request)
			reply := make([]byte, 0, len(codeAndMessage)+binary.MaxVarintLen32+size)
			reply = binary.AppendUvarint(append(reply, codeAndMessage...), uint64(size))
			return append(append(reply, id...), request...)
		},
	}
}

func jsonForm() form {
	return form{
		encode: func(u rpcbench.User) (request, reply []byte, err error) {
			request, err = json.Marshal(u)
			if err == nil {
				reply, err = json.Marshal(rpcbench.Answer(&u))
			}
			return request, reply, err
		},
		answer: func(request []byte) []byte {
			const before = `{"code":200,"message":"` + rpcbench.OKMessage + `","user":{"id":"` + rpcbench.UserID + `",`
			reply := append(make([]byte, 0, len(before)+len(request)), before...)
			return append(append(reply, bytes.TrimPrefix(request, []byte("{"))...), '}')
		},
	}
}

// bytesConn is a connection of a rung that passes bytes. It carries one call at a time, and ignores the call's context:
// a call that hangs ends when the connection is closed.
type bytesConn struct {
	prepare func(request []byte, size int) send // size is the length of the reply
	close   func()
}

// send sends a prepared request and returns the bytes of the reply.
type send func(context.Context) (reply []byte, err error)

// bytesClient compares replies byte by byte.
type bytesClient struct {
	name  string
	form  form
	conns []bytesConn
	next  atomic.Uint64
}

// maxPassed is the longest request of a rung that passes bytes. It fits into a segment of TCP and a frame of HTTP/2.
const maxPassed = 4096

func (c *bytesClient) Prepare(i, payload int) (rpcbench.Call, error) {
	return c.PrepareUser(rpcbench.Sample(i, payload))
}

func (c *bytesClient) PrepareUser(u rpcbench.User) (rpcbench.Call, error) {
	request, want, err := c.form.encode(u)
	if err != nil || len(request) > maxPassed {
		return nil, fmt.Errorf("%s: a request of %d bytes: %w", c.name, len(request), errors.Join(err, errors.ErrUnsupported))
	}
	conn := c.conns[(c.next.Add(1)-1)%uint64(len(c.conns))]
	exchange := conn.prepare(request, len(want))
	return func(ctx context.Context) error {
		got, err := exchange(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s: %w: got %q", c.name, binding.WrongReply("a byte"), got)
		}
		return nil
	}, nil
}

func (c *bytesClient) CreateUser(context.Context, rpcbench.User) (rpcbench.Response, error) {
	return rpcbench.Response{}, fmt.Errorf("%s: a client that only prepares calls: %w", c.name, errors.ErrUnsupported)
}

func (c *bytesClient) Close() error {
	for _, conn := range c.conns {
		conn.close()
	}
	return nil
}

// bytesStack makes a rung that passes bytes. dial opens as many connections as the config says.
func bytesStack(name, protocol string, f form, server func(rpcbench.ServerConfig) rpcbench.Server,
	dial func(rpcbench.ClientConfig) ([]bytesConn, error)) rpcbench.Stack {
	return rpcbench.Stack{
		Name: name, Protocol: protocol,
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) { return server(config), nil },
		Dial: func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
			if config.TLS != nil || config.Headers != nil {
				return nil, fmt.Errorf("a rung has neither TLS nor headers: %w", errors.ErrUnsupported)
			}
			conns, err := dial(config)
			c := &bytesClient{name: name, form: f, conns: conns}
			if err != nil {
				_ = c.Close()
			}
			return c, err
		},
	}
}

// overTCP dials connections, for each of which open makes the function prepare.
func overTCP(open func(net.Conn) func([]byte, int) send) func(rpcbench.ClientConfig) ([]bytesConn, error) {
	return func(config rpcbench.ClientConfig) (conns []bytesConn, err error) {
		for range config.Conns {
			conn, err := config.DialContext(context.Background(), "tcp", config.Addr)
			if err != nil {
				return conns, err
			}
			conns = append(conns, bytesConn{open(conn), func() { _ = conn.Close() }})
		}
		return conns, nil
	}
}

// pipe is one side of a connection, which sends a message and receives one in turn.
type pipe interface {
	send(message []byte) error
	receive(size int) ([]byte, error) // size is the length of the message if this side knows it, or 0
}

// pipeStack makes a rung over bare connections. As on all rungs but net/http's, no timer is set for a call.
func pipeStack(name, protocol string, f form, client, server func(net.Conn) pipe) rpcbench.Stack {
	serve := func(conn net.Conn) {
		p := server(conn)
		request, err := p.receive(0)
		for err == nil {
			if err = p.send(f.answer(request)); err == nil {
				request, err = p.receive(0)
			}
		}
	}
	open := func(conn net.Conn) func([]byte, int) send {
		p := client(conn)
		return func(request []byte, size int) send {
			return func(context.Context) ([]byte, error) {
				if err := p.send(request); err != nil {
					return nil, err
				}
				return p.receive(size)
			}
		}
	}
	return bytesStack(name, protocol, f,
		func(c rpcbench.ServerConfig) rpcbench.Server { return rpcbench.ServeConns(c, serve) }, overTCP(open))
}

// tcp is bare TCP: a Write and a read per message. The client reads as many bytes as the reply has. The server takes
// what one Read returns for a request: requests differ in length, but each is one segment, and the next one comes after
// the reply. A request in two parts would get two wrong replies, which the client sees.
type tcp struct {
	net.Conn
	in []byte
}

func tcpRung(name string, f form) rpcbench.Stack {
	open := func(conn net.Conn) pipe { return &tcp{conn, make([]byte, 2*maxPassed)} }
	return pipeStack(name, name, f, open, open)
}

func (p *tcp) send(message []byte) error {
	_, err := p.Write(message)
	return err
}

func (p *tcp) receive(size int) ([]byte, error) {
	n, err := io.ReadAtLeast(p.Conn, p.in, max(size, 1))
	return p.in[:n], err
}

// frames are rawtcp's, with fresh buffers for each. The rung has neither rawtcp's deadlines nor its lock.
type frames struct {
	net.Conn
	r *bufio.Reader
}

const frameHeader, frameKind = 5, '\n'

func framesRung() rpcbench.Stack {
	open := func(conn net.Conn) pipe { return &frames{conn, bufio.NewReader(conn)} }
	return pipeStack("ladder.frames", "ladder.frames", protobufForm(), open, open)
}

func (p *frames) send(message []byte) error {
	b := make([]byte, frameHeader, frameHeader+len(message))
	binary.BigEndian.PutUint32(b, uint32(len(message)))
	b[frameHeader-1] = frameKind
	_, err := p.Write(append(b, message...))
	return err
}

func (p *frames) receive(int) ([]byte, error) {
	h, err := p.r.Peek(frameHeader)
	if err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(h)
	if h[frameHeader-1] != frameKind || size > 2*maxPassed {
		return nil, fmt.Errorf("no frame begins with %q", h)
	}
	_, _ = p.r.Discard(frameHeader) // which are buffered
	payload := make([]byte, size)
	_, err = io.ReadFull(p.r, payload)
	return payload, err
}

const (
	bytesService = "rpcbench.ladder.v1.UserService"
	bytesMethod  = "/" + bytesService + "/CreateUser"
	grpcType     = "application/grpc"
	grpcProtocol = "ladder.grpc" // grpc-go's client can call http2Rung's server, and http2Rung's client grpc-go's
)

// h2 is one side of an HTTP/2 connection that speaks gRPC with a Framer and hpack tables, one stream at a time. It has
// no goroutines, queues or states of streams. A message has one flush, and what h2 must acknowledge goes with it.
type h2 struct {
	*http2.Framer
	r             *bufio.Reader
	w             *bufio.Writer
	head, trailer []hpack.HeaderField // of every message; a client has no trailer
	want          hpack.HeaderField   // which every message from the peer must have
	encoder       *hpack.Encoder      // into block
	block         bytes.Buffer
	out           []byte // the payload of a DATA frame
	stream        uint32 // the current one
	credit        uint32 // bytes of DATA that no WINDOW_UPDATE has returned to the peer yet
}

func newH2(conn net.Conn) *h2 {
	p := &h2{r: bufio.NewReader(conn), w: bufio.NewWriter(conn)}
	p.Framer, p.encoder = http2.NewFramer(p.w, p.r), hpack.NewEncoder(&p.block)
	p.SetReuseFrames()
	p.ReadMetaHeaders = hpack.NewDecoder(4096, nil) // the size of the table unless SETTINGS change it
	return p
}

func http2Rung() rpcbench.Stack {
	client := func(conn net.Conn) pipe {
		p := newH2(conn)
		p.stream = ^uint32(0) // the first stream is 1
		p.want = hpack.HeaderField{Name: "grpc-status", Value: "0"}
		p.head = []hpack.HeaderField{
			{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: bytesMethod},
			{Name: ":authority", Value: conn.RemoteAddr().String()}, {Name: "content-type", Value: grpcType},
			{Name: "user-agent", Value: "grpc-go/" + grpc.Version}, {Name: "te", Value: "trailers"},
		}
		_, _ = p.w.WriteString(http2.ClientPreface)
		return p.begin()
	}
	server := func(conn net.Conn) pipe {
		p := newH2(conn)
		p.want = hpack.HeaderField{Name: ":path", Value: bytesMethod}
		p.head = []hpack.HeaderField{{Name: ":status", Value: "200"}, {Name: "content-type", Value: grpcType}}
		p.trailer = []hpack.HeaderField{{Name: "grpc-status", Value: "0"}, {Name: "grpc-message", Value: ""}}
		_, _ = p.r.Discard(len(http2.ClientPreface))
		return p.begin()
	}
	return pipeStack("ladder.http2", grpcProtocol, protobufForm(), client, server)
}

// begin sends SETTINGS. If that fails, the next message fails too.
func (p *h2) begin() *h2 {
	_, _ = p.WriteSettings(), p.w.Flush()
	return p
}

// send doesn't count the peer's credit: messages are short, and every peer returns credit long before it is used up.
func (p *h2) send(message []byte) error {
	isClient := p.trailer == nil
	if isClient {
		p.stream += 2
	}
	var credit, trailer error
	if p.credit >= 1<<14 { // a quarter of the connection's window, as in grpc-go; a stream's window lasts for a call
		credit = p.WriteWindowUpdate(0, p.credit)
		p.credit = 0
	}
	head := p.fields(p.head, false)
	p.out = append(grpcPrefix(p.out[:0], len(message)), message...)
	data := p.WriteData(p.stream, isClient, p.out)
	if !isClient {
		trailer = p.fields(p.trailer, true)
	}
	return cmp.Or(credit, head, data, trailer, p.w.Flush())
}

func (p *h2) fields(fields []hpack.HeaderField, end bool) error {
	p.block.Reset()
	for _, f := range fields {
		_ = p.encoder.WriteField(f) // a Buffer takes all
	}
	return p.WriteHeaders(http2.HeadersFrameParam{
		StreamID: p.stream, BlockFragment: p.block.Bytes(), EndStream: end, EndHeaders: true,
	})
}

// receive reads frames to the end of a stream.
func (p *h2) receive(int) ([]byte, error) {
	var body []byte
	for found, end := false, false; !end; {
		frame, err := p.ReadFrame()
		if err != nil {
			return nil, err
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			p.stream, end = f.StreamID, f.StreamEnded()
			found = found || slices.Contains(f.Fields, p.want)
		case *http2.DataFrame:
			body, end = append(body, f.Data()...), f.StreamEnded()
			p.credit += f.Length
		case *http2.SettingsFrame:
			if !f.IsAck() {
				err = p.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				err = p.WritePing(true, f.Data)
			}
		case *http2.WindowUpdateFrame:
		default:
			err = fmt.Errorf("unexpected frame: %v", f)
		}
		if end && !found {
			err = fmt.Errorf("a stream without %v", p.want)
		}
		if err != nil {
			return nil, err
		}
	}
	return grpcMessage(body)
}

const grpcHeader = 5

func grpcPrefix(b []byte, size int) []byte {
	return binary.BigEndian.AppendUint32(append(b, 0), uint32(size))
}

func grpcMessage(body []byte) ([]byte, error) {
	if len(body) < grpcHeader || body[0] != 0 || int(binary.BigEndian.Uint32(body[1:])) != len(body)-grpcHeader {
		return nil, fmt.Errorf("not one message of gRPC: %q", body)
	}
	return body[grpcHeader:], nil
}

// grpcRung is grpc-go's client, which passes bytes, and a server of the same gRPC service.
func grpcRung(name string, server func(rpcbench.ServerConfig) rpcbench.Server) rpcbench.Stack {
	dial := func(config rpcbench.ClientConfig) (conns []bytesConn, err error) {
		for range config.Conns {
			cc, err := grpc.NewClient(config.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithDefaultCallOptions(grpc.ForceCodecV2(passed{})),
				grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
					return config.DialContext(ctx, "tcp", addr)
				}))
			if err != nil {
				return conns, err
			}
			prepare := func(request []byte, _ int) send {
				return func(ctx context.Context) ([]byte, error) {
					var reply []byte
					err := cc.Invoke(ctx, bytesMethod, &request, &reply)
					return reply, err
				}
			}
			conns = append(conns, bytesConn{prepare, func() { _ = cc.Close() }})
		}
		return conns, nil
	}
	return bytesStack(name, grpcProtocol, protobufForm(), server, dial)
}

// passed is a codec of grpc-go for a *[]byte.
type passed struct{}

func (passed) Name() string { return "" }

func (passed) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (passed) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// bytesServer is grpc-go's server of the service that passes bytes.
func bytesServer(config rpcbench.ServerConfig) *grpc.Server {
	answer := protobufForm().answer
	s := newGRPC(config, grpc.ForceServerCodecV2(passed{}))
	s.RegisterService(&grpc.ServiceDesc{ServiceName: bytesService, HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{
		MethodName: "CreateUser",
		Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			var request []byte
			if err := decode(&request); err != nil {
				return nil, err
			}
			reply := answer(request)
			return &reply, nil
		},
	}}}, struct{}{})
	return s
}

// newGRPC makes a server with the options of grpcapi.NewServer, which would also register the real service.
func newGRPC(config rpcbench.ServerConfig, options ...grpc.ServerOption) *grpc.Server {
	idle, header := config.Limits()
	return grpc.NewServer(append([]grpc.ServerOption{
		grpc.MaxRecvMsgSize(rpcbench.MaxBody),
		grpc.MaxHeaderListSize(rpcbench.MaxHeader),
		grpc.ConnectionTimeout(header),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idle}),
	}, options...)...)
}

// ownServer is a server of grpc-go that accepts connections itself.
type ownServer struct{ *grpc.Server }

func (s ownServer) Close() error {
	s.Stop()
	return nil
}

func grpcBytes() rpcbench.Stack {
	return grpcRung("ladder.grpc.bytes", func(c rpcbench.ServerConfig) rpcbench.Server {
		return ownServer{bytesServer(c)}
	})
}

func grpcServeHTTP() rpcbench.Stack {
	return grpcRung("ladder.grpc.servehttp", func(c rpcbench.ServerConfig) rpcbench.Server {
		return httpapi.NewServer(c, bytesServer(c), true)
	})
}

// grpcNetHTTP has the shortest handler of net/http that grpc-go's client understands. It is grpc-go's ServeHTTP without
// metadata, deadline, goroutine and flushes. Of three trailers it declares the one that it sends.
func grpcNetHTTP() rpcbench.Stack {
	answer := protobufForm().answer
	handle := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, rpcbench.MaxBody))
		var request []byte
		if err == nil {
			request, err = grpcMessage(body)
		}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		h, reply := w.Header(), answer(request)
		h["Date"] = nil // as ServeHTTP
		h.Set("Content-Type", grpcType)
		h.Set("Trailer", "Grpc-Status")
		_, _ = w.Write(append(grpcPrefix(make([]byte, 0, grpcHeader+len(reply)), len(reply)), reply...))
		h.Set("Grpc-Status", "0")
	}
	return grpcRung("ladder.grpc.nethttp", func(config rpcbench.ServerConfig) rpcbench.Server {
		mux := http.NewServeMux()
		mux.HandleFunc("POST "+bytesMethod, handle)
		return httpapi.NewServer(config, mux, true)
	})
}

// unvalidated is the generated service without validation.
type unvalidated struct {
	userservicegrpc.UnimplementedUserServiceServer
	answer func(*userv1.User) *userv1.CreateUserResponse
}

func (s unvalidated) CreateUser(_ context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
	return s.answer(u), nil
}

// grpcUnvalidated is client, a stack of grpc-go, against a server without validation.
func grpcUnvalidated(name string, client rpcbench.Stack, options ...grpc.ServerOption) rpcbench.Stack {
	client.Name = name
	client.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		s := newGRPC(config, options...)
		userservicegrpc.RegisterUserServiceServer(s, unvalidated{answer: pb.API().Answer})
		return ownServer{s}, nil
	}
	return client
}

func grpcCodec() rpcbench.Stack { return grpcUnvalidated("ladder.grpc.codec", grpcprotobuf.New()) }

const jsonType, usersPath, httpProtocol = "application/json", "/users", "ladder.http"

// httpServer makes a server that does with a request what httpapi's does, but calls answer for all between two bodies.
// No answer is status 400.
func httpServer(answer func([]byte) []byte, http2 bool) func(rpcbench.ServerConfig) rpcbench.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+usersPath, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, rpcbench.MaxBody))
		if err == nil {
			body = answer(body)
		}
		if err != nil || body == nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", jsonType)
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(body) // fails only if the client is gone
	})
	return func(config rpcbench.ServerConfig) rpcbench.Server { return httpapi.NewServer(config, mux, http2) }
}

// httpServerRung is net/http's server, called over bare TCP with the bytes that net/http's client would send.
func httpServerRung() rpcbench.Stack {
	open := func(conn net.Conn) func([]byte, int) send {
		in := make([]byte, 2*maxPassed)
		return func(request []byte, size int) send {
			const head = "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: Go-http-client/1.1\r\n" +
				"Content-Length: %d\r\nContent-Type: %s\r\n\r\n%s"
			out := fmt.Appendf(nil, head, usersPath, conn.RemoteAddr(), len(request), jsonType, request)
			return func(context.Context) ([]byte, error) {
				if _, err := conn.Write(out); err != nil {
					return nil, err
				}
				return readReply(conn, in, size)
			}
		}
	}
	f := jsonForm()
	return bytesStack("ladder.http.server", httpProtocol, f, httpServer(f.answer, false), overTCP(open))
}

// readReply reads a reply of HTTP/1.1 into a buffer, and returns its body of a known length.
func readReply(r io.Reader, in []byte, size int) ([]byte, error) {
	for n := 0; n < len(in); {
		more, err := r.Read(in[n:])
		n += more
		head, body, complete := bytes.Cut(in[:n], []byte("\r\n\r\n"))
		switch {
		case complete && !bytes.HasPrefix(head, []byte("HTTP/1.1 200 ")):
			return nil, fmt.Errorf("reply %q", in[:n])
		case complete && len(body) >= size:
			return body, nil
		case err != nil:
			return nil, err
		}
	}
	return nil, io.ErrShortBuffer
}

// httpBytes passes bytes through the client and the server of net/http, over HTTP/1.1 or HTTP/2.
func httpBytes(name string, http2 bool) rpcbench.Stack {
	dial := func(config rpcbench.ClientConfig) (conns []bytesConn, err error) {
		for _, client := range httpapi.HTTPClients(config, http2) {
			prepare := func(request []byte, _ int) send {
				return func(ctx context.Context) ([]byte, error) {
					return post(ctx, client.Client, httpapi.BaseURL(config)+usersPath, request)
				}
			}
			conns = append(conns, bytesConn{prepare, client.Close})
		}
		return conns, nil
	}
	f := jsonForm()
	return bytesStack(name, name, f, httpServer(f.answer, http2), dial)
}

func post(ctx context.Context, client *http.Client, url string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", jsonType)
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s: %s", resp.Status, reply)
	}
	return reply, err
}

// httpUnvalidated is client, a stack of net/http, against a server that decodes with c, answers and encodes. A type
// without validate tags for httpapi.Stack would not do: the rules are not in tags, and every user type gets them.
func httpUnvalidated(name string, client rpcbench.Stack, c codec.Codec) rpcbench.Stack {
	server := httpServer(func(body []byte) []byte {
		u := new(rpcbench.User)
		if err := c.Unmarshal(body, u); err != nil {
			return nil
		}
		reply, _ := c.Marshal(rpcbench.Answer(u)) // nil after an error
		return reply
	}, false)
	client.Name = name
	client.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) { return server(config), nil }
	return client
}

func httpCodec() rpcbench.Stack {
	return httpUnvalidated("ladder.http.codec", httpjson.New(), jsonstd.Codec{})
}

// replay is a codec that takes next to no time. For the 100 users of package corpus it hands out bytes and values that
// were made beforehand. It finds a user by the two digits of the e-mail, and then compares all fields or all bytes.
// Anything else, such as the users of rpcbench.Start, goes to the real codec. Calls only read what they share.
type replay struct {
	samples            []sample
	inRequest, inReply int // where the digits are
}

type sample struct {
	request, reply []byte
	asked, replied fields
	response       *rpcbench.Response
	pbResponse     *userv1.CreateUserResponse
}

// fields are what differs between users.
type fields struct {
	id, email, name, password string
	avatar                    int // its length
	isReply                   bool
}

func fieldsOf(v any) fields {
	switch v := v.(type) {
	case *rpcbench.User:
		return fields{v.ID, v.Email, v.Name, v.Password, len(v.Avatar), false}
	case *rpcbench.Response:
		return fields{v.User.ID, v.User.Email, v.User.Name, v.User.Password, len(v.User.Avatar), true}
	case *userv1.User:
		return fields{v.Id, v.Email, v.Name, v.Password, len(v.Avatar), false}
	case *userv1.CreateUserResponse:
		return fields{v.User.Id, v.User.Email, v.User.Name, v.User.Password, len(v.User.Avatar), true}
	}
	return fields{}
}

const beforeDigits = "anna."

func newReplay(f form) *replay {
	p := new(replay)
	for i := range 100 {
		user, answered := rpcbench.Sample(i, 0), rpcbench.Sample(i, 0)
		r := rpcbench.Answer(&answered)
		request, reply, err := f.encode(user)
		if err != nil {
			panic(err)
		}
		p.samples = append(p.samples, sample{
			request, reply, fieldsOf(&user), fieldsOf(r), r, binding.Convert[userv1.CreateUserResponse](r),
		})
		p.inRequest = bytes.Index(request, []byte(beforeDigits)) + len(beforeDigits)
		p.inReply = bytes.Index(reply, []byte(beforeDigits)) + len(beforeDigits)
	}
	return p
}

// at returns the sample whose two digits are in text at an offset, or any other.
func at[T string | []byte](p *replay, text T, offset int) *sample {
	if len(text) < offset+2 || text[offset]-'0' > 9 || text[offset+1]-'0' > 9 {
		return &p.samples[0]
	}
	return &p.samples[10*int(text[offset]-'0')+int(text[offset+1]-'0')]
}

// encode returns nil for a value that is no sample's.
func (p *replay) encode(v any) []byte {
	f := fieldsOf(v)
	switch s := at(p, f.email, len(beforeDigits)); f {
	case s.asked:
		return s.request
	case s.replied:
		return s.reply
	}
	return nil
}

// decode returns false for bytes that are no sample's. Generated messages can't be assigned as a whole.
func (p *replay) decode(data []byte, v any) bool {
	s := at(p, data, p.inRequest)
	if !bytes.Equal(data, s.request) {
		if s = at(p, data, p.inReply); !bytes.Equal(data, s.reply) {
			return false
		}
	}
	switch v := v.(type) {
	case *rpcbench.User:
		v.Email, v.Name, v.Password = s.asked.email, s.asked.name, s.asked.password
	case *rpcbench.Response:
		*v = *s.response
	case *userv1.User:
		v.Email, v.Name, v.Password = s.asked.email, s.asked.name, s.asked.password
	case *userv1.CreateUserResponse:
		v.Code, v.Message, v.User = s.pbResponse.Code, s.pbResponse.Message, s.pbResponse.User
	default:
		return false
	}
	return true
}

type replayJSON struct {
	jsonstd.Codec
	*replay
}

func (c replayJSON) Marshal(v any) ([]byte, error) {
	if b := c.encode(v); b != nil {
		return b, nil
	}
	return c.Codec.Marshal(v)
}

func (c replayJSON) Unmarshal(data []byte, v any) error {
	if c.decode(data, v) {
		return nil
	}
	return c.Codec.Unmarshal(data, v)
}

type replayProtobuf struct {
	encoding.CodecV2
	*replay
}

func (c replayProtobuf) Marshal(v any) (mem.BufferSlice, error) {
	if b := c.encode(v); b != nil {
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	return c.CodecV2.Marshal(v)
}

func (c replayProtobuf) Unmarshal(data mem.BufferSlice, v any) error {
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool()) // as the real codec
	defer buf.Free()
	if c.decode(buf.ReadOnlyData(), v) {
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}

// boundJSON is httpjson with a codec that replays, with or without validation.
func boundJSON(name string, validated bool) rpcbench.Stack {
	c := replayJSON{replay: newReplay(jsonForm())}
	s := httpapi.Stack(name, "http/json", c, binding.Plain(), httpapi.Options{})
	if !validated {
		s = httpUnvalidated(name, s, c)
	}
	return s
}

// boundProtobuf is grpcprotobuf with a codec that replays, with or without validation.
func boundProtobuf(name string, validated bool) rpcbench.Stack {
	c := replayProtobuf{encoding.GetCodecV2("proto"), newReplay(protobufForm())}
	server := grpc.ForceServerCodecV2(c)
	s := grpcapi.Transport{Serve: grpcapi.OwnServer}.Stack(name, []grpc.ServerOption{server},
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(c)))
	if !validated {
		s = grpcUnvalidated(name, s, server)
	}
	return s
}
