package connectapi_test

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
	connect2 "connectrpc.com/connect/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/transport/connectapi"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/stacks/connectrpc"
	"github.com/rpcbench/rpcbench/stacks/connectrpc2"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a server until the test ends, and returns how to reach it.
func serve(t *testing.T, s rpcbench.Server) rpcbench.ClientConfig {
	t.Helper()
	return rpcbench.ClientConfig{Addr: testkit.Serve(t, s), DialContext: new(net.Dialer).DialContext, Conns: 1}
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

// v1 and v2 are the stacks of either version of the library.
func v1() []rpcbench.Stack {
	return []rpcbench.Stack{connectrpc.New(), connectrpc.H2C(), connectrpc.GRPC(), connectrpc.GRPCWeb(), connectrpc.JSON(),
		connectrpc.Gzip(), connectrpc.VT()}
}

func v2() []rpcbench.Stack {
	return []rpcbench.Stack{connectrpc2.New(), connectrpc2.H2C(), connectrpc2.GRPC(), connectrpc2.GRPCWeb(),
		connectrpc2.JSON(), connectrpc2.Gzip(), connectrpc2.VT()}
}

// streamers are those that stream, of both versions.
func streamers() []rpcbench.Stack {
	return []rpcbench.Stack{connectrpc.H2C(), connectrpc.GRPC(), connectrpc2.H2C(), connectrpc2.GRPC()}
}

func each(t *testing.T, stacks []rpcbench.Stack, test func(*testing.T, rpcbench.Stack)) {
	t.Helper()
	for _, s := range stacks {
		t.Run(s.Name, func(t *testing.T) { test(t, s) })
	}
}

func asError(t *testing.T, err error) *rpcbench.Error {
	t.Helper()
	require.Error(t, err)
	e, ok := errors.AsType[*rpcbench.Error](err)
	require.True(t, ok, "%T", err)
	_, ofV1 := errors.AsType[*connect.Error](e.Err)
	_, ofV2 := errors.AsType[*connect2.Error](e.Err)
	require.True(t, ofV1 || ofV2, "the library's own error stays")
	return e
}

func failed(c rpcbench.Code) error { return &rpcbench.Error{Code: c} }

// Every code crosses every protocol, as it does with grpc-go, which shares the numbers.
func TestFailuresHaveOneCodeEach(t *testing.T) {
	broken := []rpcbench.Violation{{Field: "email", Rule: "required"}, {Field: "name", Rule: "min=4"}}
	misleading := &rpcbench.Error{Code: rpcbench.CodeInternal, Message: "grpc: failed to unmarshal"}
	invalid := &rpcbench.Error{Code: rpcbench.CodeInvalid, Violations: broken}
	cases := []struct {
		err    error
		status connect.Code
		code   rpcbench.Code
	}{
		{invalid, connect.CodeInvalidArgument, rpcbench.CodeInvalid},
		{failed(rpcbench.CodeInvalid), connect.CodeInvalidArgument, rpcbench.CodeInvalid},
		{failed(rpcbench.CodeMalformed), connect.CodeInvalidArgument, rpcbench.CodeMalformed},
		{failed(rpcbench.CodeTooLarge), connect.CodeResourceExhausted, rpcbench.CodeTooLarge},
		{failed(rpcbench.CodeDeadlineExceeded), connect.CodeDeadlineExceeded, rpcbench.CodeDeadlineExceeded},
		{failed(rpcbench.CodeUnavailable), connect.CodeUnavailable, rpcbench.CodeUnavailable},
		{failed(rpcbench.CodeCanceled), connect.CodeCanceled, rpcbench.CodeCanceled},
		{misleading, connect.CodeInternal, rpcbench.CodeInternal},
		{fmt.Errorf("create: %w", context.DeadlineExceeded), connect.CodeDeadlineExceeded, rpcbench.CodeDeadlineExceeded},
		{io.ErrClosedPipe, connect.CodeInternal, rpcbench.CodeInternal},
		{new(rpcbench.Error), connect.CodeInternal, rpcbench.CodeInternal},
	}
	each(t, v1(), func(t *testing.T, s rpcbench.Stack) {
		var current error // of the service; set between calls
		create := func(context.Context, *userv1.User) (*userv1.CreateUserResponse, error) { return nil, current }
		// also of errors, for gRPC's clients
		server := connectapi.NewServer(rpcbench.ServerConfig{}, create, overHTTP2(s), connect.WithCodec(connectapi.Codec{}))
		c := dial(t, s, serve(t, server))
		for _, tc := range cases {
			current = tc.err
			_, err := c.CreateUser(t.Context(), rpcbench.SampleUser(0, 0))
			e := asError(t, err)
			require.Equal(t, tc.status, connect.CodeOf(err), tc.err)
			require.True(t, connect.IsWireError(err), tc.err)
			require.Equal(t, tc.code, e.Code, tc.err)
			require.Equal(t, map[bool][]rpcbench.Violation{true: broken}[tc.err == invalid], e.Violations, tc.err)
			require.Equal(t, tc.code == rpcbench.CodeCanceled, errors.Is(e, context.Canceled), tc.err)
			require.Equal(t, tc.code == rpcbench.CodeDeadlineExceeded, errors.Is(e, context.DeadlineExceeded), tc.err)
		}
	})
}

// What answers breaks off, or says what nobody understands.
func TestBrokenReplies(t *testing.T) {
	begin := func(w http.ResponseWriter, r *http.Request, body string) {
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		_, _ = io.WriteString(w, body)
	}
	nonsense := func(w http.ResponseWriter, r *http.Request) { begin(w, r, "\x00\x00\x00\x00\x01\x0a") }
	half := func(w http.ResponseWriter, r *http.Request) {
		begin(w, r, "\x00\x00\x00\x00\x09half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	each(t, append(v1(), v2()...), func(t *testing.T, s rpcbench.Stack) {
		brokenOff := rpcbench.CodeUnavailable
		if overHTTP2(s) {
			brokenOff = rpcbench.CodeInternal // net/http resets the stream with INTERNAL_ERROR, which gRPC's mapping calls so
		}
		// The library says Canceled when the server resets the connection. Nobody has cancelled.
		reset := serve(t, rpcbench.ServeConns(rpcbench.ServerConfig{}, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1))
			_ = c.(*net.TCPConn).SetLinger(0) // closing it is to reset it
		}))
		for _, c := range []struct {
			why    string
			server rpcbench.ClientConfig
			want   rpcbench.Code
		}{
			{"a message that doesn't decode", serveHTTP(t, http.HandlerFunc(nonsense), overHTTP2(s)), rpcbench.CodeMalformed},
			{"half a reply", serveHTTP(t, http.HandlerFunc(half), overHTTP2(s)), brokenOff},
			{"a reset", reset, rpcbench.CodeUnavailable},
		} {
			_, err := dial(t, s, c.server).CreateUser(t.Context(), rpcbench.SampleUser(0, 0))
			require.Equal(t, c.want, asError(t, err).Code, "%s: %v", c.why, err)
			require.NotErrorIs(t, err, context.Canceled, c.why)
		}
	})
}

// What a server of HTTP/2 may do to a call besides answering it, frame by frame.
func TestFrames(t *testing.T) {
	all := func(h http2.FrameHeader) bool { return h.Flags.Has(http2.FlagDataEndStream) && h.StreamID == 1 }
	first := func(h http2.FrameHeader) bool { return h.Type == http2.FrameData }
	unary := func(t *testing.T, c rpcbench.Users) error {
		_, err := c.CreateUser(t.Context(), rpcbench.SampleUser(0, 0))
		return err
	}
	streamed := func(t *testing.T, c rpcbench.Users) error {
		_, err := exchange(t, c.(rpcbench.Client))
		return err
	}
	goAway := func(f *http2.Framer) error { return f.WriteGoAway(1, http2.ErrCodeNo, nil) }
	half := []byte("\x00\x00\x00\x00\x09half")
	for _, c := range []struct {
		why    string
		call   func(*testing.T, rpcbench.Users) error
		until  func(http2.FrameHeader) bool // the last frame that the server reads
		answer func(f *http2.Framer, contentType string) error
	}{
		{"cancels the stream, which nobody asked for", unary, all, func(f *http2.Framer, _ string) error {
			return f.WriteRSTStream(1, http2.ErrCodeCancel)
		}},
		{"goes away in the middle of a reply", unary, all, func(f *http2.Framer, contentType string) error {
			return errors.Join(writeHead(f, contentType), f.WriteData(1, false, half), goAway(f))
		}},
		{"goes away between two messages of a stream", streamed, first, func(f *http2.Framer, contentType string) error {
			return errors.Join(writeHead(f, strings.Replace(contentType, "/proto", "/connect+proto", 1)), goAway(f))
		}},
	} {
		for _, s := range streamers() {
			t.Run(c.why+"/"+s.Name, func(t *testing.T) {
				contentType := "application/proto"
				if s.Protocol == "grpc/proto" {
					contentType = "application/grpc"
				}
				config := serve(t, rpcbench.ServeConns(rpcbench.ServerConfig{}, func(conn net.Conn) {
					_, _ = io.ReadFull(conn, make([]byte, len(http2.ClientPreface)))
					f := http2.NewFramer(conn, conn)
					err := f.WriteSettings()
					for asked := false; err == nil && !asked; {
						var frame http2.Frame
						if frame, err = f.ReadFrame(); err == nil {
							asked = c.until(frame.Header())
						}
					}
					assert.NoError(t, errors.Join(err, c.answer(f, contentType)))
					_ = conn.(*net.TCPConn).CloseWrite()
					_, _ = io.Copy(io.Discard, conn) // what is left unread would make a reset of closing it
				}))
				err := c.call(t, dial(t, s, config))
				require.Equal(t, rpcbench.CodeUnavailable, asError(t, err).Code, err)
			})
		}
	}
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
