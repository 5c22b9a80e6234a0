package rawtcp

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/binding/pb"
	"github.com/rpcbench/rpcbench/message/messagepb"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

// dial makes a client whose callers take turns on its connections.
func dial(config rpcbench.ClientConfig) (rpcbench.Client, error) {
	if config.Headers != nil {
		return nil, fmt.Errorf("the protocol has no headers: %w", errors.ErrUnsupported)
	}
	var conns []*pb.Conn
	for range config.Conns {
		closed, cancel := context.WithCancel(context.Background())
		c := &conn{config: config, closed: closed, turn: make(chan struct{}, 1)}
		conns = append(conns, &pb.Conn{CreateUser: c.createUser, Echo: c.echo, Close: func() {
			cancel() // ends the calls under way
			c.turn <- struct{}{}
			c.drop()
			<-c.turn
		}})
	}
	return binding.NewClient(pb.API(), conns), nil
}

// conn calls over one connection, which the first call opens. A call that fails half way closes it, since what is left on
// it may be that call's reply, and the next call opens another. Nothing is sent twice.
type conn struct {
	config rpcbench.ClientConfig
	closed context.Context
	turn   chan struct{} // full while a call has the connection: a lock, but waiting for it ends with the context
	net    net.Conn      // above TLS
	r      *bufio.Reader
	cut    func() // closes net at once, beneath TLS; nil while there is none
}

func (c *conn) createUser(ctx context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
	r := new(userv1.CreateUserResponse)
	return r, c.call(ctx, createUser, u, r)
}

func (c *conn) echo(ctx context.Context, f *messagepb.Flex) (*messagepb.Flex, error) {
	r := new(messagepb.Flex)
	return r, c.call(ctx, echo, f, r)
}

func (c *conn) call(ctx context.Context, kind byte, request, reply proto.Message) error {
	out, err := frame(kind, request)
	if err != nil {
		return err
	}
	kind, payload, err := c.exchange(ctx, out)
	switch {
	case err != nil && c.closed.Err() != nil:
		return rpcbench.CallError(ctx, net.ErrClosed) // and not that a dial was cancelled
	case err != nil:
		return rpcbench.CallError(ctx, err)
	case kind == done:
		return decode(payload, reply)
	}
	failure := new(userv1.Error)
	if err := decode(payload, failure); err != nil {
		return err
	}
	e := pb.API().ToError(failure)
	e.Code = cmp.Or(e.Code, rpcbench.Internal)
	return e
}

func (c *conn) exchange(ctx context.Context, request []byte) (kind byte, payload []byte, err error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	}
	if c.cut == nil {
		if err := c.open(ctx); err != nil {
			return 0, nil, err
		}
	}
	if ctx.Done() != nil { // else the call is spared the cost
		stop := context.AfterFunc(ctx, c.cut)
		defer func() {
			if !stop() {
				c.drop()
			}
		}()
	}
	if _, err = c.net.Write(request); err == nil {
		kind, payload, err = readReply(c.r)
	}
	if err != nil || c.r.Buffered() > 0 { // what follows a reply answers nothing
		c.drop()
	}
	return kind, payload, err
}

func readReply(r *bufio.Reader) (kind byte, payload []byte, err error) {
	kind, size, err := readHeader(r, done, failed)
	if err == nil {
		payload, err = readPayload(r, size)
	}
	return kind, payload, err
}

// open dials. A TLS handshake is part of the first call.
func (c *conn) open(ctx context.Context) error {
	if err := c.closed.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.closed, cancel)()
	bare, err := c.config.DialContext(ctx, "tcp", c.config.Addr)
	if err != nil {
		return err
	}
	c.net = bare
	if c.config.TLS != nil {
		c.net = tls.Client(bare, c.config.TLS)
	}
	c.r = bufio.NewReader(c.net)
	forget := context.AfterFunc(c.closed, func() { _ = bare.Close() })
	c.cut = func() {
		forget()
		_ = bare.Close()
	}
	return nil
}

// drop closes a broken connection. The caller must hold the turn.
func (c *conn) drop() {
	if c.cut != nil {
		c.cut()
		c.cut = nil
	}
}
