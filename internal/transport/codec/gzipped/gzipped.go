// Package gzipped adds gzip to another codec, with compress/gzip at its default level. Compressors are pooled, as in
// every gzip middleware: making one takes longer than compressing most bodies.
package gzipped

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"sync"

	"github.com/rpcbench/rpcbench/internal/transport/codec"
)

// Codec compresses the bodies of another codec. Many goroutines may use one Codec.
type Codec struct {
	codec.Codec      // with the same ContentType: HTTP names the compression in another header
	limit            int64
	writers, readers sync.Pool
}

// New returns a Codec that compresses the bodies of c, and decompresses at most limit bytes.
func New(c codec.Codec, limit int64) *Codec {
	z := &Codec{Codec: c, limit: limit}
	z.writers.New = func() any { return gzip.NewWriter(nil) }
	z.readers.New = func() any { return new(gzip.Reader) }
	return z
}

func (c *Codec) Marshal(v any) ([]byte, error) {
	data, err := c.Codec.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := c.writers.Get().(*gzip.Writer)
	defer c.writers.Put(w)
	w.Reset(&out)
	_, err = w.Write(data)
	err = cmp.Or(err, w.Close())
	return out.Bytes(), err
}

func (c *Codec) Unmarshal(data []byte, v any) error { return c.Decode(bytes.NewReader(data), v) }

// Decode decompresses and decodes all of r. The error is ErrTooLarge if the content exceeds the limit.
func (c *Codec) Decode(r io.Reader, v any) error {
	z := c.readers.Get().(*gzip.Reader)
	defer c.readers.Put(z)
	if err := z.Reset(r); err != nil {
		return err
	}
	content, err := io.ReadAll(io.LimitReader(z, c.limit+1))
	if int64(len(content)) > c.limit {
		return ErrTooLarge
	}
	if err != nil {
		return err
	}
	return c.Codec.Unmarshal(content, v)
}

// ErrTooLarge says that a body exceeds the limit of New.
var ErrTooLarge = errors.New("gzipped: larger than allowed after decompression")
