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
)

// Tuning is what a tuned stack does otherwise, switch by switch, so that a benchmark can leave one out. It is for whole
// bodies in identity, over HTTP/1.1.
type Tuning struct {
	RoundTrip      bool // calls the Transport and not the Client above it, which is for redirects and cookies
	Templates      bool // a request is a shallow copy of one made before, with its URL and header
	ClientBuffers  bool // replies are read into pooled buffers
	HandlerBuffers bool // requests are read into pooled buffers
}

// Tuned is all of it.
func Tuned() Tuning {
	return Tuning{RoundTrip: true, Templates: true, ClientBuffers: true, HandlerBuffers: true}
}

// templates are requests without body, by URL. Calls share their URL and header, which a RoundTripper must not modify.
type templates map[string]*http.Request

// newTemplates returns nil when a URL is none: each call then makes its request itself, and reports that.
func newTemplates(contentType string, headers *rpcbench.Headers, urls ...string) templates {
	t := templates{}
	for _, url := range urls {
		r, err := http.NewRequest(http.MethodPost, url, nil)
		if err != nil {
			return nil
		}
		r.Header.Set("Content-Type", contentType)
		if headers != nil {
			r.Header.Set("User-Agent", headers.UserAgent)
			r.Header.Set("Authorization", headers.Authorization)
		}
		t[url] = r
	}
	return t
}

// request gives a copy of the template a body, as http.NewRequestWithContext does: it can be sent again over another
// connection when the server has closed this one.
func (t templates) request(ctx context.Context, url string, body *bytes.Reader, headers *rpcbench.Headers) *http.Request {
	r := t[url].WithContext(ctx)
	if headers != nil {
		r.Header = maps.Clone(r.Header) // and not its values
		r.Header.Set("Traceparent", headers.Traceparent())
	}
	r.ContentLength = int64(body.Len())
	r.Body = io.NopCloser(body)
	unread := *body
	r.GetBody = func() (io.ReadCloser, error) {
		again := unread
		return io.NopCloser(&again), nil
	}
	return r
}

// buffers are those that bodies are read into.
type buffers struct{ pool sync.Pool }

// maxKept is how large a buffer may have grown and be kept: rare large bodies would fill the pool with their size.
const maxKept = 64 << 10

// decode reads all of body. The codec must copy what it keeps.
func (b *buffers) decode(c codec.Codec, body io.Reader, v any) error {
	buf, ok := b.pool.Get().(*bytes.Buffer)
	if !ok {
		buf = new(bytes.Buffer)
	}
	defer func() {
		if buf.Cap() <= maxKept {
			buf.Reset()
			b.pool.Put(buf)
		}
	}()
	if _, err := buf.ReadFrom(body); err != nil {
		return err
	}
	return c.Unmarshal(buf.Bytes(), v)
}
