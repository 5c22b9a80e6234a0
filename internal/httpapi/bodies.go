package httpapi

import (
	"bytes"
	"io"
	"net/http"
	"sync"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/codec/gzipped"
)

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

// compressed is bodies in gzip. Of others' it also reads those without.
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

// streamed encodes into the reply and decodes from the request. A client drains the reply, or the connection could not be
// used again.
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
