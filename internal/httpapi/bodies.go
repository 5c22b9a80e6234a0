package httpapi

import (
	"io"
	"net/http"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/codec/gzipped"
)

// bodies turns values into bodies and back, for server and client alike.
type bodies struct {
	codec  codec.Codec
	stream codec.Stream   // nil: whole bodies
	gzip   *gzipped.Pools // nil: identity
	pooled *buffers       // nil: a new one for each body
}

func newBodies(c codec.Codec, options Options, pooled bool) *bodies {
	b := &bodies{codec: c}
	b.stream, _ = c.(codec.Stream)
	if options.Gzip {
		b.gzip = new(gzipped.Pools)
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
	return b.gzip.Compress(data)
}

func (b *bodies) decode(body io.Reader, header http.Header, v any) error {
	if b.stream != nil {
		return b.stream.Decode(body, v)
	}
	if b.gzip != nil && header.Get("Content-Encoding") == "gzip" {
		data, err := b.gzip.Decompress(body, rpcbench.MaxBody)
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
