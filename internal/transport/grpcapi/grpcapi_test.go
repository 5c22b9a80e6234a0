package grpcapi

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/userservice/userservicegrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a server until the test ends, and returns a connection to it.
func serve(t *testing.T, s *grpc.Server) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(testkit.Serve(t, server{s}), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // an error if the test has closed it
	return conn
}

// asError is err as clients return it.
func asError(t *testing.T, err error) *rpcbench.Error {
	t.Helper()
	require.Error(t, err)
	e, ok := errors.AsType[*rpcbench.Error](fromStatus(t.Context(), err))
	require.True(t, ok)
	require.Same(t, err, e.Err, "the library's own error stays")
	return e
}

// What a status has of an error is its code, whose number package connectapi tests.
func TestCodesCross(t *testing.T) {
	for _, code := range []rpcbench.Code{rpcbench.CodeInvalid, rpcbench.CodeMalformed, rpcbench.CodeTooLarge,
		rpcbench.CodeCanceled,
		rpcbench.CodeDeadlineExceeded, rpcbench.CodeUnavailable, rpcbench.CodeInternal} {
		require.Equal(t, code, FromStatus(toStatus(&rpcbench.Error{Code: code})).Code)
	}
}

// Other clients find the broken rules where gRPC's error model has them.
func TestBrokenRulesAreBadRequestDetails(t *testing.T) {
	conn := serve(t, NewServer(rpcbench.ServerConfig{}))
	_, err := userservicegrpc.NewUserServiceClient(conn).CreateUser(t.Context(), new(userv1.User))
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	details := status.Convert(err).Details()
	require.Len(t, details, 1)
	bad, ok := details[0].(*errdetails.BadRequest)
	require.True(t, ok, "%T", details[0])
	var told []string
	for _, v := range bad.GetFieldViolations() {
		told = append(told, v.GetField()+" "+v.GetDescription())
	}
	require.Equal(t, []string{"email required", "name min=4", "password min=4"}, told)
}

// raw is a codec that passes bytes, under the name of protobuf's. It goes with one call or one server.
type raw struct{}

func (raw) Name() string { return "proto" }
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}
func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

const method = userservicegrpc.UserService_CreateUser_FullMethodName

func TestRequestBytes(t *testing.T) {
	conn := serve(t, NewServer(rpcbench.ServerConfig{}))
	field := func(number byte, value string) string { return string([]byte{number<<3 | 2, byte(len(value))}) + value }
	valid := field(2, "anna@example.com") + field(3, "Anna") + field(4, "password")
	for _, c := range []struct {
		why, body string
		want      rpcbench.Code // "" for success
	}{
		{"nothing is wrong", valid, ""},
		{"nothing, which is a user with nothing", "", rpcbench.CodeInvalid},
		{"truncated in a field", valid[:len(valid)-1], rpcbench.CodeMalformed},
		{"invalid UTF-8", field(2, "anna@example.com") + field(3, "Ann\xff") + field(4, "password"), rpcbench.CodeMalformed},
		{"JSON", `{"email":"anna@example.com"}`, rpcbench.CodeMalformed},
	} {
		t.Run(c.why, func(t *testing.T) {
			body, reply := []byte(c.body), []byte(nil)
			err := conn.Invoke(t.Context(), method, &body, &reply, grpc.ForceCodecV2(raw{}))
			if c.want == "" {
				require.NoError(t, err)
				require.Contains(t, string(reply), "anna@example.com")
				return
			}
			require.Equal(t, c.want, asError(t, err).Code, err)
		})
	}
}

func TestReplyBytes(t *testing.T) {
	var current []byte
	s := grpc.NewServer(grpc.ForceServerCodecV2(raw{}))
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: userservicegrpc.UserService_ServiceDesc.ServiceName,
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: "CreateUser",
			Handler: func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
				return &current, nil
			},
		}},
	}, nil)
	conn := serve(t, s)
	create := func(u rpcbench.User) error {
		_, err := userservicegrpc.NewUserServiceClient(conn).CreateUser(t.Context(), fromUser(u))
		return err
	}
	require.NoError(t, create(rpcbench.SampleUser(0, 0)))
	current = []byte("\x0a") // half a field
	require.Equal(t, rpcbench.CodeMalformed, asError(t, create(rpcbench.SampleUser(0, 0))).Code,
		"a reply that doesn't decode")
	current = nil
	require.Equal(t, rpcbench.CodeMalformed, asError(t, create(rpcbench.User{Name: "\xff"})).Code,
		"a request that can't be encoded")
}

func TestOtherFailures(t *testing.T) {
	conn := serve(t, NewServer(rpcbench.ServerConfig{}))
	var reply userv1.CreateUserResponse
	err := conn.Invoke(t.Context(), "/rpcbench.user.v1.UserService/DeleteUser", new(userv1.User), &reply)
	require.Equal(t, codes.Unimplemented, status.Code(err))
	require.Equal(t, rpcbench.CodeInternal, asError(t, err).Code, "a method that the server lacks")
	require.Equal(t, rpcbench.CodeInternal, asError(t, io.EOF).Code, "an error that is no status")

	require.NoError(t, conn.Invoke(t.Context(), method, fromUser(rpcbench.SampleUser(0, 0)), &reply))
	require.NoError(t, conn.Close())
	err = conn.Invoke(t.Context(), method, fromUser(rpcbench.SampleUser(0, 0)), &reply)
	require.Equal(t, codes.Canceled, status.Code(err))
	require.Equal(t, rpcbench.CodeUnavailable, asError(t, err).Code, "a closed client: nobody cancelled")
}

func fromUser(u rpcbench.User) *userv1.User { return binding.Convert[userv1.User](&u) }

// A server given by name costs a connection no lookup that other stacks don't make: the dialer resolves the name, and
// nobody asks for a TXT record. The name is the authority, except over TLS, where that is the certificate's.
func TestNoResolverIsAsked(t *testing.T) {
	var asked, dialled, authorities []string
	resolver := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = resolver })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
		asked = append(asked, addr) // where the file of hosts has no answer
		return nil, errors.New("no name server")
	}}
	see := grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any,
		error) {
		of, _ := metadata.FromIncomingContext(ctx)
		authorities = append(authorities, of[":authority"]...)
		return next(ctx, req)
	})
	stack := testkit.Dialling(Transport{Serve: OwnServer}.Stack("named", []grpc.ServerOption{see}),
		func(config *rpcbench.ClientConfig) {
			dial := config.DialContext
			config.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				dialled = append(dialled, addr)
				return dial(ctx, network, addr)
			}
		})
	for _, c := range []struct {
		why, host string
		tls       bool
	}{
		{"an address", "127.0.0.1", false}, {"an address over TLS", "127.0.0.1", true},
		{"a name", "localhost", false}, {"a name over TLS", "localhost", true},
	} {
		t.Run(c.why, func(t *testing.T) {
			server, err := rpcbench.Start(t.Context(), stack, rpcbench.Config{TLS: c.tls})
			require.NoError(t, err)
			defer server.Close()
			_, port, err := net.SplitHostPort(server.Addr)
			require.NoError(t, err)
			addr := net.JoinHostPort(c.host, port)
			config, authority := rpcbench.Config{TLS: c.tls, Remote: addr}, addr
			if state, ok := server.TLS(); ok {
				config.Certificate, authority = state.PeerCertificates[0].Raw, "rpcbench.test"
			}
			asked, dialled, authorities = nil, nil, nil
			f, err := rpcbench.Start(t.Context(), stack, config)
			require.NoError(t, err)
			defer f.Close()
			require.Empty(t, asked)
			require.Equal(t, []string{addr}, slices.Compact(dialled))
			require.Equal(t, []string{authority}, slices.Compact(authorities))
			if state, ok := f.TLS(); ok {
				require.Equal(t, "rpcbench.test", state.ServerName)
			}
		})
	}
}
