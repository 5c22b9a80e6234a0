// Package netrpc serves and calls the create-user API with the standard library's net/rpc: gob on bare connections. It
// is somebody else's stack, in a module of its own, and uses only what rpcbench exports.
package netrpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"sync/atomic"
	"time"

	"github.com/rpcbench/rpcbench"
)

// New uses rpc.Server and rpc.Client as they come.
func New() rpcbench.Stack {
	traits := rpcbench.Traits{Codec: "encoding/gob", Multiplexed: true, InvalidUTF8: rpcbench.UTF8Kept}
	return rpcbench.Stack{Name: "netrpc", Protocol: "netrpc/gob", Traits: traits, Server: newServer, Dial: dial}
}

// Reply carries a failure beside the answer, since net/rpc sends errors as bare strings.
type Reply struct {
	Response rpcbench.Response
	Failure  *rpcbench.Error
}

type service struct{ validate func(*rpcbench.User) error }

// CreateUser is what net/rpc serves.
func (s service) CreateUser(u *rpcbench.User, r *Reply) error {
	if len(u.Avatar) > rpcbench.MaxBody {
		r.Failure = &rpcbench.Error{Code: rpcbench.CodeTooLarge}
	} else if r.Failure, _ = errors.AsType[*rpcbench.Error](s.validate(u)); r.Failure == nil {
		r.Response = *rpcbench.AnswerUser(u)
	}
	return nil
}

func newServer(config rpcbench.ServerConfig) (rpcbench.Server, error) {
	s := rpc.NewServer()
	err := s.RegisterName("users", service{rpcbench.NewUserValidator[rpcbench.User](config)})
	return rpcbench.ServeConns(config, func(conn net.Conn) {
		idle, header := config.Limits()
		s.ServeConn(&limited{conn, idle, header})
	}), err
}

// limited has the timeouts that net/rpc lacks. It has no limit on a body but gob's own 1 GiB either: the service
// refuses what came.
type limited struct {
	net.Conn
	idle  time.Duration
	first time.Duration // for the first byte, with the handshake before it; 0 once it is there
}

func (c *limited) Read(p []byte) (int, error) {
	limit := c.idle
	if c.first > 0 {
		limit, c.first = c.first, 0
	}
	_ = c.SetReadDeadline(time.Now().Add(limit))
	return c.Conn.Read(p)
}

type client struct {
	conns []*rpc.Client
	next  atomic.Uint64
}

func dial(config rpcbench.ClientConfig) (rpcbench.Client, error) {
	if config.Headers != nil {
		return nil, fmt.Errorf("net/rpc has no headers: %w", errors.ErrUnsupported)
	}
	c := new(client)
	for range config.Conns {
		conn, err := config.DialContext(context.Background(), "tcp", config.Addr)
		if err != nil {
			return nil, rpcbench.CallError(context.Background(), errors.Join(err, c.Close()))
		}
		if config.TLS != nil {
			conn = tls.Client(conn, config.TLS)
		}
		c.conns = append(c.conns, rpc.NewClient(conn))
	}
	return c, nil
}

func (c *client) conn() *rpc.Client { return c.conns[(c.next.Add(1)-1)%uint64(len(c.conns))] }

func (c *client) CreateUser(ctx context.Context, u rpcbench.User) (rpcbench.Response, error) {
	return create(ctx, c.conn(), &u)
}

func (c *client) Prepare(i int) (rpcbench.Call, error) {
	return c.PrepareUser(rpcbench.SampleUser(i, 0))
}

func (c *client) PrepareUser(u rpcbench.User) (rpcbench.Call, error) {
	conn := c.conn()
	return func(ctx context.Context) error {
		r, err := create(ctx, conn, &u)
		if err == nil {
			err = rpcbench.CheckUser(&u, &r)
		}
		return err
	}, nil
}

func (c *client) Close() (err error) {
	for _, conn := range c.conns {
		err = errors.Join(err, conn.Close())
	}
	return err
}

func create(ctx context.Context, conn *rpc.Client, u *rpcbench.User) (r rpcbench.Response, err error) {
	reply := new(Reply)
	call := conn.Go("users.CreateUser", u, reply, make(chan *rpc.Call, 1))
	select {
	case <-ctx.Done():
		return r, rpcbench.CallError(ctx, ctx.Err())
	case <-call.Done:
	}
	if call.Error != nil {
		return r, rpcbench.CallError(ctx, call.Error)
	} else if reply.Failure != nil {
		return r, reply.Failure
	}
	return reply.Response, nil
}
