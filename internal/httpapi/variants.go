package httpapi

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"sync"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/codec/gzipped"
)

func serverBodies(c codec.Codec, options Options) bodies {
	s, isStream := c.(codec.Streaming)
	switch {
	case options.Gzip:
		z := gzipped.New(c, rpcbench.MaxBody)
		return compressed{whole{z}, z, whole{c}}
	case options.Tuned:
		return &pooled{whole: whole{c}}
	case isStream:
		return streamed{s}
	}
	return whole{c}
}

func clientBodies(c codec.Codec, options Options) bodies {
	b := serverBodies(c, options)
	if s, ok := b.(streamed); ok {
		return drained{s}
	}
	return b
}

// compressed is bodies in gzip. Of others' it also reads those without.
type compressed struct {
	whole
	gzip     *gzipped.Codec
	identity whole
}

func (b compressed) decode(header http.Header, body io.Reader, v any) error {
	if header.Get("Content-Encoding") != "gzip" {
		return b.identity.decode(header, body, v)
	}
	return b.gzip.Decode(body, v)
}

func (b compressed) reply(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Encoding", "gzip")
	return b.whole.reply(w, status, v)
}

// streamed encodes into the reply and decodes from the request.
type streamed struct{ codec.Streaming }

func (b streamed) encode(v any) (io.Reader, error) {
	buf := new(bytes.Buffer)
	return buf, b.Encode(buf, v)
}

func (b streamed) decode(_ http.Header, body io.Reader, v any) error { return b.Decode(body, v) }

func (b streamed) reply(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", b.ContentType())
	w.WriteHeader(status)
	_ = b.Encode(w, v) // the status is sent: all that is left is a broken reply, which the client refuses
	return nil
}

// drained reads to the end of the body, or the connection could not be used again.
type drained struct{ streamed }

func (b drained) decode(header http.Header, body io.Reader, v any) error {
	if err := b.streamed.decode(header, body, v); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, body)
	return err
}

// pooled reads bodies into buffers that it keeps. The codec must copy what it needs of them.
type pooled struct {
	whole
	buffers sync.Pool
}

// maxKept is how large a buffer may have grown and be kept: rare large bodies would fill the pool with their size.
const maxKept = 64 << 10

func (b *pooled) decode(_ http.Header, body io.Reader, v any) error {
	buf, ok := b.buffers.Get().(*bytes.Buffer)
	if !ok {
		buf = new(bytes.Buffer)
	}
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

// tuned is a caller that calls the Transport, without the Client above it, which is for redirects and cookies. A request is
// a copy of one made before; copies share the URL and the header, which a RoundTripper must not modify.
type tuned[E any] struct {
	*caller[E]
	requests map[string]*http.Request // without body, by URL; a URL that is invalid has none
}

func newTuned[E any](c *caller[E], urls ...string) *tuned[E] {
	t := &tuned[E]{c, map[string]*http.Request{}}
	for _, url := range urls {
		if r, err := http.NewRequest(http.MethodPost, url, nil); err == nil {
			for _, h := range c.header {
				r.Header.Set(h[0], h[1])
			}
			t.requests[url] = r
		}
	}
	return t
}

func (t *tuned[E]) call(ctx context.Context, url string, request, reply any) error {
	made := t.requests[url]
	if made == nil {
		return t.caller.call(ctx, url, request, reply) // and what it says of the URL
	}
	data, err := t.encode(request)
	if err != nil {
		return &rpcbench.Error{Code: rpcbench.Malformed, Err: err}
	}
	body := data.(*bytes.Reader)
	r := made.WithContext(ctx)
	if t.headers != nil {
		r.Header = maps.Clone(r.Header) // and not its values
		r.Header.Set("Traceparent", t.headers.Traceparent())
	}
	// As http.NewRequestWithContext does: the body can be sent again when the server has closed this connection.
	r.ContentLength, r.Body = int64(body.Len()), io.NopCloser(body)
	unread := *body
	r.GetBody = func() (io.ReadCloser, error) {
		again := unread
		return io.NopCloser(&again), nil
	}
	resp, err := t.http.Transport.RoundTrip(r)
	if err != nil {
		return rpcbench.CallError(ctx, err)
	}
	return t.receive(ctx, resp, reply)
}
