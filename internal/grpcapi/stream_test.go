package grpcapi

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/binding/pb"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/proto/userservice/userservicegrpc"
)

type oddService struct {
	userservicegrpc.UnimplementedUserServiceServer
	create func(grpc.BidiStreamingServer[userv1.User, userv1.CreateUserResponse]) error
}

func (s oddService) CreateUsers(stream grpc.BidiStreamingServer[userv1.User, userv1.CreateUserResponse]) error {
	return s.create(stream)
}

func odd(t *testing.T, s oddService) rpcbench.Streamer {
	t.Helper()
	r := grpc.NewServer()
	userservicegrpc.RegisterUserServiceServer(r, s)
	return binding.NewClient(pb.API(), []*pb.Conn{newConn(serve(t, r))}).(rpcbench.Streamer)
}

// What a server may do to a stream that ours doesn't.
func TestOddStreams(t *testing.T) {
	type server = grpc.BidiStreamingServer[userv1.User, userv1.CreateUserResponse]
	failure := toStatus(&rpcbench.Error{Code: rpcbench.TooLarge})
	u := rpcbench.Sample(0, 0)
	right := pb.API().Answer(fromUser(u))
	replies := func(n int, err error) func(server) error {
		return func(s server) error {
			for range n {
				if err := s.Send(right); err != nil {
					return err
				}
			}
			if _, e := s.Recv(); e != nil || n == 0 {
				return errors.Join(e, err)
			}
			_, _ = s.Recv() // the end
			return err
		}
	}
	for _, c := range []struct {
		why             string
		create          func(server) error
		exchange, close rpcbench.Code // "" for success
	}{
		{"ends without a reply", replies(0, nil), rpcbench.Unavailable, ""},
		{"ends before it has read anything", func(server) error { return nil }, rpcbench.Unavailable, ""},
		{"fails without a reply", replies(0, failure), rpcbench.TooLarge, ""},
		{"replies once", replies(1, nil), "", ""},
		{"replies twice", replies(2, nil), "", rpcbench.Internal},
		{"fails at the end", replies(1, failure), "", rpcbench.TooLarge},
		{"fails at the end, after one reply too many", replies(2, failure), "", rpcbench.TooLarge},
	} {
		t.Run(c.why, func(t *testing.T) {
			s, err := odd(t, oddService{create: c.create}).OpenStream(t.Context())
			require.NoError(t, err)
			call, err := s.Prepare(rpcbench.Sample(0, 0))
			require.NoError(t, err)
			err = call(t.Context())
			require.Equal(t, c.exchange, rpcbench.CodeOf(err), err)
			if err == nil {
				err := s.Close()
				require.Equal(t, c.close, rpcbench.CodeOf(err), err)
			}
		})
	}
}
