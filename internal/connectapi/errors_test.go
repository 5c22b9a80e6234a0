package connectapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/internal/httpapi"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/userservice/userserviceconnect"
)

const procedure = userserviceconnect.UserServiceCreateUserProcedure

// serve runs a server until the test ends, and returns how to reach it.
func serve(t *testing.T, s rpcbench.Server) rpcbench.ClientConfig {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		<-served
	})
	return rpcbench.ClientConfig{Addr: ln.Addr().String(), DialContext: new(net.Dialer).DialContext, Conns: 1}
}

func serveHTTP(t *testing.T, h http.Handler, http2 bool) rpcbench.ClientConfig {
	t.Helper()
	return serve(t, httpapi.NewServer(rpcbench.ServerConfig{}, h, http2))
}

func dial(t *testing.T, s rpcbench.Stack, config rpcbench.ClientConfig) rpcbench.Users {
	t.Helper()
	c, err := s.Dial(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c.(rpcbench.Users)
}

func overHTTP2(s rpcbench.Stack) bool { return s.Traits.HTTP == "2" }

func each(t *testing.T, test func(*testing.T, rpcbench.Stack)) {
	t.Helper()
	for _, s := range []rpcbench.Stack{plain(), h2c(), overGRPC(), grpcWeb(), asJSON(), withGzip(), VT("connectrpc.vt")} {
		t.Run(s.Name, func(t *testing.T) { test(t, s) })
	}
}

func asError(t *testing.T, err error) *rpcbench.Error {
	t.Helper()
	require.Error(t, err)
	e, ok := errors.AsType[*rpcbench.Error](err)
	require.True(t, ok, "%T", err)
	_, ok = errors.AsType[*connect.Error](e.Err)
	require.True(t, ok, "the library's own error stays")
	return e
}

func failed(c rpcbench.Code) error { return &rpcbench.Error{Code: c} }

// Whatever the service returns, the client has its code, in every protocol and wire format.
func TestFailuresHaveOneCodeEach(t *testing.T) {
	broken := []rpcbench.Violation{{Field: "email", Rule: "required"}, {Field: "name", Rule: "min=4"}}
	invalid := &rpcbench.Error{Code: rpcbench.Invalid, Violations: broken}
	misleading := &rpcbench.Error{Code: rpcbench.Internal, Message: "grpc: failed to unmarshal"}
	cases := []struct {
		why    string
		err    error
		status connect.Code
		code   rpcbench.Code
		broken []rpcbench.Violation
	}{
		{"the user breaks rules", invalid, connect.CodeInvalidArgument, rpcbench.Invalid, broken},
		{"the user breaks rules that aren't told", failed(rpcbench.Invalid), connect.CodeInvalidArgument, rpcbench.Invalid,
			nil},
		{"the request can't be read", failed(rpcbench.Malformed), connect.CodeInvalidArgument, rpcbench.Malformed, nil},
		{"the request is too large", failed(rpcbench.TooLarge), connect.CodeResourceExhausted, rpcbench.TooLarge, nil},
		{"the service was too slow", failed(rpcbench.DeadlineExceeded), connect.CodeDeadlineExceeded,
			rpcbench.DeadlineExceeded, nil},
		{"the service can't be reached", failed(rpcbench.Unavailable), connect.CodeUnavailable, rpcbench.Unavailable, nil},
		{"the service is broken", failed(rpcbench.Internal), connect.CodeInternal, rpcbench.Internal, nil},
		{"the service's own call was cancelled", failed(rpcbench.Canceled), connect.CodeCanceled, rpcbench.Canceled, nil},
		{"an Error within another", fmt.Errorf("create: %w", failed(rpcbench.Unavailable)), connect.CodeUnavailable,
			rpcbench.Unavailable, nil},
		{"a bare context error: deadline", context.DeadlineExceeded, connect.CodeDeadlineExceeded, rpcbench.DeadlineExceeded,
			nil},
		{"a bare context error: cancelled", context.Canceled, connect.CodeCanceled, rpcbench.Canceled, nil},
		{"somebody's error", io.ErrClosedPipe, connect.CodeInternal, rpcbench.Internal, nil},
		{"an Error without a code", new(rpcbench.Error), connect.CodeInternal, rpcbench.Internal, nil},
		{"words of a malformed message", misleading, connect.CodeInternal, rpcbench.Internal, nil},
	}
	each(t, func(t *testing.T, s rpcbench.Stack) {
		var current error // of the service; set between calls
		create := func(context.Context, *userv1.User) (*userv1.CreateUserResponse, error) { return nil, current }
		// also of errors, for gRPC's clients
		server := newServer(rpcbench.ServerConfig{}, create, overHTTP2(s), connect.WithCodec(vt{}))
		c := dial(t, s, serve(t, server))
		for _, tc := range cases {
			current = tc.err
			_, err := c.CreateUser(t.Context(), rpcbench.Sample(0, 0))
			e := asError(t, err)
			require.Equal(t, tc.status, connect.CodeOf(err), tc.why)
			require.True(t, connect.IsWireError(err), tc.why)
			require.Equal(t, tc.code, e.Code, tc.why)
			require.Equal(t, tc.broken, e.Violations, tc.why)
			require.Equal(t, tc.code == rpcbench.Canceled, errors.Is(e, context.Canceled), tc.why)
			require.Equal(t, tc.code == rpcbench.DeadlineExceeded, errors.Is(e, context.DeadlineExceeded), tc.why)
		}
	})
}

// raw is a codec that passes bytes, under another's name.
type raw string

func (r raw) Name() string                { return string(r) }
func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (raw) Unmarshal(data []byte, v any) error {
	if body, ok := v.(*[]byte); ok {
		*body = bytes.Clone(data)
		return nil
	}
	return proto.Unmarshal(data, v.(proto.Message)) // the status of gRPC's failures
}

func TestRequestBytes(t *testing.T) {
	field := func(number byte, value string) string { return string([]byte{number<<3 | 2, byte(len(value))}) + value }
	valid := field(2, "anna@example.com") + field(3, "Anna") + field(4, "password")
	// An avatar that makes the whole message n bytes.
	sized := func(n int) string {
		n -= len(valid) + 5
		return valid + string([]byte{5<<3 | 2, byte(n) | 0x80, byte(n>>7) | 0x80, byte(n>>14) | 0x80, byte(n >> 21)}) +
			strings.Repeat("x", n)
	}
	require.Len(t, sized(rpcbench.MaxBody), rpcbench.MaxBody)
	for _, protocol := range []struct {
		server rpcbench.Stack
		option connect.ClientOption
	}{
		{plain(), connect.WithClientOptions()},
		{overGRPC(), connect.WithGRPC()},
		{grpcWeb(), connect.WithGRPCWeb()},
		{grpcprotobuf.New(), connect.WithGRPC()}, // knows no JSON
	} {
		server, err := protocol.server.Server(rpcbench.ServerConfig{})
		require.NoError(t, err)
		config := serve(t, server)
		h := httpapi.HTTPClients(config, overHTTP2(protocol.server))[0]
		t.Cleanup(h.CloseIdleConnections)
		for _, c := range []struct {
			why, codec, body string
			want             rpcbench.Code // "" for success
		}{
			{"nothing is wrong", "proto", valid, ""},
			{"nothing, which is a user with nothing", "proto", "", rpcbench.Invalid},
			{"truncated in a field", "proto", valid[:len(valid)-1], rpcbench.Malformed},
			{"invalid UTF-8", "proto", field(2, "anna@example.com") + field(3, "Ann\xff") + field(4, "password"),
				rpcbench.Malformed},
			{"JSON", "proto", `{"email":"anna@example.com"}`, rpcbench.Malformed},
			{"as large as may be, with an avatar too large", "proto", sized(rpcbench.MaxBody), rpcbench.Invalid},
			{"a byte larger", "proto", sized(rpcbench.MaxBody + 1), rpcbench.TooLarge},
			{"twice as large", "proto", sized(2 * rpcbench.MaxBody), rpcbench.TooLarge},
			{"nothing is wrong in JSON", "json", `{"email":"anna@example.com","name":"Anna","password":"password"}`, ""},
			{"a user with nothing in JSON", "json", `{}`, rpcbench.Invalid},
			{"truncated JSON", "json", `{"email":"anna@example.com"`, rpcbench.Malformed},
			{"invalid UTF-8 in JSON", "json", `{"name":"Ann` + "\xff" + `"}`, rpcbench.Malformed},
		} {
			if c.codec == "json" && protocol.server.Name == "grpcprotobuf" {
				continue
			}
			t.Run(protocol.server.Name+"/"+c.why, func(t *testing.T) {
				body := []byte(c.body)
				client := connect.NewClient[[]byte, []byte](h, httpapi.BaseURL(config)+procedure, protocol.option,
					connect.WithCodec(raw(c.codec)))
				reply, err := client.CallUnary(t.Context(), connect.NewRequest(&body))
				if c.want == "" {
					require.NoError(t, err)
					require.Contains(t, string(*reply.Msg), "anna@example.com")
					return
				}
				require.Equal(t, c.want, asError(t, fromConnect(t.Context(), err)).Code, err)
			})
		}
	}
}

func TestReplyBytes(t *testing.T) {
	each(t, func(t *testing.T, s rpcbench.Stack) {
		wire := raw("proto")
		if s.Protocol == "connect/json" {
			wire = "json"
		}
		var current []byte
		h := connect.NewUnaryHandlerSimple(procedure, func(context.Context, *[]byte) (*[]byte, error) {
			return &current, nil
		}, connect.WithCodec(wire))
		c := dial(t, s, serveHTTP(t, h, overHTTP2(s)))
		create := func(u rpcbench.User) error {
			_, err := c.CreateUser(t.Context(), u)
			return err
		}
		current = []byte(map[raw]string{"proto": "", "json": "{}"}[wire])
		require.NoError(t, create(rpcbench.Sample(0, 0)))
		current = []byte("\x0a") // half a field
		require.Equal(t, rpcbench.Malformed, asError(t, create(rpcbench.Sample(0, 0))).Code, "a reply that doesn't decode")
		current = []byte(map[raw]string{"proto": "", "json": "{}"}[wire])
		err := create(rpcbench.User{Name: "\xff"})
		if s.Traits.InvalidUTF8 == rpcbench.Kept {
			require.NoError(t, err)
			return
		}
		require.Equal(t, rpcbench.Malformed, asError(t, err).Code, "a request that can't be encoded")
	})
}

// What answers is no connect server, or breaks off.
func TestStrangeReplies(t *testing.T) {
	asked := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	}
	each(t, func(t *testing.T, s rpcbench.Stack) {
		brokenOff := rpcbench.Unavailable
		if overHTTP2(s) {
			brokenOff = rpcbench.Internal // net/http resets the stream with INTERNAL_ERROR, which gRPC's mapping calls so
		}
		for _, c := range []struct {
			why   string
			reply http.HandlerFunc
			want  rpcbench.Code
		}{
			{"nothing at that path", http.NotFound, rpcbench.Internal},
			{"a proxy without a server", func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusServiceUnavailable)
			}, rpcbench.Unavailable},
			{"a page", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, rpcbench.Internal},
			{"the type that was asked for, and nonsense", func(w http.ResponseWriter, r *http.Request) {
				asked(w, r)
				_, _ = io.WriteString(w, "\x02\x00\x00\x00\x01x")
			}, rpcbench.Malformed},
			{"half a reply", func(w http.ResponseWriter, r *http.Request) {
				asked(w, r)
				_, _ = io.WriteString(w, "\x00\x00\x00\x00\x09half")
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}, brokenOff},
		} {
			t.Run(c.why, func(t *testing.T) {
				_, err := dial(t, s, serveHTTP(t, c.reply, overHTTP2(s))).CreateUser(t.Context(), rpcbench.Sample(0, 0))
				require.Equal(t, c.want, asError(t, err).Code, err)
			})
		}
	})
}

// The library says Canceled when the server resets the connection. Nobody has cancelled.
func TestReset(t *testing.T) {
	each(t, func(t *testing.T, s rpcbench.Stack) {
		config := serve(t, rpcbench.ServeConns(rpcbench.ServerConfig{}, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1))
			_ = c.(*net.TCPConn).SetLinger(0) // closing it is to reset it
		}))
		_, err := dial(t, s, config).CreateUser(t.Context(), rpcbench.Sample(0, 0))
		require.Equal(t, rpcbench.Unavailable, asError(t, err).Code, err)
		require.NotErrorIs(t, err, context.Canceled)
	})
}

// serveFrames is a server of HTTP/2 that answers once, after the frame that until names, and then says no more.
func serveFrames(t *testing.T, until func(http2.FrameHeader) bool,
	answer func(*http2.Framer) error) rpcbench.ClientConfig {
	t.Helper()
	return serve(t, rpcbench.ServeConns(rpcbench.ServerConfig{}, func(conn net.Conn) {
		_, _ = io.ReadFull(conn, make([]byte, len(http2.ClientPreface)))
		f := http2.NewFramer(conn, conn)
		err := f.WriteSettings()
		for asked := false; err == nil && !asked; {
			var frame http2.Frame
			if frame, err = f.ReadFrame(); err == nil {
				asked = until(frame.Header())
			}
		}
		assert.NoError(t, errors.Join(err, answer(f)))
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, conn) // what is left unread would make a reset of closing it
	}))
}

// writeHead begins the reply to the first request.
func writeHead(f *http2.Framer, contentType string) error {
	var head bytes.Buffer
	encoder := hpack.NewEncoder(&head)
	return errors.Join(
		encoder.WriteField(hpack.HeaderField{Name: ":status", Value: "200"}),
		encoder.WriteField(hpack.HeaderField{Name: "content-type", Value: contentType}),
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes(), EndHeaders: true}),
	)
}

// What a server of HTTP/2 may do to a call besides answering it, frame by frame.
func TestFrames(t *testing.T) {
	end := func(h http2.FrameHeader) bool { return h.Flags.Has(http2.FlagDataEndStream) && h.StreamID == 1 }
	for _, c := range []struct {
		why    string
		answer func(f *http2.Framer, contentType string) error
	}{
		{"cancels the stream, which nobody asked for", func(f *http2.Framer, _ string) error {
			return f.WriteRSTStream(1, http2.ErrCodeCancel)
		}},
		{"goes away in the middle of a reply", func(f *http2.Framer, contentType string) error {
			half := []byte("\x00\x00\x00\x00\x09half")
			return errors.Join(writeHead(f, contentType), f.WriteData(1, false, half), f.WriteGoAway(1, http2.ErrCodeNo, nil))
		}},
	} {
		for contentType, s := range map[string]rpcbench.Stack{"application/proto": h2c(), "application/grpc": overGRPC()} {
			t.Run(c.why+"/"+s.Name, func(t *testing.T) {
				config := serveFrames(t, end, func(f *http2.Framer) error { return c.answer(f, contentType) })
				_, err := dial(t, s, config).CreateUser(t.Context(), rpcbench.Sample(0, 0))
				require.Equal(t, rpcbench.Unavailable, asError(t, err).Code, err)
			})
		}
	}
}
