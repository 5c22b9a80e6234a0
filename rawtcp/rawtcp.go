// Package rawtcp serves and calls the create-user API with length-prefixed protobuf frames on a TCP connection and no
// framework: the floor of the line-up. What another protobuf stack takes longer, its protocol and its library take.
//
// A client begins a connection with a line, the preface. Then it sends a frame and reads the reply's frame, in turns. A
// frame is 4 bytes with the length of its payload, big-endian, a byte with its kind, and the payload, a generated type.
package rawtcp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/native"
	"github.com/rpcbench/rpcbench/internal/pbnative"
	"github.com/rpcbench/rpcbench/message/messagepb"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

// New makes fresh buffers for every call: one for the frame it sends, one for the payload it reads.
func New() rpcbench.Stack {
	return rpcbench.Stack{
		Name:     "rawtcp",
		Protocol: "tcp/proto",
		Traits: rpcbench.Traits{
			Codec:       "google.golang.org/protobuf",
			Multiplexed: true, // callers on one connection take turns
			InvalidUTF8: rpcbench.Rejected,
		},
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			return rpcbench.ServeConns(config, server{pbnative.API().NewService()}.serve), nil
		},
		Dial: dial,
	}
}

// preface is a whole line: an HTTP server that is called by mistake answers it at once and does not wait for more.
const preface = "rawtcp/1\r\n"

const headerSize = 5 // of a frame

// Kinds of frames.
const (
	createUser byte = iota + 1 // userv1.User
	echo                       // messagepb.Flex
	done                       // userv1.CreateUserResponse or messagepb.Flex
	failed                     // userv1.Error
)

func frame(kind byte, m proto.Message) ([]byte, error) {
	size := proto.Size(m)
	b, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(make([]byte, headerSize, headerSize+size), m)
	if err != nil {
		return nil, &rpcbench.Error{Code: rpcbench.Malformed, Err: err}
	}
	binary.BigEndian.PutUint32(b, uint32(size)) // a protobuf message has less than 2 GiB
	b[headerSize-1] = kind
	return b, nil
}

func readHeader(r *bufio.Reader) (kind byte, size int64, err error) {
	h, err := r.Peek(headerSize)
	if err != nil {
		return 0, 0, err
	}
	kind, size = h[headerSize-1], int64(binary.BigEndian.Uint32(h))
	_, err = r.Discard(headerSize)
	return kind, size, err
}

func readPayload(r *bufio.Reader, size int64) ([]byte, error) {
	const valid = rpcbench.MaxAvatar + 4096 // no valid request has more: who announces more gets more as it comes
	if size > valid {
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
		return malformed(err.Error())
	}
	return nil
}

func malformed(why string) error { return &rpcbench.Error{Code: rpcbench.Malformed, Message: why} }

type server struct {
	create func(context.Context, *userv1.User) (*userv1.CreateUserResponse, error)
}

// serve answers one connection's requests until it ends, is idle for too long, or carries what is no request. Its
// deadlines are timers of the runtime, not system calls.
func (s server) serve(conn net.Conn) {
	r := bufio.NewReader(conn)
	due := func(limit time.Duration) { _ = conn.SetReadDeadline(time.Now().Add(limit)) }
	due(rpcbench.HeaderTimeout) // the first read shakes hands, with TLS
	line, err := r.Peek(len(preface))
	if err == nil && string(line) != preface {
		_ = respond(conn, nil, malformed(fmt.Sprintf("rawtcp: a connection begins with %q, not with %q", preface, line)))
		return
	}
	_, _ = r.Discard(len(line))
	for err == nil {
		err = s.next(conn, r, due)
	}
}

// next answers one request. Its error ends the connection.
func (s server) next(conn net.Conn, r *bufio.Reader, due func(time.Duration)) error {
	if r.Buffered() == 0 {
		due(rpcbench.IdleTimeout)
		if _, err := r.Peek(1); err != nil {
			return err
		}
	}
	if r.Buffered() < headerSize {
		due(rpcbench.HeaderTimeout)
	}
	kind, size, err := readHeader(r)
	if err != nil {
		return err
	}
	if kind != createUser && kind != echo {
		err := malformed(fmt.Sprintf("rawtcp: no request is of kind %d", kind))
		return errors.Join(err, respond(conn, nil, err))
	}
	if int64(r.Buffered()) < size {
		_ = conn.SetReadDeadline(time.Time{}) // no limit bounds a whole call
	}
	reply, err := s.answer(r, kind, size)
	return respond(conn, reply, err)
}

// answer reads the payload. An error that is no *rpcbench.Error is the connection's.
func (s server) answer(r *bufio.Reader, kind byte, size int64) (proto.Message, error) {
	if size > rpcbench.MaxBody {
		if _, err := io.CopyN(io.Discard, r, size); err != nil {
			return nil, err
		}
		return nil, &rpcbench.Error{Code: rpcbench.TooLarge, Message: fmt.Sprintf("a request of %d bytes", size)}
	}
	payload, err := readPayload(r, size)
	if err != nil {
		return nil, err
	}
	if kind == echo {
		f := new(messagepb.Flex)
		return f, decode(payload, f)
	}
	u := new(userv1.User)
	if err := decode(payload, u); err != nil {
		return nil, err
	}
	return s.create(context.Background(), u)
}

// respond sends the reply, or the call's error in its place.
func respond(conn net.Conn, reply proto.Message, err error) error {
	kind := done
	if e, ok := errors.AsType[*rpcbench.Error](err); ok {
		kind, reply, err = failed, pbnative.API().FromError(e), nil
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

func dial(config rpcbench.ClientConfig) (rpcbench.Client, error) {
	closed, cancel := context.WithCancel(context.Background())
	var conns []*conn
	for range config.Conns {
		conns = append(conns, &conn{config: config, closed: closed, turn: make(chan struct{}, 1)})
	}
	return native.NewClient(pbnative.API(), conns, func() error {
		cancel() // ends the calls under way
		for _, c := range conns {
			c.turn <- struct{}{}
			c.drop()
			<-c.turn
		}
		return nil
	}), nil
}

// conn calls over one connection. The first call opens it, and so does the call after one that failed half way: what is
// left on the connection then may be the reply to that.
type conn struct {
	config rpcbench.ClientConfig
	closed context.Context
	turn   chan struct{} // full while a call has the connection: a lock that nobody waits for beyond his deadline
	link   *link         // nil while there is none
}

type link struct {
	net.Conn // above TLS
	r        *bufio.Reader
	cut      func() // closes it at once, beneath TLS
}

func (c *conn) CreateUser(ctx context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
	r := new(userv1.CreateUserResponse)
	return r, c.call(ctx, createUser, u, r)
}

func (c *conn) Echo(ctx context.Context, f *messagepb.Flex) (*messagepb.Flex, error) {
	r := new(messagepb.Flex)
	return r, c.call(ctx, echo, f, r)
}

func (c *conn) call(ctx context.Context, kind byte, request, reply proto.Message) error {
	out, err := frame(kind, request)
	if err != nil {
		return err
	}
	kind, payload, err := c.exchange(ctx, out)
	if err != nil {
		if c.closed.Err() != nil {
			err = net.ErrClosed // and not that a dial was cancelled
		}
		return rpcbench.CallError(ctx, err)
	}
	if kind == done {
		return decode(payload, reply)
	}
	failure := new(userv1.Error)
	if err := decode(payload, failure); err != nil {
		return err
	}
	return pbnative.API().ToError(failure)
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
	if c.link == nil {
		if c.link, err = c.open(ctx); err != nil {
			return 0, nil, err
		}
	}
	if ctx.Done() != nil { // or it would cost something for nothing
		stop := context.AfterFunc(ctx, c.link.cut)
		defer func() {
			if !stop() {
				c.drop()
			}
		}()
	}
	if _, err = c.link.Write(request); err == nil {
		kind, payload, err = readReply(c.link.r)
	}
	if err != nil {
		c.drop()
	}
	return kind, payload, err
}

func readReply(r *bufio.Reader) (kind byte, payload []byte, err error) {
	kind, size, err := readHeader(r)
	if err != nil {
		return 0, nil, err
	}
	if kind != done && kind != failed || size > rpcbench.MaxBody {
		return 0, nil, fmt.Errorf("rawtcp: the reply is no frame: kind %d, %d bytes", kind, size)
	}
	payload, err = readPayload(r, size)
	return kind, payload, err
}

func (c *conn) open(ctx context.Context) (*link, error) {
	if err := c.closed.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.closed, cancel)()
	bare, err := c.config.DialContext(ctx, "tcp", c.config.Addr)
	if err != nil {
		return nil, err
	}
	l := &link{Conn: bare}
	if c.config.TLS != nil {
		secure := tls.Client(bare, c.config.TLS)
		l.Conn, err = secure, secure.HandshakeContext(ctx)
	}
	if err == nil {
		_, err = io.WriteString(l, preface)
	}
	if err != nil {
		_ = bare.Close()
		return nil, err
	}
	l.r = bufio.NewReader(l.Conn)
	forget := context.AfterFunc(c.closed, func() { _ = bare.Close() })
	l.cut = func() {
		forget()
		_ = bare.Close()
	}
	return l, nil
}

// drop is for whose turn it is.
func (c *conn) drop() {
	if c.link != nil {
		c.link.cut()
		c.link = nil
	}
}
