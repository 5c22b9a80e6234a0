package stacktest

import (
	"bytes"
	"compress/gzip"
	"runtime"
	"testing"
)

// Codec encodes and decodes messages.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// BenchmarkMarshal times how c encodes v. size-B is the length of the encoded body, and gzip-B is the length after gzip
// at the default level. The benchmark fails if bodies differ in length, or if the last body differs from the first. An
// op includes the call through the interface; time a codec that does nothing to see its cost.
func BenchmarkMarshal(b *testing.B, c Codec, v any) {
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

// BenchmarkUnmarshal times how c decodes the encoded v, each time into the value that fresh returns. It reports the
// figures of BenchmarkMarshal. The benchmark fails unless the last value encodes to the same body again.
func BenchmarkUnmarshal(b *testing.B, c Codec, v any, fresh func() any) {
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
		b.Fatalf("rpcbench: %s: the decoded value encodes to %d bytes that differ from the %d it was decoded from",
			b.Name(), len(again), len(data))
	}
}

// codecWarmUps is how many ops precede the timed ones: libraries fill pools, and build tables when they first see a
// type.
const codecWarmUps = 16

// timed warms and times a loop of n ops, and reports the sizes of its body. It does without b.Loop, whose 3 ns are half
// of what the fastest codec takes.
func timed(b *testing.B, body []byte, loop func(n int) error) {
	b.Helper()
	err := loop(codecWarmUps)
	if err == nil {
		runtime.GC() // garbage of the warm-up is not billed to the loop
		b.ReportAllocs()
		b.ResetTimer()
		err = loop(b.N)
		b.StopTimer()
	}
	orFail(b, b.Name(), err)
	profile(b, func(begin func()) (ops int64) {
		bare := loop
		loop := func(n int) error {
			ops = int64(n)
			return bare(n)
		}
		begin()
		asClient(b, func() { orFail(b, b.Name(), loop(b.N)) })
		return ops
	})
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write(body) // a Buffer takes all
	_ = w.Close()
	metric(b, float64(len(body)), "size-B")
	metric(b, float64(zipped.Len()), "gzip-B")
}

// encode returns a body that c will not overwrite.
func encode(b *testing.B, c Codec, v any) []byte {
	b.Helper()
	data, err := c.Marshal(v)
	orFail(b, b.Name(), err)
	return bytes.Clone(data)
}
