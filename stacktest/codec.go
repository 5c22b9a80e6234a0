package stacktest

import (
	"bytes"
	"compress/gzip"
	"runtime"
	"testing"

	"github.com/rpcbench/rpcbench/codec"
)

// BenchmarkMarshal times how c encodes v. Beside ns/op, B/op and allocs/op it reports size-B, the length of the encoded
// body, and gzip-B, its length after gzip at the default level. Each body must have as many bytes as the first, and the
// last must be equal to it. The call through the interface is part of an op: a codec that does nothing shows what it
// costs.
func BenchmarkMarshal(b *testing.B, c codec.Codec, v any) {
	b.Helper()
	Procs(b)
	want := encode(b, c, v)
	var last []byte
	var ops, all int // all is the length of all bodies
	timed(b, want, func(n int) (err error) {
		var data []byte
		total := 0
		for i := 0; i < n && err == nil; i++ {
			data, err = c.Marshal(v)
			total += len(data)
		}
		last, all, ops = data, total, n
		return err
	})
	if !bytes.Equal(last, want) {
		b.Fatalf("rpcbench: %s: the last body, of %d bytes, is not the first, of %d", b.Name(), len(last), len(want))
	}
	if all != ops*len(want) { // one in the middle was longer or shorter
		b.Fatalf("rpcbench: %s: %d bodies of %d bytes in all, not of %d each", b.Name(), ops, all, len(want))
	}
}

// BenchmarkUnmarshal times how c decodes the body that it encodes v to, each time into what fresh returns. It reports
// what BenchmarkMarshal does. The last value must encode to the body again: a codec that skips fields, or adds to them,
// fails.
func BenchmarkUnmarshal(b *testing.B, c codec.Codec, v any, fresh func() any) {
	b.Helper()
	Procs(b)
	data := encode(b, c, v)
	var last any
	timed(b, data, func(n int) (err error) {
		var back any
		for i := 0; i < n && err == nil; i++ {
			back = fresh()
			err = c.Unmarshal(data, back)
		}
		last = back
		return err
	})
	if again := encode(b, c, last); !bytes.Equal(again, data) {
		b.Fatalf("rpcbench: %s: what was decoded encodes to %d other bytes than the %d it came from",
			b.Name(), len(again), len(data))
	}
}

// codecWarmUps are ops before anything is measured: libraries build tables of a type at its first use, and fill pools.
const codecWarmUps = 16

// timed warms a loop, which makes n ops, times it, and reports the sizes of its body. b.Loop takes 3 ns for itself,
// half of what the fastest codec does.
func timed(b *testing.B, body []byte, loop func(n int) error) {
	b.Helper()
	err := loop(codecWarmUps)
	if err == nil {
		runtime.GC() // what warming left is not the loop's
		b.ReportAllocs()
		b.ResetTimer()
		err = loop(b.N)
		b.StopTimer()
	}
	orFail(b, b.Name(), err)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write(body) // a Buffer takes all
	_ = w.Close()
	metric(b, float64(len(body)), "size-B")
	metric(b, float64(zipped.Len()), "gzip-B")
}

// encode returns a body that c will not overwrite.
func encode(b *testing.B, c codec.Codec, v any) []byte {
	b.Helper()
	data, err := c.Marshal(v)
	orFail(b, b.Name(), err)
	return bytes.Clone(data)
}
