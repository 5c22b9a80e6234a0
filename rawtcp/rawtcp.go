// Package rawtcp serves and calls the create-user API with length-prefixed protobuf frames on a TCP connection and no
// framework: the floor of the line-up. What another protobuf stack takes longer, its protocol and its library take.
//
// A client begins a connection with a line, the preface. Then it sends a frame and reads the reply's frame, in turns. A
// frame is 4 bytes with the length of its payload, big-endian, a byte with its kind, and the payload, a generated type.
package rawtcp

import (
	"bufio"
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

// atOnce has room for every valid request. Who announces more gets more as it comes.
const atOnce = rpcbench.MaxAvatar + 4096

func readPayload(r *bufio.Reader, size int64) ([]byte, error) {
	p := make([]byte, min(size, atOnce))
	for read := 0; ; {
		if _, err := io.ReadFull(r, p[read:]); err != nil {
			return nil, err
		}
		if read = len(p); int64(read) == size {
			return p, nil
		}
		p = append(p, make([]byte, min(size-int64(read), int64(read)))...)
	}
}

func decode(payload []byte, m proto.Message) error {
	if err := proto.Unmarshal(payload, m); err != nil {
		return &rpcbench.Error{Code: rpcbench.Malformed, Message: err.Error()}
	}
	return nil
}

type server struct {
	create func(context.Context, *userv1.User) (*userv1.CreateUserResponse, error)
}

// serve answers the requests of one connection, until it ends, is idle for too long, or carries what is no request. Its
// deadlines are timers of the runtime and no system calls.
func (s server) serve(conn net.Conn) {
	r := bufio.NewReader(conn)
	due := func(limit time.Duration) { _ = conn.SetReadDeadline(time.Now().Add(limit)) }
	due(rpcbench.HeaderTimeout) // the first read shakes hands
	if line, err := r.Peek(len(preface)); err != nil {
		return
	} else if string(line) != preface {
		refuse(conn, fmt.Sprintf("a connection begins with %q, not with %q", preface, line))
		return
	}
	_, _ = r.Discard(len(preface))
	for {
		if r.Buffered() == 0 {
			due(rpcbench.IdleTimeout)
			if _, err := r.Peek(1); err != nil {
				return
			}
		}
		if r.Buffered() < headerSize {
			due(rpcbench.HeaderTimeout)
		}
		kind, size, err := readHeader(r)
		if err != nil {
			return
		}
		if kind != createUser && kind != echo {
			refuse(conn, fmt.Sprintf("no request is of kind %d", kind))
			return
		}
		if int64(r.Buffered()) < size {
			_ = conn.SetReadDeadline(time.Time{}) // a payload may take its time
		}
		reply, err := s.answer(r, kind, size)
		if e, ok := errors.AsType[*rpcbench.Error](err); ok {
			reply, err = frame(failed, pbnative.API().FromError(e))
		}
		if err == nil {
			_, err = conn.Write(reply)
		}
		if err != nil {
			return
		}
	}
}

// refuse answers a peer that may speak another protocol.
func refuse(conn net.Conn, why string) {
	if reply, err := frame(failed, &userv1.Error{Code: string(rpcbench.Malformed), Message: "rawtcp: " + why}); err == nil {
		_, _ = conn.Write(reply)
	}
}

// answer returns the reply's frame. An error that is no *rpcbench.Error is the connection's.
func (s server) answer(r *bufio.Reader, kind byte, size int64) ([]byte, error) {
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
		if err := decode(payload, f); err != nil {
			return nil, err
		}
		return frame(done, f)
	}
	u := new(userv1.User)
	if err := decode(payload, u); err != nil {
		return nil, err
	}
	reply, err := s.create(context.Background(), u)
	if err != nil {
		return nil, err
	}
	return frame(done, reply)
}

func dial(config rpcbench.ClientConfig) (rpcbench.Client, error) {
	closed, cancel := context.WithCancel(context.Background())
	closers := []func() error{func() error { cancel(); return nil }}
	var conns []*conn
	for range config.Conns {
		c := &conn{config: config, closed: closed, turn: make(chan struct{}, 1)}
		conns, closers = append(conns, c), append(closers, c.close)
	}
	return native.NewClient(pbnative.API(), conns, closers...), nil
}

// conn calls over one connection. The first call opens it, and so does the call after one that failed half way: what is
// left on the connection then may be the reply to that.
type conn struct {
	config rpcbench.ClientConfig
	closed context.Context
	turn   chan struct{} // a lock that a call need not wait for longer than its context: full while a call has it
	link   *link         // nil while there is none
}

type link struct {
	net.Conn               // above TLS
	r        *bufio.Reader // of it
	cut      func() error  // closes it at once, whatever it waits for
	forget   func() bool   // ends the wait for the client's Close
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
	if _, ok := errors.AsType[*rpcbench.Error](err); ok {
		return err
	}
	if err != nil {
		if ctx.Err() == nil && c.closed.Err() != nil {
			err = net.ErrClosed // and not the cancelling of a dial
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

func (c *conn) exchange(ctx context.Context, request []byte) (kind byte, reply []byte, err error) {
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
		if err := c.open(ctx); err != nil {
			return 0, nil, err
		}
	}
	if ctx.Done() != nil { // else nothing of this costs anything
		cut := c.link.cut
		stop := context.AfterFunc(ctx, func() { _ = cut() })
		defer func() {
			if !stop() {
				c.drop()
			}
		}()
	}
	if _, err = c.link.Write(request); err == nil {
		kind, reply, err = readReply(c.link.r)
	}
	if err != nil {
		c.drop()
	}
	return kind, reply, err
}

func readReply(r *bufio.Reader) (kind byte, payload []byte, err error) {
	kind, size, err := readHeader(r)
	if err != nil {
		return 0, nil, err
	}
	if kind != done && kind != failed || size > rpcbench.MaxBody {
		return 0, nil, &rpcbench.Error{Code: rpcbench.Malformed, Message: fmt.Sprintf("rawtcp: no reply is of kind %d and %d bytes", kind, size)}
	}
	payload, err = readPayload(r, size)
	return kind, payload, err
}

func (c *conn) open(ctx context.Context) error {
	if c.closed.Err() != nil {
		return net.ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.closed, cancel)()
	bare, err := c.config.DialContext(ctx, "tcp", c.config.Addr)
	if err != nil {
		return err
	}
	l := &link{Conn: bare, cut: bare.Close}
	if c.config.TLS != nil {
		secure := tls.Client(bare, c.config.TLS)
		l.Conn, err = secure, secure.HandshakeContext(ctx)
	}
	if err == nil {
		_, err = io.WriteString(l, preface)
	}
	if err != nil {
		_ = bare.Close()
		return err
	}
	l.r = bufio.NewReader(l.Conn)
	l.forget = context.AfterFunc(c.closed, func() { _ = bare.Close() })
	c.link = l
	return nil
}

// drop is for whose turn it is.
func (c *conn) drop() {
	if c.link != nil {
		c.link.forget()
		_ = c.link.cut()
		c.link = nil
	}
}

// close comes after closed has ended the call under way.
func (c *conn) close() error {
	c.turn <- struct{}{}
	c.drop()
	<-c.turn
	return nil
}
