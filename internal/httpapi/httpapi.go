// Package httpapi is the one net/http handler and client that the HTTP stacks share. They differ by a codec, the native
// types it carries, and Options. Without options both sides are written as net/http's documentation shows them: whole
// bodies, no pools, no buffers kept. A call goes from caller.call in client.go to handler.ServeHTTP in server.go and
// back. What a variant does otherwise is a type of its own below, or requests.tuned. NewServer and HTTPClients are for
// every stack over net/http.
package httpapi

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"sync"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/codec/gzipped"
	"github.com/rpcbench/rpcbench/internal/binding"
)

const usersPath, echoPath = "/users", "/echo" // of the operations

// Options are what variants change. The zero value is HTTP/1.1 with keep-alive, in identity.
type Options struct {
	HTTP2 bool // HTTP/2 instead, in clear or over TLS
	Gzip  bool // requests and replies compressed, with pooled writers and readers
	Tuned bool // pooled buffers and a client that calls the Transport; over HTTP/1.1 and in identity
}

// Stack is a stack over net/http, whose traits are the codec's and what options decide.
func Stack[U, R, F, E any](
	name, protocol string, c codec.Codec, api binding.API[U, R, F, E], options Options) rpcbench.Stack {
	t := binding.Traits(c.Traits())
	t.HTTP, t.Server, t.Client = "1.1", []string{"net/http"}, []string{"net/http"}
	if options.HTTP2 {
		t.HTTP, t.Multiplexed = "2", true
		protocol += "/h2"
	}
	if options.Gzip {
		t.Compression = "gzip"
		protocol += "/gzip"
	}
	return rpcbench.Stack{
		Name: name, Protocol: protocol, Traits: t,
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			return newServer(config, c, api, api.NewService(), options), nil
		},
		Dial: func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
			return newClient(config, c, api, options), nil
		},
	}
}

// statuses are of the failures that have one of their own.
var statuses = map[rpcbench.Code]int{
	rpcbench.Invalid:          http.StatusBadRequest,
	rpcbench.Malformed:        http.StatusBadRequest,
	rpcbench.TooLarge:         http.StatusRequestEntityTooLarge,
	rpcbench.DeadlineExceeded: http.StatusGatewayTimeout,
	rpcbench.Unavailable:      http.StatusServiceUnavailable,
}

func status(c rpcbench.Code) int { return cmp.Or(statuses[c], http.StatusInternalServerError) }

// bodies turns values into bodies and back, for server and client alike.
type bodies interface {
	ContentType() string
	encode(v any) (io.Reader, error)                        // a request
	decode(header http.Header, body io.Reader, v any) error // a request or a reply
	reply(w http.ResponseWriter, status int, v any) error   // fails before it writes anything, or not at all
}

// whole is the bodies of the main path: all bytes at once.
type whole struct{ codec.Codec }

func (b whole) encode(v any) (io.Reader, error) {
	data, err := b.Marshal(v)
	return bytes.NewReader(data), err
}

func (b whole) decode(_ http.Header, body io.Reader, v any) error {
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	return b.Unmarshal(data, v)
}

func (b whole) reply(w http.ResponseWriter, status int, v any) error {
	data, err := b.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", b.ContentType())
	w.WriteHeader(status)
	_, _ = w.Write(data) // fails only when the client has gone
	return nil
}

func newBodies(c codec.Codec, options Options, client bool) bodies {
	s, isStream := c.(codec.Streaming)
	switch {
	case options.Gzip:
		z := gzipped.New(c, rpcbench.MaxBody)
		return compressed{whole{z}, z}
	case options.Tuned:
		return &pooled{whole{c}, sync.Pool{New: func() any { return new(bytes.Buffer) }}}
	case isStream:
		return streamed{s, client}
	}
	return whole{c}
}

// compressed is bodies in gzip. Of others' it also reads those without, such as curl's.
type compressed struct {
	whole
	gzip *gzipped.Codec
}

func (b compressed) decode(header http.Header, body io.Reader, v any) error {
	if header.Get("Content-Encoding") != "gzip" {
		return whole{b.gzip.Codec}.decode(header, body, v)
	}
	return b.gzip.Decode(body, v)
}

func (b compressed) reply(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Encoding", "gzip")
	return b.whole.reply(w, status, v)
}

// streamed encodes into the reply and decodes from the request. A client drains the reply, or the connection could not
// be used again.
type streamed struct {
	codec.Streaming
	drain bool
}

func (b streamed) encode(v any) (io.Reader, error) {
	buf := new(bytes.Buffer)
	return buf, b.Encode(buf, v)
}

func (b streamed) decode(_ http.Header, body io.Reader, v any) error {
	err := b.Decode(body, v)
	if err == nil && b.drain {
		_, err = io.Copy(io.Discard, body)
	}
	return err
}

func (b streamed) reply(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", b.ContentType())
	w.WriteHeader(status)
	_ = b.Encode(w, v) // the status is sent: all that is left is a broken reply, which the client refuses
	return nil
}

// pooled reads bodies into buffers that it keeps. The codec must copy what it needs of them.
type pooled struct {
	whole
	buffers sync.Pool
}

// maxKept is how large a buffer may have grown and be kept: rare large bodies would fill the pool with their size.
const maxKept = 64 << 10

func (b *pooled) decode(_ http.Header, body io.Reader, v any) error {
	buf := b.buffers.Get().(*bytes.Buffer)
	defer func() {
		if buf.Cap() <= maxKept {
			buf.Reset()
			b.buffers.Put(buf)
		}
	}()
	if _, err := buf.ReadFrom(body); err != nil {
		return err
	}
	return b.Unmarshal(buf.Bytes(), v)
}
