package httpapi

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"sync"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
)

// bodies turns values into bodies and back, for server and client alike.
type bodies struct {
	codec  codec.Codec
	stream codec.Stream // nil: whole bodies
	gzip   *gzipPools   // nil: identity
	pooled *buffers     // nil: a new one for each body
}

func newBodies(c codec.Codec, options Options, pooled bool) *bodies {
	b := &bodies{codec: c}
	b.stream, _ = c.(codec.Stream)
	if options.Gzip {
		b.gzip = new(gzipPools)
	}
	if pooled {
		b.pooled = new(buffers)
	}
	return b
}

func (b *bodies) marshal(v any) ([]byte, error) {
	data, err := b.codec.Marshal(v)
	if err != nil || b.gzip == nil {
		return data, err
	}
	return b.gzip.compress(data)
}

func (b *bodies) decode(body io.Reader, header http.Header, v any) error {
	if b.stream != nil {
		return b.stream.Decode(body, v)
	}
	if b.gzip != nil && header.Get("Content-Encoding") == "gzip" {
		data, err := b.gzip.decompress(body)
		if err != nil {
			return err
		}
		return b.codec.Unmarshal(data, v)
	}
	if b.pooled != nil {
		return b.pooled.decode(b.codec, body, v)
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	return b.codec.Unmarshal(data, v)
}

func (b *bodies) setEncoding(h http.Header) {
	if b.gzip != nil {
		h.Set("Content-Encoding", "gzip")
	}
}

// gzipPools keep compressors: making one costs more than most bodies, and every gzip middleware pools them.
type gzipPools struct{ writers, readers sync.Pool }

func (g *gzipPools) compress(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, ok := g.writers.Get().(*gzip.Writer)
	if !ok {
		w = gzip.NewWriter(nil)
	}
	defer g.writers.Put(w)
	w.Reset(&out)
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func (g *gzipPools) decompress(body io.Reader) ([]byte, error) {
	r, ok := g.readers.Get().(*gzip.Reader)
	if !ok {
		r = new(gzip.Reader)
	}
	defer g.readers.Put(r)
	if err := r.Reset(body); err != nil {
		return nil, err
	}
	return io.ReadAll(&limitReader{r, rpcbench.MaxBody})
}
