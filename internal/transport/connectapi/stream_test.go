package connectapi_test

import (
	"context"
	"errors"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding/pb"
	"github.com/rpcbench/rpcbench/internal/transport/connectapi"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/userservice/userserviceconnect"
	"github.com/rpcbench/rpcbench/stacks/connectrpc"
)

// exchange makes one Call of a stream.
func exchange(t *testing.T, c rpcbench.Client) (rpcbench.Stream, error) {
	t.Helper()
	s, err := c.(rpcbench.Streamer).OpenStream(t.Context())
	require.NoError(t, err)
	call, err := s.Prepare(rpcbench.Sample(0, 0))
	require.NoError(t, err)
	return s, call(t.Context())
}

// What a server may do to a stream that ours doesn't.
func TestOddStreams(t *testing.T) {
	type server = *connect.BidiStream[userv1.User, userv1.CreateUserResponse]
	failure := connectapi.ToConnect(&rpcbench.Error{Code: rpcbench.TooLarge})
	right := pb.API().NewService()
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
		{"ends without a reply", replies(0, nil), rpcbench.Unavailable, rpcbench.Unavailable},
		{"ends before it has read anything", func(context.Context, server) error { return nil }, rpcbench.Unavailable,
			rpcbench.Unavailable},
		{"fails without a reply", replies(0, failure), rpcbench.TooLarge, rpcbench.TooLarge},
		{"replies once", replies(1, nil), "", ""},
		{"replies twice", replies(2, nil), "", rpcbench.Internal},
		{"fails at the end", replies(1, failure), "", rpcbench.TooLarge},
		{"fails at the end, after one reply too many", replies(2, failure), "", rpcbench.TooLarge},
	} {
		for _, stack := range []rpcbench.Stack{connectrpc.H2C(), connectrpc.GRPC()} {
			t.Run(c.why+"/"+stack.Name, func(t *testing.T) {
				h := connect.NewBidiStreamHandler(userserviceconnect.UserServiceCreateUsersProcedure, c.create)
				s, err := exchange(t, dial(t, stack, serveHTTP(t, h, true)))
				require.Equal(t, c.exchange, rpcbench.CodeOf(err), err)
				err = s.Close()
				require.Equal(t, c.close, rpcbench.CodeOf(err), err)
			})
		}
	}
}

// A user that can't be encoded, the first or a later one, leaves nothing of its stream.
func TestStreamOfWhatCannotBeEncoded(t *testing.T) {
	good, bad := rpcbench.Sample(0, 0), rpcbench.Sample(0, 0)
	bad.Name = "\xff"
	for _, stack := range []rpcbench.Stack{connectrpc.H2C(), connectrpc.GRPC()} {
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
					require.Equal(t, rpcbench.Malformed, asError(t, err).Code, stack.Name)
				} else {
					require.NoError(t, err)
				}
			}
			require.Equal(t, rpcbench.Malformed, rpcbench.CodeOf(s.Close()), stack.Name)
		}
	}
}
