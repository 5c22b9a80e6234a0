// Package drpc serves and calls the create-user API with storj.io/drpc and protobuf. A connection carries one call at a
// time. No deadline crosses the wire, and an error is a number and a text.
package drpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/protobuf/proto"
	"storj.io/drpc"
	"storj.io/drpc/drpcconn"
	"storj.io/drpc/drpcerr"
	"storj.io/drpc/drpcmanager"
	"storj.io/drpc/drpcmux"
	"storj.io/drpc/drpcserver"
	"storj.io/drpc/drpcwire"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/binding/pb"
	messagepb "github.com/rpcbench/rpcbench/proto/message/v1"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

const createUser, echo = "/rpcbench.user.v1.UserService/CreateUser", "/rpcbench.user.v1.UserService/Echo"

// New uses the library's defaults, with the limits that every server has.
func New() rpcbench.Stack {
	t := pb.Traits()
	t.Multiplexed, t.Turns = true, true
	t.ServerLibraries = []string{"storj.io/drpc"}
	t.ClientLibraries = t.ServerLibraries
	return rpcbench.Stack{Name: "drpc", Protocol: "drpc/proto", Traits: t, Server: newServer, Dial: dial}
}

func newServer(config rpcbench.ServerConfig) (rpcbench.Server, error) {
	idle, header := config.Limits()
	mux := drpcmux.New()
	service := pb.Service{Create: pb.API().NewService(config), Failure: failure, Config: &config}
	err := mux.Register(service, description{})
	server := drpcserver.NewWithOptions(mux, drpcserver.Options{Manager: drpcmanager.Options{
		InactivityTimeout: idle,
		// A message that is larger ends the connection: the suite's largest is refused by encoding.Unmarshal.
		Reader: drpcwire.ReaderOptions{MaximumBufferSize: 3 * rpcbench.MaxBody},
	}})
	open, cancel := context.WithCancel(context.Background())
	return closing{rpcbench.ServeConns(config, func(conn net.Conn) {
		_ = conn.SetReadDeadline(time.Now().Add(header)) // for the handshake and the first bytes
		_ = server.ServeOne(open, &first{Conn: conn})
	}), cancel}, err
}

// closing is a server whose Close ends what ServeOne waits for: version 1.0.0 may wait without reading, and then does
// not see that its connection was closed.
type closing struct {
	rpcbench.Server
	cancel func()
}

func (s closing) Close() error {
	s.cancel()
	return s.Server.Close()
}

// first has a deadline until the first bytes are there.
type first struct {
	net.Conn
	read bool
}

func (c *first) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.read {
		c.read = c.SetReadDeadline(time.Time{}) == nil
	}
	return n, err
}

// description is what drpc's generator writes for the service.
type description struct{}

func (description) NumMethods() int { return 2 }
func (description) Method(n int) (rpc string, _ drpc.Encoding, _ drpc.Receiver, method any, ok bool) {
	switch n {
	case 0:
		return createUser, encoding{}, func(s any, ctx context.Context, in, _ any) (drpc.Message, error) {
			return s.(pb.Service).CreateUser(ctx, in.(*userv1.User))
		}, pb.Service.CreateUser, true
	case 1:
		return echo, encoding{}, func(s any, ctx context.Context, in, _ any) (drpc.Message, error) {
			return s.(pb.Service).Echo(ctx, in.(*messagepb.Flex))
		}, pb.Service.Echo, true
	}
	return "", nil, nil, nil, false
}

// encoding is what drpc's generator writes, with the limit of a body. What Unmarshal returns, a server sends.
type encoding struct{}

func (encoding) Marshal(m drpc.Message) ([]byte, error) { return encoding{}.MarshalAppend(nil, m) }

func (encoding) MarshalAppend(buf []byte, m drpc.Message) ([]byte, error) {
	buf, err := proto.MarshalOptions{}.MarshalAppend(buf, m.(proto.Message))
	if err != nil {
		err = &rpcbench.Error{Code: rpcbench.CodeMalformed, Err: err}
	}
	return buf, err
}

func (encoding) Unmarshal(buf []byte, m drpc.Message) error {
	if len(buf) > rpcbench.MaxBody {
		return failure(&rpcbench.Error{Code: rpcbench.CodeTooLarge, Message: fmt.Sprintf("a message of %d bytes", len(buf))})
	}
	if err := proto.Unmarshal(buf, m.(proto.Message)); err != nil {
		return failure(&rpcbench.Error{Code: rpcbench.CodeMalformed, Message: err.Error()})
	}
	return nil
}

const failed = 1 // the number of an error whose text is a userv1.Error as protobuf

// failure puts an error of the service into the text of an error of drpc, which has no details.
func failure(err error) error {
	text, _ := proto.Marshal(pb.API().FromError(binding.AsError(err))) // fails for invalid UTF-8, which no text has
	return drpcerr.WithCode(errors.New(string(text)), failed)
}

func fromDRPC(ctx context.Context, err error) error {
	if own, ok := errors.AsType[*rpcbench.Error](err); ok {
		return own
	}
	var coded interface {
		error
		Code() uint64
	}
	e := new(userv1.Error)
	if !errors.As(err, &coded) || coded.Code() != failed || proto.Unmarshal([]byte(coded.Error()), e) != nil {
		return rpcbench.CallError(ctx, err)
	}
	return pb.API().ToError(e)
}

func dial(config rpcbench.ClientConfig) (rpcbench.Client, error) {
	if config.Headers != nil {
		return nil, fmt.Errorf("this stack sends no metadata: %w", errors.ErrUnsupported)
	}
	var conns []*pb.Conn
	for range config.Conns {
		closed, cancel := context.WithCancel(context.Background())
		c := &conn{config: config, closed: closed, turn: make(chan struct{}, 1)}
		conns = append(conns, &pb.Conn{Call: c.createUser, Echo: c.echo, Failure: fromDRPC, Close: func() {
			cancel() // the call under way ends
			c.turn <- struct{}{}
			c.drop()
			<-c.turn
		}})
	}
	return binding.NewClient(pb.API(), conns), nil
}

// conn makes calls over one connection, which the first call opens. The library ends the connection of a call whose
// context ended, and the next call opens another.
type conn struct {
	config rpcbench.ClientConfig
	closed context.Context
	turn   chan struct{}  // full while a call uses the connection: a lock that a call awaits until its context ends
	drpc   *drpcconn.Conn // nil without a connection
	forget func() bool    // keeps closed from closing the connection
}

func (c *conn) createUser(ctx context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
	r := new(userv1.CreateUserResponse)
	return r, c.invoke(ctx, createUser, u, r)
}

func (c *conn) echo(ctx context.Context, f *messagepb.Flex) (*messagepb.Flex, error) {
	r := new(messagepb.Flex)
	return r, c.invoke(ctx, echo, f, r)
}

func (c *conn) invoke(ctx context.Context, rpc string, in, out proto.Message) error {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	err := c.drpc.Invoke(ctx, rpc, encoding{}, in, out)
	if _, unencoded := errors.AsType[*rpcbench.Error](err); unencoded {
		c.drop() // version 1.0.0 has told the server of a call without a request, and the server reads no more
	}
	return err
}

func (c *conn) open(ctx context.Context) error {
	if c.drpc != nil {
		select {
		case <-c.drpc.Closed():
			c.drop()
		default:
			return nil
		}
	}
	if err := c.closed.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.closed, cancel)()
	conn, err := c.config.DialContext(ctx, "tcp", c.config.Addr)
	if err != nil {
		return err
	}
	bare := conn
	c.forget = context.AfterFunc(c.closed, func() { _ = bare.Close() })
	if c.config.TLS != nil {
		conn = tls.Client(bare, c.config.TLS)
	}
	c.drpc = drpcconn.New(conn)
	return nil
}

// drop closes a connection. The caller must hold the turn.
func (c *conn) drop() {
	if c.drpc != nil {
		c.forget()
		_ = c.drpc.Close()
		c.drpc = nil
	}
}
