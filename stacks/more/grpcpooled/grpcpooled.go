// Package grpcpooled makes unary calls of gRPC over leased streams, so that a call opens no stream and sends no
// headers. A call takes a stream that waits in a pool, sends one message and receives one. Deadline and error are
// fields of the messages. A call that ends early resets its stream, which does not return to the pool. Calls have
// neither headers nor interceptors of their own.
package grpcpooled

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/binding/pb"
	"github.com/rpcbench/rpcbench/internal/transport/grpcapi"
	messagepb "github.com/rpcbench/rpcbench/proto/message/v1"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

const service, method = "rpcbench.user.v1.PooledUserService", "Call"

// New has client and server of grpcprotobuf, with the library's defaults. The server also answers calls that lease no
// stream.
func New() rpcbench.Stack {
	s := grpcprotobuf.New()
	s.Name, s.Protocol, s.Traits.Leased = "grpcprotobuf.pooled", "grpc/proto/pooled", true
	s.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		own := grpcapi.OwnServer(config)
		idle, _ := config.Limits()
		p := &server{pb.API().NewService(config), pb.API().FromError, idle, config}
		own.(grpc.ServiceRegistrar).RegisterService(description(p.serve), nil)
		return own, nil
	}
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		if config.Headers != nil {
			return nil, fmt.Errorf("a call on a leased stream has no headers: %w", errors.ErrUnsupported)
		}
		conns, err := grpcapi.DialAll(config, func(cc *grpc.ClientConn) *pb.Conn {
			p := &pool{cc: cc, toError: pb.API().ToError}
			return &pb.Conn{Call: p.createUser, Echo: p.echo, Failure: failure}
		})
		if err != nil {
			return nil, err
		}
		return binding.NewClient(pb.API(), conns), nil
	}
	return s
}

// description is what protoc-gen-go-grpc would write of the service.
func description(serve func(grpc.ServerStream) error) *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: service, HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName: method, ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return serve(stream) },
		}},
	}
}

type server struct {
	create    pb.Create
	fromError func(*rpcbench.Error) *userv1.Error
	idle      time.Duration
	config    rpcbench.ServerConfig
}

const idled = -1 // the state of a stream that ended for want of requests

// serve answers the requests of a stream in turn, on a goroutine of its own. A stream without a request for the idle
// time, or half of that time, ends without an error. Its client then knows that no later request was taken.
func (p *server) serve(stream grpc.ServerStream) error {
	var state atomic.Int64 // even while the stream waits for a request, then odd, then the next even number
	answered := make(chan error, 1)
	go func() { answered <- p.answerAll(stream, &state) }()
	look := time.NewTicker(max(1, p.idle/2))
	defer look.Stop()
	for before := state.Load(); ; {
		select {
		case err := <-answered:
			return err
		case <-look.C:
			now := state.Load()
			if now == before && now%2 == 0 && state.CompareAndSwap(now, idled) {
				return nil
			}
			before = now
		}
	}
}

func (p *server) answerAll(stream grpc.ServerStream, state *atomic.Int64) error {
	for n := int64(0); ; n += 2 {
		q := new(PooledRequest)
		if err := stream.RecvMsg(q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if !state.CompareAndSwap(n, n+1) {
			return nil // the stream has ended
		}
		if err := stream.SendMsg(p.answer(stream.Context(), q)); err != nil {
			return err
		}
		state.Store(n + 2)
	}
}

func (p *server) answer(ctx context.Context, q *PooledRequest) *PooledReply {
	if q.TimeoutNanos != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(q.TimeoutNanos))
		defer cancel()
	}
	reply, err := new(PooledReply), ctx.Err()
	switch {
	case err != nil:
	case q.Flex != nil:
		p.config.CountAndWait()
		reply.Flex = q.Flex
	case q.User != nil:
		reply.Response, err = p.create(ctx, q.User)
	default:
		err = &rpcbench.Error{Code: rpcbench.CodeMalformed, Message: "neither a user nor a message"}
	}
	if err != nil {
		reply.Error = p.fromError(binding.AsError(err))
	}
	return reply
}

// pool has the streams of one connection that no call leases. There are as many streams as calls were made at a time.
type pool struct {
	cc      *grpc.ClientConn
	toError func(*userv1.Error) *rpcbench.Error
	mu      sync.Mutex
	free    []*leased // the one that was used last is taken first
}

type leased struct {
	grpc.ClientStream
	cancel context.CancelFunc // resets the stream
}

func (p *pool) createUser(ctx context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
	r, err := p.call(ctx, &PooledRequest{User: u})
	return r.GetResponse(), err
}

func (p *pool) echo(ctx context.Context, f *messagepb.Flex) (*messagepb.Flex, error) {
	r, err := p.call(ctx, &PooledRequest{Flex: f})
	return r.GetFlex(), err
}

// call makes one call on one stream, and returns the stream to the pool if the reply came. If a stream has ended before
// the server took the request, call takes another: each of the pool, then at most two fresh ones.
func (p *pool) call(ctx context.Context, q *PooledRequest) (*PooledReply, error) {
	for opened := 0; ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if due, bounded := ctx.Deadline(); bounded {
			q.TimeoutNanos = max(1, int64(time.Until(due)))
		}
		s := p.lease()
		if s.ClientStream == nil {
			opened++
		}
		r, untaken, err := p.exchange(ctx, s, q)
		switch {
		case untaken && opened < 2:
			continue
		case err != nil:
			return nil, err
		case r.Error != nil:
			return nil, p.toError(r.Error)
		}
		return r, nil
	}
}

// lease takes a stream from the pool, or a fresh one that is not open yet.
func (p *pool) lease() *leased {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.free) - 1; last >= 0 {
		s := p.free[last]
		p.free = p.free[:last]
		return s
	}
	return new(leased)
}

// exchange sends q and receives the reply to q. A stream whose call failed is reset, since its reply may still come.
// untaken says that the server ended the stream, or the connection did, before the server took q.
func (p *pool) exchange(
	ctx context.Context, s *leased, q *PooledRequest) (r *PooledReply, untaken bool, err error) {
	opening := context.Background()
	if s.ClientStream == nil {
		opening, s.cancel = context.WithCancel(opening)
	}
	stop := func() bool { return true }
	if ctx.Done() != nil { // context.Background costs nothing
		stop = context.AfterFunc(ctx, s.cancel)
	}
	if s.ClientStream == nil {
		desc := &grpc.StreamDesc{StreamName: method, ServerStreams: true, ClientStreams: true}
		s.ClientStream, err = p.cc.NewStream(opening, desc, "/"+service+"/"+method, grpc.StaticMethod())
	}
	var unsent bool
	if err == nil {
		err = s.SendMsg(q)
		unsent = errors.Is(err, io.EOF) // the stream has ended, and receiving tells how
	}
	if err == nil || unsent {
		r = new(PooledReply)
		if err = s.RecvMsg(r); err == nil && !fits(q, r) {
			err = &rpcbench.Error{Code: rpcbench.CodeMalformed, Message: "a reply to another kind of request"}
		}
	}
	if !stop() || err != nil {
		s.cancel()
	} else {
		p.mu.Lock()
		p.free = append(p.free, s)
		p.mu.Unlock()
	}
	return r, errors.Is(err, io.EOF) || unsent && status.Code(err) == codes.Unavailable, err
}

// fits tells whether r has what q asked for, or an error.
func fits(q *PooledRequest, r *PooledReply) bool {
	return r.Error != nil || (q.User != nil) == (r.Response != nil) && (q.Flex != nil) == (r.Flex != nil)
}

func failure(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*rpcbench.Error](err); ok {
		return err
	}
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return rpcbench.CallError(ctx, err)
	}
	return grpcapi.FromStatus(err)
}
