// Package rawtcp serves and calls the create-user API with length-prefixed protobuf frames on a bare TCP connection.
// Any extra time of another protobuf stack is the cost of its protocol and its library.
//
// A client sends one frame and reads one frame, in turn. A frame has 4 bytes for the length of the payload
// (big-endian), one byte for the kind, and the payload, which is protobuf. A string that is not UTF-8 is refused.
package rawtcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/binding/pb"
	messagepb "github.com/rpcbench/rpcbench/proto/message/v1"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

// New uses fresh buffers for every call: one for the frame that is sent, one for the payload that is read.
func New() rpcbench.Stack {
	t := pb.Traits()
	t.Multiplexed, t.Turns = true, true
	return rpcbench.Stack{
		Name: "rawtcp", Protocol: "tcp/proto", Traits: t,
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			return rpcbench.ServeConns(config, serve(config)), nil
		},
		Dial: dial,
	}
}

const headerSize = 5

// Kinds of frames.
const (
	createUser byte = '\n' // userv1.User; an HTTP server that gets one by mistake sees a line, and refuses at once
	echo       byte = 1    // messagepb.Flex
	done       byte = 2    // a reply: userv1.CreateUserResponse or messagepb.Flex
	failed     byte = 3    // a reply: userv1.Error
)

func frame(kind byte, m proto.Message) ([]byte, error) {
	size := proto.Size(m)
	b, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(make([]byte, headerSize, headerSize+size), m)
	if err != nil {
		return nil, malformed(err)
	}
	binary.BigEndian.PutUint32(b, uint32(size)) // a protobuf message has less than 2 GiB
	b[headerSize-1] = kind
	return b, nil
}

// readHeader fails with Malformed where no frame of these kinds begins.
func readHeader(r *bufio.Reader, kinds ...byte) (kind byte, size int64, err error) {
	h, err := r.Peek(headerSize)
	if err != nil {
		return 0, 0, err
	}
	if kind = h[headerSize-1]; !slices.Contains(kinds, kind) {
		return 0, 0, malformed(fmt.Errorf("rawtcp: no frame begins with %q", h))
	}
	size = int64(binary.BigEndian.Uint32(h))
	_, err = r.Discard(headerSize)
	return kind, size, err
}

// readPayload reads a payload. It skips a payload larger than MaxBody, and fails with TooLarge. The memory of a payload
// longer than any valid one grows as the bytes arrive, so that a false length costs nothing.
func readPayload(r *bufio.Reader, size int64) ([]byte, error) {
	if size > rpcbench.MaxBody {
		if _, err := r.Discard(int(size)); err != nil {
			return nil, err
		}
		return nil, &rpcbench.Error{Code: rpcbench.CodeTooLarge, Message: fmt.Sprintf("a message of %d bytes", size)}
	}
	if size > rpcbench.MaxAvatar+4096 {
		var b bytes.Buffer
		_, err := io.CopyN(&b, r, size)
		return b.Bytes(), err
	}
	p := make([]byte, size)
	_, err := io.ReadFull(r, p)
	return p, err
}

func decode(payload []byte, m proto.Message) error {
	if err := proto.Unmarshal(payload, m); err != nil {
		return malformed(err)
	}
	return nil
}

// malformed returns an error with the text of err as its Message, which a reply can carry.
func malformed(err error) error {
	return &rpcbench.Error{Code: rpcbench.CodeMalformed, Message: err.Error()}
}

// serve returns a function that answers the requests of one connection, until the connection ends, is idle for too long
// or carries anything else. Its deadlines are timers of the runtime, not system calls.
func serve(config rpcbench.ServerConfig) func(net.Conn) {
	service := pb.Service{Create: pb.API().NewService(config), Config: &config}
	idle, header := config.Limits()
	return func(conn net.Conn) {
		r := bufio.NewReader(conn)
		due := func(limit time.Duration) { _ = conn.SetReadDeadline(time.Now().Add(limit)) }
		due(header) // for the first header; reading it includes the TLS handshake
		for first := true; ; first = false {
			if !first && r.Buffered() == 0 {
				due(idle)
				if _, err := r.Peek(1); err != nil {
					return
				}
			}
			if !first && r.Buffered() < headerSize {
				due(header)
			}
			kind, size, err := readHeader(r, createUser, echo)
			if err != nil {
				_ = respond(conn, nil, err)
				return
			}
			if int64(r.Buffered()) < size {
				_ = conn.SetReadDeadline(time.Time{}) // no limit bounds a whole call
			}
			reply, err := answer(r, kind, size, service)
			if err := respond(conn, reply, err); err != nil {
				return
			}
		}
	}
}

// answer reads the payload and makes the reply. An error of another type than *rpcbench.Error ends the connection.
func answer(r *bufio.Reader, kind byte, size int64, service pb.Service) (proto.Message, error) {
	payload, err := readPayload(r, size)
	if err != nil {
		return nil, err
	}
	if kind == echo {
		f := new(messagepb.Flex)
		if err := decode(payload, f); err != nil {
			return nil, err
		}
		return service.Echo(context.Background(), f)
	}
	u := new(userv1.User)
	if err := decode(payload, u); err != nil {
		return nil, err
	}
	return service.Create(context.Background(), u)
}

// respond sends the reply, or the call's error instead. It returns an error if the connection broke.
func respond(conn net.Conn, reply proto.Message, err error) error {
	kind := done
	if e, ok := errors.AsType[*rpcbench.Error](err); ok {
		kind, reply, err = failed, pb.API().FromError(e), nil
	}
	if err != nil {
		return err
	}
	b, err := frame(kind, reply)
	if err == nil {
		_, err = conn.Write(b)
	}
	return err
}

// dial makes a client whose callers take turns on its connections.
func dial(config rpcbench.ClientConfig) (rpcbench.Client, error) {
	if config.Headers != nil {
		return nil, fmt.Errorf("the protocol has no headers: %w", errors.ErrUnsupported)
	}
	var conns []*pb.Conn
	for range config.Conns {
		closed, cancel := context.WithCancel(context.Background())
		c := &conn{config: config, closed: closed, turn: make(chan struct{}, 1)}
		conns = append(conns, &pb.Conn{Call: c.createUser, Echo: c.echo, Failure: binding.AsIs, Close: func() {
			cancel() // the calls under way end
			c.turn <- struct{}{}
			c.drop()
			<-c.turn
		}})
	}
	return binding.NewClient(pb.API(), conns), nil
}

// conn makes calls over one connection, which the first call opens. A call that fails half way closes the connection,
// since its reply may still come, and the next call opens another. Nothing is sent twice.
type conn struct {
	config rpcbench.ClientConfig
	closed context.Context
	turn   chan struct{} // full while a call uses the connection: a lock that a call awaits until its context ends
	net    net.Conn      // the connection that calls use, with TLS if there is TLS
	r      *bufio.Reader
	cut    func() // closes the connection beneath TLS at once; nil without a connection
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
	e.Code = cmp.Or(e.Code, rpcbench.CodeInternal)
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
	if ctx.Done() != nil { // context.Background costs nothing
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
	if err != nil || c.r.Buffered() > 0 { // data after a reply belongs to no request
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

// open dials. The TLS handshake is part of the first call.
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
