// Package httpapi has the net/http handler and client that the HTTP stacks share. Stacks differ by their codec, by the
// types that it encodes, and by Options. Without options both sides do what net/http's documentation shows: they read
// whole bodies, and keep no buffers.
//
// A call goes from caller.call in client.go to handler.ServeHTTP in server.go and back. Each variant has a type of its
// own below, or requests.tuned. NewServer and HTTPClients serve every stack over net/http.
package httpapi

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"sync"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
	"github.com/rpcbench/rpcbench/internal/transport/codec/gzipped"
)

const usersPath, echoPath = "/users", "/echo"

// Options are the settings of variants. The zero value is HTTP/1.1 with keep-alive, without compression.
type Options struct {
	HTTP2    bool // use HTTP/2, with or without TLS
	Gzip     bool // compress requests and replies, with pooled writers and readers
	Tuned    bool // pool buffers, and call the Transport directly; neither with HTTP2 nor with Gzip
	Defaults bool // leave connections, HTTP versions and gzip to net/http's defaults; with none of the others

	// Handler and Transport wrap what serves and what sends, unless they are nil.
	Handler   func(http.Handler) http.Handler
	Transport func(http.RoundTripper) http.RoundTripper
}

// Stack makes a stack over net/http. Its traits come from the codec and the options.
func Stack[U, R, F, E any](
	name, protocol string, c codec.Codec, api binding.API[U, R, F, E], options Options) rpcbench.Stack {
	s := bare(name, protocol, c, options)
	s.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		return newServer(config, c, api, api.NewService(config), options), nil
	}
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		return newClient(config, c, api, options), nil
	}
	return s
}

// bare returns a stack that lacks server and client.
func bare(name, protocol string, c codec.Codec, options Options) rpcbench.Stack {
	t := binding.Traits(c.Traits())
	t.HTTP, t.ServerLibraries, t.ClientLibraries = "1.1", []string{"net/http"}, []string{"net/http"}
	if options.HTTP2 {
		t.HTTP, t.Multiplexed = "2", true
		protocol += "/h2"
	}
	if options.Gzip {
		t.Compression = rpcbench.CompressionGzip
		protocol += "/gzip"
	}
	if options.Defaults {
		t.HTTPOverTLS, t.AsksGzip, t.Reconnects = "2", true, true
	}
	return rpcbench.Stack{Name: name, Protocol: protocol, Traits: t}
}

// Of makes a stack over net/http that serves and calls a method of one's own. Failures have the body E. Of the options
// Of knows Defaults.
func Of[Q, A, E any](name, protocol string, f binding.Format, m rpcbench.Method[Q, A],
	fromError func(*rpcbench.Error) *E, toError func(*E) *rpcbench.Error, options Options) rpcbench.Stack {
	c := f.Codec
	s, newCaller := binding.Of(bare(name, protocol, c, options), m, f)
	s.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		serve, err := binding.Serve(config, m)
		mux := http.NewServeMux()
		mux.Handle("POST /"+m.Name, &handler[Q, A, E]{newBodies(c, options, false), serve, fromError})
		return listening(config, mux, options), err
	}
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		var conns []*binding.Conn[Q, A, struct{}]
		for _, o := range open(config, c, options) {
			calls := &caller[Q, A, E]{newBodies(c, options, true), o.to("/" + m.Name), toError}
			conns = append(conns, &binding.Conn[Q, A, struct{}]{Call: calls.call, Failure: binding.AsIs, Close: o.Close})
		}
		return newCaller(conns)
	}
	return s
}

// statuses lists the failures that have an HTTP status of their own.
var statuses = map[rpcbench.Code]int{
	rpcbench.CodeInvalid:          http.StatusBadRequest,
	rpcbench.CodeMalformed:        http.StatusBadRequest,
	rpcbench.CodeTooLarge:         http.StatusRequestEntityTooLarge,
	rpcbench.CodeDeadlineExceeded: http.StatusGatewayTimeout,
	rpcbench.CodeUnavailable:      http.StatusServiceUnavailable,
}

// Status returns the HTTP status of a failure.
func Status(c rpcbench.Code) int { return cmp.Or(statuses[c], http.StatusInternalServerError) }

// bodies turns values into bodies and back, for server and client alike.
type bodies interface {
	ContentType() string
	encode(v any) (io.Reader, error)                        // a request
	decode(header http.Header, body io.Reader, v any) error // a request or a reply
	reply(w http.ResponseWriter, status int, v any) error   // an error means that nothing was written
}

// whole encodes and decodes all bytes of a body at once, as stacks without options do.
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
	_, _ = w.Write(data) // fails only if the client is gone
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

// compressed encodes bodies with gzip. It also reads bodies without gzip, such as curl's.
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

// streamed encodes straight into the reply, and decodes straight from the request. The client reads the reply to its
// end, since the connection could not be used again otherwise.
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
	_ = b.Encode(w, v) // the status is sent already; after an error the client refuses the broken reply
	return nil
}

// pooled reads bodies into pooled buffers. The codec must copy what it keeps of a body.
type pooled struct {
	whole
	buffers sync.Pool
}

// maxKept is the size up to which a buffer returns to the pool. Rare large bodies would make all buffers large.
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
