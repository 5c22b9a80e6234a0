// Package gzipped compresses what other codecs encode, with compress/gzip at its default level, pooled.
package gzipped

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"sync"

	"github.com/rpcbench/rpcbench/codec"
)

// Codec is another codec, compressed.
type Codec struct {
	inner codec.Codec
	limit int64
	pools Pools
}

// New compresses what c encodes, and decompresses at most limit bytes.
func New(c codec.Codec, limit int64) *Codec { return &Codec{inner: c, limit: limit} }

// ContentType is that of the content: HTTP names the compression elsewhere.
func (c *Codec) ContentType() string { return c.inner.ContentType() }

func (c *Codec) Marshal(v any) ([]byte, error) {
	data, err := c.inner.Marshal(v)
	if err != nil {
		return nil, err
	}
	return c.pools.Compress(data)
}

func (c *Codec) Unmarshal(data []byte, v any) error {
	content, err := c.pools.Decompress(bytes.NewReader(data), c.limit)
	if err != nil {
		return err
	}
	return c.inner.Unmarshal(content, v)
}

func (c *Codec) Traits() codec.Traits {
	t := c.inner.Traits()
	t.Reuses = "compressors"
	return t
}

// Pools keep compressors: making one costs more than most bodies, and every gzip middleware pools them. The zero value
// is ready for use by many goroutines.
type Pools struct{ writers, readers sync.Pool }

// Compress returns data in the gzip format.
func (p *Pools) Compress(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, ok := p.writers.Get().(*gzip.Writer)
	if !ok {
		w = gzip.NewWriter(nil)
	}
	defer p.writers.Put(w)
	w.Reset(&out)
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Decompress reads all of r. Its error is ErrTooLarge where the content has more than limit bytes.
func (p *Pools) Decompress(r io.Reader, limit int64) ([]byte, error) {
	z, ok := p.readers.Get().(*gzip.Reader)
	if !ok {
		z = new(gzip.Reader)
	}
	defer p.readers.Put(z)
	if err := z.Reset(r); err != nil {
		return nil, err
	}
	return io.ReadAll(&limitReader{z, limit})
}

// ErrTooLarge is the error of a content beyond the limit.
var ErrTooLarge = errors.New("gzipped: larger than allowed after decompression")

// limitReader is io.LimitReader with an error of its own for what goes beyond.
type limitReader struct {
	io.Reader
	left int64
}

func (l *limitReader) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, ErrTooLarge
	}
	return n, err
}
