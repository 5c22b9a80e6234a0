package connectapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"

	"connectrpc.com/connect"
	connect2 "connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding/pb"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/userservice/userserviceconnect"
	"github.com/rpcbench/rpcbench/proto/userservice/userserviceconnect2"
)

// exchange makes one Call of a stream.
func exchange(t *testing.T, c rpcbench.Client) (rpcbench.Stream, error) {
	t.Helper()
	s, err := c.(rpcbench.Streamer).OpenStream(t.Context())
	require.NoError(t, err)
	call, err := s.Prepare(rpcbench.SampleUser(0, 0))
	require.NoError(t, err)
	return s, call(t.Context())
}

// server is the server's side of a stream, of either version.
type server interface {
	Receive() (*userv1.User, error)
	Send(*userv1.CreateUserResponse) error
}

type odd struct {
	userserviceconnect.UnimplementedUserServiceHandler
	create func(context.Context, server) error
}

func (o odd) CreateUsers(ctx context.Context, s *connect.BidiStream[userv1.User, userv1.CreateUserResponse]) error {
	return o.create(ctx, s)
}

type odd2 struct {
	userserviceconnect2.UnimplementedUserServiceHandler
	create func(context.Context, server) error
}

func (o odd2) CreateUsers(ctx context.Context, s userserviceconnect2.UserServiceCreateUsersServerStream) error {
	return o.create(ctx, s)
}

// What a server may do to a stream that ours doesn't.
func TestOddStreams(t *testing.T) {
	failure := errors.Join(connect.NewError(connect.CodeResourceExhausted, io.ErrShortBuffer),
		connect2.NewError(connect2.CodeResourceExhausted, "short buffer")) // each version knows its own
	right := pb.API().NewService(rpcbench.ServerConfig{})
	replies := func(n int, err error) func(context.Context, server) error {
		return func(ctx context.Context, s server) error {
			u, e := s.Receive()
			if e != nil || n == 0 {
				return errors.Join(e, err)
			}
			reply, e := right(ctx, u)
			for range n {
				e = errors.Join(e, s.Send(reply))
			}
			_, _ = s.Receive() // the end
			return errors.Join(e, err)
		}
	}
	for _, c := range []struct {
		why             string
		create          func(context.Context, server) error
		exchange, close rpcbench.Code // "" for success
	}{
		{"ends without a reply", replies(0, nil), rpcbench.CodeUnavailable, rpcbench.CodeUnavailable},
		{"ends before it has read anything", func(context.Context, server) error { return nil }, rpcbench.CodeUnavailable,
			rpcbench.CodeUnavailable},
		{"fails without a reply", replies(0, failure), rpcbench.CodeTooLarge, rpcbench.CodeTooLarge},
		{"replies once", replies(1, nil), "", ""},
		{"replies twice", replies(2, nil), "", rpcbench.CodeInternal},
		{"fails at the end", replies(1, failure), "", rpcbench.CodeTooLarge},
		{"fails at the end, after one reply too many", replies(2, failure), "", rpcbench.CodeTooLarge},
	} {
		for _, stack := range streamers() {
			t.Run(c.why+"/"+stack.Name, func(t *testing.T) {
				mux := http.NewServeMux()
				if slices.Contains(stack.Traits.ServerLibraries, "connectrpc.com/connect") {
					mux.Handle(userserviceconnect.NewUserServiceHandler(odd{create: c.create}))
				} else {
					server := connect2.NewServer()
					userserviceconnect2.RegisterUserServiceHandler(server, odd2{create: c.create})
					connecthttp.Mount(mux, server)
				}
				s, err := exchange(t, dial(t, stack, serveHTTP(t, mux, true)))
				require.Equal(t, c.exchange, rpcbench.CodeOf(err), err)
				err = s.Close()
				require.Equal(t, c.close, rpcbench.CodeOf(err), err)
			})
		}
	}
}

// A user that can't be encoded, the first or a later one, leaves nothing of its stream.
func TestStreamOfWhatCannotBeEncoded(t *testing.T) {
	good, bad := rpcbench.SampleUser(0, 0), rpcbench.SampleUser(0, 0)
	bad.Name = "\xff"
	for _, stack := range streamers() {
		server, err := stack.Server(rpcbench.ServerConfig{})
		require.NoError(t, err)
		c := dial(t, stack, serve(t, server)).(rpcbench.Streamer)
		for _, sent := range [][]rpcbench.User{{bad}, {good, bad}} {
			s, err := c.OpenStream(t.Context())
			require.NoError(t, err)
			for i, u := range sent {
				call, err := s.Prepare(u)
				require.NoError(t, err)
				if err = call(t.Context()); i == len(sent)-1 {
					require.Equal(t, rpcbench.CodeMalformed, asError(t, err).Code, stack.Name)
				} else {
					require.NoError(t, err)
				}
			}
			require.Equal(t, rpcbench.CodeMalformed, rpcbench.CodeOf(s.Close()), stack.Name)
		}
	}
}

// The end of the context ends a stream whatever else is under way, such as its first message.
func TestStreamIsCanceledAtOnce(t *testing.T) {
	for _, stack := range streamers() {
		server, err := stack.Server(rpcbench.ServerConfig{})
		require.NoError(t, err)
		c := dial(t, stack, serve(t, server)).(rpcbench.Streamer)
		for range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			s, err := c.OpenStream(ctx)
			require.NoError(t, err)
			call, err := s.Prepare(rpcbench.SampleUser(0, 0))
			require.NoError(t, err)
			go cancel()
			if err := call(t.Context()); err != nil {
				require.Contains(t, []rpcbench.Code{rpcbench.CodeCanceled, rpcbench.CodeUnavailable}, rpcbench.CodeOf(err), err)
			}
			_ = s.Close()
		}
	}
}
