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
// Unless it is nil, loop is timed instead: it makes n ops, until one fails, and returns the last body, which has to be the one that c
// makes, and the length of all bodies together, since none may be longer or shorter than that. A loop of the library's documented
// call, on types that the compiler knows, has nothing between itself and the library; through c a small message takes a few
// nanoseconds more.
//
// With nil the body is a new one for each op, unless c is a codec.Stream, which writes into one bytes.Buffer, or else a
// codec.Appender, which appends to one slice: these show what is left when the caller keeps the buffer.
func BenchmarkMarshal(b *testing.B, c codec.Codec, v any, loop func(n int) (body []byte, total int, err error)) {
	b.Helper()
	Procs(b)
	want := encode(b, c, v)
	if loop == nil {
		loop = marshalLoop(c, v)
	}
	got, _, err := loop(codecWarmUps)
	total := 0
	if err == nil {
		runtime.GC() // what warming left is not the loop's
		b.ReportAllocs()
		b.ResetTimer()
		got, total, err = loop(b.N)
		b.StopTimer()
	}
	switch {
	case err != nil:
		b.Fatalf("rpcbench: %s: %v", b.Name(), err)
	case !bytes.Equal(got, want):
		b.Fatalf("rpcbench: %s: the last body, of %d bytes, is not the first one, of %d", b.Name(), len(got), len(want))
	}
	requireLengths(b, b.N, total, len(want))
	reportSizes(b, want)
}

// requireLengths finds a body in the middle that is longer or shorter than the others, and the loop that makes more or fewer than n of
// them; of a body without bytes it can't.
func requireLengths(b *testing.B, n, total, each int) {
	b.Helper()
	if total != n*each {
		b.Fatalf("rpcbench: %s: %d bodies of %d bytes in all, not of %d each", b.Name(), n, total, each)
	}
}

func marshalLoop(c codec.Codec, v any) func(n int) ([]byte, int, error) {
	var buf bytes.Buffer
	var kept []byte
	return func(n int) (data []byte, total int, err error) {
		switch c := c.(type) {
		case codec.Stream:
			for i := 0; i < n && err == nil; i++ {
				buf.Reset()
				err = c.Encode(&buf, v)
				total += buf.Len()
			}
			data = buf.Bytes()
		case codec.Appender:
			for i := 0; i < n && err == nil; i++ {
				kept, err = c.Append(kept[:0], v)
				total += len(kept)
			}
			data = kept
		default:
			for i := 0; i < n && err == nil; i++ {
				data, err = c.Marshal(v)
				total += len(data)
			}
		}
		return data, total, err
	}
}

// BenchmarkUnmarshal times how c decodes the body that it encodes v to, each time into what fresh returns, which a
// codec.Releaser is given back; or, unless it is nil, loop, which decodes data n times and returns the last value. It reports what
// BenchmarkMarshal does. The last value must encode to the body again: a codec that skips fields, or adds them to what an earlier
// op left, fails.
func BenchmarkUnmarshal(b *testing.B, c codec.Codec, v any, fresh func() any, loop func(data []byte, n int) (value any, err error)) {
	b.Helper()
	Procs(b)
	data := encode(b, c, v)
	if loop == nil {
		loop = unmarshalLoop(c, fresh)
	}
	back, err := loop(data, codecWarmUps)
	if err == nil {
		releaser, _ := c.(codec.Releaser)
		if releaser != nil {
			releaser.Release(back)
		}
		runtime.GC()
		b.ReportAllocs()
		b.ResetTimer()
		back, err = loop(data, b.N)
		b.StopTimer()
	}
	if err != nil {
		b.Fatalf("rpcbench: %s: %v", b.Name(), err)
	}
	if again := encode(b, c, back); !bytes.Equal(again, data) {
		b.Fatalf("rpcbench: %s: what was decoded encodes to %d other bytes than the %d it came from", b.Name(), len(again), len(data))
	}
	reportSizes(b, data)
}

func unmarshalLoop(c codec.Codec, fresh func() any) func(data []byte, n int) (any, error) {
	var reader bytes.Reader
	return func(data []byte, n int) (back any, err error) {
		stream, _ := c.(codec.Stream)
		releaser, _ := c.(codec.Releaser)
		for i := 0; i < n && err == nil; i++ {
			if releaser != nil && back != nil {
				releaser.Release(back)
			}
			back = fresh()
			if stream != nil {
				reader.Reset(data)
				err = stream.Decode(&reader, back)
			} else {
				err = c.Unmarshal(data, back)
			}
		}
		return back, err
	}
}

// codecWarmUps are ops before anything is measured: libraries build tables of a type at its first use, and fill pools.
const codecWarmUps = 16

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
