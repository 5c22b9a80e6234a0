package stacktest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"runtime"
	"testing"

	"github.com/rpcbench/rpcbench/codec"
)

// BenchmarkMarshal times how c encodes v. Beside ns/op, B/op and allocs/op it reports
//
//	size-B   length of the encoded body
//	gzip-B   its length after gzip at the default level, which is not timed
//
// Unless it is nil, call is timed instead of c, and has to make the same bodies: the library's documented call on v, which on a
// small message is faster without the interface. Its argument is the dst of codec.Appender if c is one, else nil.
//
// The body is a new one for each op, unless c is a codec.Stream, which writes into one bytes.Buffer, or else a
// codec.Appender, which appends to one slice: these show what is left when the caller keeps the buffer. An op whose body is of
// another length ends the benchmark; that the last one is equal to the first is seen after the loop.
func BenchmarkMarshal(b *testing.B, c codec.Codec, v any, call func(dst []byte) ([]byte, error)) {
	b.Helper()
	want := encode(b, c, v)
	_, appends := c.(codec.Appender)
	warmCodec(b, func() (err error) {
		switch {
		case call == nil:
			_, err = encoded(c, v)
		case appends:
			_, err = call(make([]byte, 0, len(want)))
		default:
			_, err = call(nil)
		}
		return err
	})
	var (
		buf  bytes.Buffer
		data []byte
		err  error
		n    int
	)
	buf.Grow(len(want) + bytes.MinRead)
	runtime.GC() // what warming left is not the loop's
	b.ReportAllocs()
	switch c := timed(c, call != nil).(type) {
	case nil:
		data = buf.AvailableBuffer()
		for b.Loop() {
			if !appends {
				data = nil
			}
			if data, err = call(data[:0]); err != nil || len(data) != len(want) {
				break
			}
			n++
		}
	case codec.Stream:
		for b.Loop() {
			buf.Reset()
			if err = c.Encode(&buf, v); err != nil || buf.Len() != len(want) {
				break
			}
			n++
		}
		data = buf.Bytes()
	case codec.Appender:
		data = buf.AvailableBuffer()
		for b.Loop() {
			if data, err = c.Append(data[:0], v); err != nil || len(data) != len(want) {
				break
			}
			n++
		}
	default:
		for b.Loop() {
			if data, err = c.Marshal(v); err != nil || len(data) != len(want) {
				break
			}
			n++
		}
	}
	switch {
	case err != nil:
		b.Fatalf("rpcbench: %s: op %d: %v", b.Name(), n, err)
	case !bytes.Equal(data, want):
		b.Fatalf("rpcbench: %s: op %d: the body of %d bytes is not the first one, of %d", b.Name(), n, len(data), len(want))
	}
	reportSizes(b, want)
}

// BenchmarkUnmarshal times how c decodes the body that it encodes v to, each time into what fresh returns, which a
// codec.Releaser is given back within the op; or, unless it is nil, how call decodes that body into a fresh value, which it
// returns. It reports what BenchmarkMarshal does. After the loop the last value that call
// returned, or else one that c decodes, must encode to the body again: a codec that skips fields, or adds them to what an earlier op left, fails.
func BenchmarkUnmarshal(b *testing.B, c codec.Codec, v any, fresh func() any, call func(data []byte) (any, error)) {
	b.Helper()
	data := encode(b, c, v)
	releaser, _ := c.(codec.Releaser)
	op := func() error { // for warming only: in the loops its call would be billed
		if call != nil {
			_, err := call(data)
			return err
		}
		back := fresh()
		err := decode(c, data, back)
		if releaser != nil {
			releaser.Release(back)
		}
		return err
	}
	warmCodec(b, op)
	runtime.GC()
	b.ReportAllocs()
	var (
		reader bytes.Reader
		back   any
		err    error
		n      int
	)
	switch c := timed(c, call != nil).(type) {
	case nil:
		for b.Loop() {
			if back, err = call(data); err != nil {
				break
			}
			n++
		}
	case codec.Stream:
		for b.Loop() {
			reader.Reset(data)
			if err = c.Decode(&reader, fresh()); err != nil {
				break
			}
			n++
		}
	case codec.Releaser:
		for b.Loop() {
			back := fresh()
			if err = c.Unmarshal(data, back); err != nil {
				break
			}
			c.Release(back)
			n++
		}
	default:
		for b.Loop() {
			if err = c.Unmarshal(data, fresh()); err != nil {
				break
			}
			n++
		}
	}
	if err != nil {
		b.Fatalf("rpcbench: %s: op %d: %v", b.Name(), n, err)
	}
	if call == nil {
		back = fresh()
		if err := decode(c, data, back); err != nil {
			b.Fatalf("rpcbench: %s: after the loop: %v", b.Name(), err)
		}
	}
	if again := encode(b, c, back); !bytes.Equal(again, data) {
		b.Fatalf("rpcbench: %s: what was decoded encodes to %d other bytes than the %d it came from", b.Name(), len(again), len(data))
	}
	reportSizes(b, data)
}

// timed is c, or nil if a call is.
func timed(c codec.Codec, call bool) codec.Codec {
	if call {
		return nil
	}
	return c
}

// codecWarmUps are ops before anything is measured: libraries build tables of a type at its first use, and fill pools.
const codecWarmUps = 16

func warmCodec(b *testing.B, op func() error) {
	b.Helper()
	for range codecWarmUps {
		if err := op(); err != nil {
			b.Fatalf("rpcbench: %s: warm-up: %v", b.Name(), err)
		}
	}
}

func encode(b *testing.B, c codec.Codec, v any) []byte {
	b.Helper()
	data, err := encoded(c, v)
	if err != nil {
		b.Fatalf("rpcbench: %s: %v", b.Name(), err)
	}
	return data
}

// encoded is a body of v, by the way of c's that is timed.
func encoded(c codec.Codec, v any) ([]byte, error) {
	switch c := c.(type) {
	case codec.Stream:
		var buf bytes.Buffer
		err := c.Encode(&buf, v)
		return buf.Bytes(), err
	case codec.Appender:
		return c.Append(nil, v)
	}
	return c.Marshal(v)
}

func decode(c codec.Codec, data []byte, v any) error {
	if c, ok := c.(codec.Stream); ok {
		return c.Decode(bytes.NewReader(data), v)
	}
	return c.Unmarshal(data, v)
}

func reportSizes(b *testing.B, data []byte) {
	b.Helper()
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(data); err != nil {
		b.Fatal(fmt.Errorf("rpcbench: %s: %w", b.Name(), err))
	}
	if err := w.Close(); err != nil {
		b.Fatal(fmt.Errorf("rpcbench: %s: %w", b.Name(), err))
	}
	b.ReportMetric(float64(len(data)), "size-B")
	b.ReportMetric(float64(zipped.Len()), "gzip-B")
}
