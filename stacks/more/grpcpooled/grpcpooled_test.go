package grpcpooled

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding/pb"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func TestConformance(t *testing.T) { stacktest.Conformance(t, New()) }

// leasing is a pool at a server that counts the streams which it was asked for.
type leasing struct {
	*pool
	streams atomic.Int64
	hidden  []*leased
}

// hide takes the only free stream out of the pool, so that the next call opens another.
func (l *leasing) hide(t *testing.T) {
	t.Helper()
	require.Len(t, l.free, 1)
	l.hidden, l.free = append(l.hidden, l.free[0]), nil
}

// lease starts a server whose calls create makes.
func lease(t *testing.T, idle time.Duration, create pb.Create) *leasing {
	t.Helper()
	l, s := new(leasing), grpc.NewServer()
	p := &server{create: create, fromError: pb.API().FromError, idle: idle}
	s.RegisterService(description(func(stream grpc.ServerStream) error {
		l.streams.Add(1)
		return p.serve(stream)
	}), nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	cc, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, cc.Close())
		s.Stop()
		require.NoError(t, <-served)
	})
	l.pool = &pool{cc: cc, toError: pb.API().ToError}
	return l
}

// named answers a user at once.
func named(_ context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
	return &userv1.CreateUserResponse{User: u}, nil
}

func (l *leasing) calls(t *testing.T, name string) {
	t.Helper()
	r, err := l.createUser(t.Context(), &userv1.User{Name: name})
	require.NoError(t, err, "the call of %s", name)
	require.Equal(t, name, r.GetUser().GetName(), "a call gets its own reply")
}

func TestLeasedStreamIsUsedAgain(t *testing.T) {
	l := lease(t, time.Hour, func(ctx context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
		if u.GetName() == "refused" {
			return nil, &rpcbench.Error{Code: rpcbench.CodeInvalid}
		}
		return named(ctx, u)
	})
	for range 3 {
		l.calls(t, "anna")
		_, err := l.createUser(t.Context(), &userv1.User{Name: "refused"})
		require.Equal(t, rpcbench.CodeInvalid, rpcbench.CodeOf(err))
	}
	require.EqualValues(t, 1, l.streams.Load(), "an error is in the message, and leaves the stream open")
}

func TestDeadlineIsInTheMessage(t *testing.T) {
	var left atomic.Int64
	l := lease(t, time.Hour, func(ctx context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
		if due, bounded := ctx.Deadline(); bounded {
			left.Store(int64(time.Until(due)))
		}
		return named(ctx, u)
	})
	l.calls(t, "anna")
	require.Zero(t, left.Load(), "a call without a deadline")
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	_, err := l.createUser(ctx, &userv1.User{})
	require.NoError(t, err)
	require.Greater(t, left.Load(), int64(50*time.Minute), "the server knows the deadline of the call")
	_, err = l.call(t.Context(), &PooledRequest{User: &userv1.User{}, TimeoutNanos: -1})
	require.Equal(t, rpcbench.CodeDeadlineExceeded, rpcbench.CodeOf(err), "the server refuses a call that is too late")
	require.EqualValues(t, 1, l.streams.Load())
}

func TestServerEndsIdleStreams(t *testing.T) {
	l := lease(t, 20*time.Millisecond, named)
	l.calls(t, "before")
	stream := l.free[0]
	ended := func() bool { return stream.RecvMsg(new(PooledReply)) != nil }
	require.Eventually(t, ended, time.Minute, time.Millisecond, "the server ends a stream without requests")
	for range 10 {
		l.calls(t, "after")
		<-time.After(10 * time.Millisecond) // some of the streams end meanwhile
	}
	require.Greater(t, l.streams.Load(), int64(1))
}

// TestStaleStreamsAreReplaced: a connection that broke while nobody called fails no call, however many streams it had.
func TestStaleStreamsAreReplaced(t *testing.T) {
	l := lease(t, time.Hour, named)
	var conns []net.Conn
	cc, err := grpc.NewClient(l.cc.Target(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			conns = append(conns, c)
			return c, err
		}))
	require.NoError(t, err)
	defer cc.Close()
	l.cc = cc
	for range 3 {
		l.calls(t, "before")
		l.hide(t)
	}
	l.free = l.hidden
	require.NoError(t, conns[0].Close())
	for _, stream := range l.free {
		require.Error(t, stream.RecvMsg(new(PooledReply)), "until it has ended")
	}
	l.calls(t, "after")
	require.Len(t, l.free, 1, "the ended streams are gone")
}

func TestRequestOfNothing(t *testing.T) {
	_, err := lease(t, time.Hour, named).call(t.Context(), new(PooledRequest))
	require.Equal(t, rpcbench.CodeMalformed, rpcbench.CodeOf(err))
}

// TestReplyOfNothing: a reply without what was asked for fails its call, and the stream is used no more.
func TestReplyOfNothing(t *testing.T) {
	l := lease(t, time.Hour, func(context.Context, *userv1.User) (*userv1.CreateUserResponse, error) { return nil, nil })
	_, err := l.createUser(t.Context(), new(userv1.User))
	require.Equal(t, rpcbench.CodeMalformed, rpcbench.CodeOf(err))
	require.Empty(t, l.free)
}
