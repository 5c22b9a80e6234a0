package direct

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"runtime"
	"slices"
	"testing"

	jsoniter "github.com/json-iterator/go"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	rpccodec "github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/codec/msgp"
	"github.com/rpcbench/rpcbench/internal/codecs"
	"github.com/rpcbench/rpcbench/message"
	"github.com/rpcbench/rpcbench/message/messagepb"
	"github.com/rpcbench/rpcbench/message/pooledpb"
)

// A codecForm is what a codec's row times, as codecs.Form has it, written as the library's documentation has it on the type of
// the smallest message. json.gzip has none: its pools and its limit are ours.
type codecForm struct {
	name      string
	marshal   func(n int) ([]byte, int, error)
	unmarshal func(data []byte, n int) (any, error)
}

const smallest = "small.3B"

func codecForms(tb testing.TB) []codecForm {
	tb.Helper()
	small, pb, pool, pack := value[message.Small](tb, "msgpack"), value[messagepb.Small](tb, "protobuf"),
		value[pooledpb.Small](tb, "protobuf.vtpool"), value[msgp.Small](tb, "msgpack.generated")
	var (
		buf    bytes.Buffer
		kept   []byte
		reader bytes.Reader
	)
	compatible, fastest := jsoniter.ConfigCompatibleWithStandardLibrary, jsoniter.ConfigFastest
	return slices.Concat([]codecForm{
		{
			"protobuf",
			func(n int) (data []byte, total int, err error) {
				for i := 0; i < n && err == nil; i++ {
					data, err = proto.Marshal(pb)
					total += len(data)
				}
				return data, total, err
			},
			func(data []byte, n int) (any, error) {
				var back *messagepb.Small
				var err error
				for i := 0; i < n && err == nil; i++ {
					back = new(messagepb.Small)
					err = proto.Unmarshal(data, back)
				}
				return back, err
			},
		},
		{
			"protobuf.append",
			func(n int) (data []byte, total int, err error) {
				data = kept
				for i := 0; i < n && err == nil; i++ {
					data, err = proto.MarshalOptions{}.MarshalAppend(data[:0], pb)
					total += len(data)
				}
				kept = data
				return data, total, err
			},
			func(data []byte, n int) (any, error) {
				var back *messagepb.Small
				var err error
				for i := 0; i < n && err == nil; i++ {
					back = new(messagepb.Small)
					err = proto.Unmarshal(data, back)
				}
				return back, err
			},
		},
		{
			"protobuf.delimited",
			func(n int) (data []byte, total int, err error) {
				for i := 0; i < n && err == nil; i++ {
					buf.Reset()
					_, err = protodelim.MarshalTo(&buf, pb)
					total += buf.Len()
				}
				return buf.Bytes(), total, err
			},
			func(data []byte, n int) (any, error) {
				var back *messagepb.Small
				var err error
				for i := 0; i < n && err == nil; i++ {
					reader.Reset(data)
					back = new(messagepb.Small)
					err = protodelim.UnmarshalFrom(&reader, back)
				}
				return back, err
			},
		},
		{
			"protobuf.vt",
			func(n int) (data []byte, total int, err error) {
				for i := 0; i < n && err == nil; i++ {
					data, err = pb.MarshalVT()
					total += len(data)
				}
				return data, total, err
			},
			func(data []byte, n int) (any, error) {
				var back *messagepb.Small
				var err error
				for i := 0; i < n && err == nil; i++ {
					back = new(messagepb.Small)
					err = back.UnmarshalVT(data)
				}
				return back, err
			},
		},
		{
			"protobuf.vtpool",
			func(n int) (data []byte, total int, err error) {
				data = kept
				for i := 0; i < n && err == nil; i++ {
					size := pool.SizeVT()
					data = slices.Grow(data[:0], size)[:size]
					_, err = pool.MarshalToSizedBufferVT(data)
					total += len(data)
				}
				kept = data
				return data, total, err
			},
			func(data []byte, n int) (any, error) {
				var back *pooledpb.Small
				var err error
				for i := 0; i < n && err == nil; i++ {
					if back != nil {
						back.ReturnToVTPool()
					}
					back = pooledpb.SmallFromVTPool()
					err = back.UnmarshalVT(data)
				}
				return back, err
			},
		},
		{
			"protojson",
			func(n int) (data []byte, total int, err error) {
				for i := 0; i < n && err == nil; i++ {
					data, err = protojson.Marshal(pb)
					total += len(data)
				}
				return data, total, err
			},
			func(data []byte, n int) (any, error) {
				var back *messagepb.Small
				var err error
				for i := 0; i < n && err == nil; i++ {
					back = new(messagepb.Small)
					err = protojson.Unmarshal(data, back)
				}
				return back, err
			},
		},
		{
			"json",
			func(n int) (data []byte, total int, err error) {
				for i := 0; i < n && err == nil; i++ {
					data, err = json.Marshal(small)
					total += len(data)
				}
				return data, total, err
			},
			func(data []byte, n int) (any, error) {
				var back *message.Small
				var err error
				for i := 0; i < n && err == nil; i++ {
					back = new(message.Small)
					err = json.Unmarshal(data, back)
				}
				return back, err
			},
		},
		{
			"json.stream",
			func(n int) (data []byte, total int, err error) {
				for i := 0; i < n && err == nil; i++ {
					buf.Reset()
					err = json.NewEncoder(&buf).Encode(small)
					total += buf.Len()
				}
				return buf.Bytes(), total, err
			},
			func(data []byte, n int) (any, error) {
				var back *message.Small
				var err error
				for i := 0; i < n && err == nil; i++ {
					reader.Reset(data)
					back = new(message.Small)
					err = json.NewDecoder(&reader).Decode(back)
				}
				return back, err
			},
		},
		{
			"jsoniter",
			func(n int) (data []byte, total int, err error) {
				for i := 0; i < n && err == nil; i++ {
					data, err = compatible.Marshal(small)
					total += len(data)
				}
				return data, total, err
			},
			func(data []byte, n int) (any, error) {
				var back *message.Small
				var err error
				for i := 0; i < n && err == nil; i++ {
					back = new(message.Small)
					err = compatible.Unmarshal(data, back)
				}
				return back, err
			},
		},
		{
			"jsoniter.fastest",
			func(n int) (data []byte, total int, err error) {
				for i := 0; i < n && err == nil; i++ {
					data, err = fastest.Marshal(small)
					total += len(data)
				}
				return data, total, err
			},
			func(data []byte, n int) (any, error) {
				var back *message.Small
				var err error
				for i := 0; i < n && err == nil; i++ {
					back = new(message.Small)
					err = fastest.Unmarshal(data, back)
				}
				return back, err
			},
		},
		{
			"xml",
			func(n int) (data []byte, total int, err error) {
				for i := 0; i < n && err == nil; i++ {
					data, err = xml.Marshal(small)
					total += len(data)
				}
				return data, total, err
			},
			func(data []byte, n int) (any, error) {
				var back *message.Small
				var err error
				for i := 0; i < n && err == nil; i++ {
					back = new(message.Small)
					err = xml.Unmarshal(data, back)
				}
				return back, err
			},
		},
		{
			"msgpack",
			func(n int) (data []byte, total int, err error) {
				for i := 0; i < n && err == nil; i++ {
					data, err = msgpack.Marshal(small)
					total += len(data)
				}
				return data, total, err
			},
			func(data []byte, n int) (any, error) {
				var back *message.Small
				var err error
				for i := 0; i < n && err == nil; i++ {
					back = new(message.Small)
					err = msgpack.Unmarshal(data, back)
				}
				return back, err
			},
		},
		{
			"msgpack.generated",
			func(n int) (data []byte, total int, err error) {
				for i := 0; i < n && err == nil; i++ {
					data, err = pack.MarshalMsg(nil)
					total += len(data)
				}
				return data, total, err
			},
			func(data []byte, n int) (any, error) {
				var back *msgp.Small
				var err error
				for i := 0; i < n && err == nil; i++ {
					back = new(msgp.Small)
					_, err = back.UnmarshalMsg(data)
				}
				return back, err
			},
		},
	}, goccyForm(small), v2Form(small))
}

// value is the smallest message in a codec's native type.
func value[T any](tb testing.TB, name string) *T {
	tb.Helper()
	_, form := find(tb, name)
	v, ok := form.Value.(*T)
	require.True(tb, ok, "%T", form.Value)
	return v
}

func find(tb testing.TB, name string) (codecs.Row, codecs.Form) {
	tb.Helper()
	messages, err := codecs.FindMessages(smallest)
	require.NoError(tb, err)
	for _, row := range codecs.All() {
		if row.Name == name {
			return row, row.Form(messages[0])
		}
	}
	require.FailNow(tb, "no codec "+name)
	return codecs.Row{}, codecs.Form{}
}

// throughCodec makes a row's ops behind the interface, as a stack does.
func throughCodec(c rpccodec.Codec, form codecs.Form) (marshal func(n int) ([]byte, int, error), unmarshal func(data []byte, n int) (any, error)) {
	var buf bytes.Buffer
	var kept []byte
	var reader bytes.Reader
	return func(n int) (data []byte, total int, err error) {
			switch c := c.(type) {
			case rpccodec.Stream:
				for i := 0; i < n && err == nil; i++ {
					buf.Reset()
					err = c.Encode(&buf, form.Value)
					total += buf.Len()
				}
				return buf.Bytes(), total, err
			case rpccodec.Appender:
				data = kept
				for i := 0; i < n && err == nil; i++ {
					data, err = c.Append(data[:0], form.Value)
					total += len(data)
				}
				kept = data
				return data, total, err
			}
			for i := 0; i < n && err == nil; i++ {
				data, err = c.Marshal(form.Value)
				total += len(data)
			}
			return data, total, err
		}, func(data []byte, n int) (back any, err error) {
			switch c := c.(type) {
			case rpccodec.Stream:
				for i := 0; i < n && err == nil; i++ {
					reader.Reset(data)
					back = form.Fresh()
					err = c.Decode(&reader, back)
				}
				return back, err
			case rpccodec.Releaser:
				for i := 0; i < n && err == nil; i++ {
					if back != nil {
						c.Release(back)
					}
					back = form.Fresh()
					err = c.Unmarshal(data, back)
				}
				return back, err
			}
			for i := 0; i < n && err == nil; i++ {
				back = form.Fresh()
				err = c.Unmarshal(data, back)
			}
			return back, err
		}
}

// BenchmarkCodecOverhead is BenchmarkOverhead for codecs; interface-ratio is how many times as long as the direct form the codec takes.
func BenchmarkCodecOverhead(b *testing.B) {
	const batch = 1000 // so that calling the loop is no part of it

	// To the memory profile each depth is a stack of its own, and in each cycle the collector goes through all.
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	runtime.MemProfileRate = 0

	for _, direct := range codecForms(b) {
		row, form := find(b, direct.name)
		data, _, err := form.Marshal(1)
		require.NoError(b, err)
		data = bytes.Clone(data)
		marshalThrough, unmarshalThrough := throughCodec(row.Codec, form)
		b.Run("codec="+direct.name+"/op=marshal", func(b *testing.B) {
			marshal := func(loop func(int) ([]byte, int, error)) func() error {
				return atAllDepths(func() error { _, _, err := loop(batch); return err })
			}
			overhead(b, batch, marshal(direct.marshal), marshal(form.Marshal), marshal(marshalThrough))
		})
		b.Run("codec="+direct.name+"/op=unmarshal", func(b *testing.B) {
			unmarshal := func(loop func([]byte, int) (any, error)) func() error {
				return atAllDepths(func() error { _, err := loop(data, batch); return err })
			}
			overhead(b, batch, unmarshal(direct.unmarshal), unmarshal(form.Unmarshal), unmarshal(unmarshalThrough))
		})
	}
}

// atAllDepths has each call of op begin elsewhere on the stack, over a page of it, as C. Curtsinger and E. D. Berger, Stabilizer,
// ASPLOS 2013, do: at some places protojson takes 6 to 8 % longer, and which loop is called there is chance.
func atAllDepths(op func() error) func() error {
	calls := 0
	return func() error {
		calls++
		return deeper(calls%128, op) // of 32 bytes on amd64
	}
}

//go:noinline
func deeper(frames int, op func() error) error {
	if frames == 0 {
		return op()
	}
	return deeper(frames-1, op)
}
