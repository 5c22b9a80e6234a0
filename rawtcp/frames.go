package rawtcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/binding/pb"
	"github.com/rpcbench/rpcbench/message/messagepb"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

const headerSize = 5

// Kinds of frames.
const (
	createUser byte = '\n' // userv1.User; an HTTP server called by mistake sees a line, and refuses it at once
	echo       byte = 1    // messagepb.Flex
	done       byte = 2    // the reply: userv1.CreateUserResponse or messagepb.Flex
	failed     byte = 3    // userv1.Error in its place
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

// readPayload gives a frame that is longer than any valid one its memory as the bytes arrive, not at the word of its length.
func readPayload(r *bufio.Reader, size int64) ([]byte, error) {
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

// malformed makes a message of err, since that is what a reply carries.
func malformed(err error) error {
	return &rpcbench.Error{Code: rpcbench.Malformed, Message: err.Error()}
}

type server struct {
	create       func(context.Context, *userv1.User) (*userv1.CreateUserResponse, error)
	idle, header time.Duration
}

func newServer(config rpcbench.ServerConfig) server {
	idle, header := config.Limits()
	return server{pb.API().NewService(), idle, header}
}

// serve answers one connection's requests until it ends, is idle for too long, or carries what is no request. Its
// deadlines are timers of the runtime, not system calls.
func (s server) serve(conn net.Conn) {
	r := bufio.NewReader(conn)
	due := func(limit time.Duration) { _ = conn.SetReadDeadline(time.Now().Add(limit)) }
	due(s.header) // of the first header; with TLS the handshake is part of reading it
	for {
		kind, size, err := readHeader(r, createUser, echo)
		if err != nil {
			_ = respond(conn, nil, err)
			return
		}
		if int64(r.Buffered()) < size {
			_ = conn.SetReadDeadline(time.Time{}) // no limit bounds a whole call
		}
		reply, err := s.answer(r, kind, size)
		if err := respond(conn, reply, err); err != nil {
			return
		}
		if r.Buffered() == 0 {
			due(s.idle)
			if _, err := r.Peek(1); err != nil {
				return
			}
		}
		if r.Buffered() < headerSize {
			due(s.header)
		}
	}
}

// answer reads the payload. An error that is no *rpcbench.Error is the connection's.
func (s server) answer(r *bufio.Reader, kind byte, size int64) (proto.Message, error) {
	if size > rpcbench.MaxBody {
		if _, err := r.Discard(int(size)); err != nil {
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

// respond sends the reply, or the call's error in its place. It returns an error of the connection.
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
