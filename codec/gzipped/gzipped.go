// Package gzipped compresses what other codecs encode, with compress/gzip at its default level. Compressors are pooled, as
// every gzip middleware does it: making one costs more than most bodies.
package gzipped

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"sync"

	"github.com/rpcbench/rpcbench/codec"
)

// Codec is another codec, compressed. Many goroutines may use it.
type Codec struct {
	codec.Codec      // the content's type: HTTP names the compression elsewhere
	limit            int64
	writers, readers sync.Pool
}

// New compresses what c encodes, and decompresses at most limit bytes.
func New(c codec.Codec, limit int64) *Codec {
	return &Codec{c, limit, sync.Pool{New: func() any { return gzip.NewWriter(nil) }}, sync.Pool{New: func() any { return new(gzip.Reader) }}}
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
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func (c *Codec) Unmarshal(data []byte, v any) error { return c.Decode(bytes.NewReader(data), v) }

// Decode reads all of r. Its error is ErrTooLarge where the content has more than the limit.
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

// ErrTooLarge is the error of a content beyond the limit.
var ErrTooLarge = errors.New("gzipped: larger than allowed after decompression")

func (c *Codec) Traits() codec.Traits {
	t := c.Codec.Traits()
	t.Reuses = "compressors"
	return t
}
