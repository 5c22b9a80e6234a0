package direct

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"slices"
	"strings"
	"testing"

	jsoniter "github.com/json-iterator/go"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

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
	marshal   func(n int) ([]byte, error)
	unmarshal func(data []byte, n int) (any, error)
}

const smallest = "small.3B"

func codecForms(tb testing.TB) []codecForm {
	tb.Helper()
	small, pb, pool, pack := find[message.Small](tb, "msgpack"), find[messagepb.Small](tb, "protobuf"),
		find[pooledpb.Small](tb, "protobuf.vtpool"), find[msgp.Small](tb, "msgpack.generated")
	var (
		buf    bytes.Buffer
		kept   []byte
		reader bytes.Reader
	)
	compatible, fastest := jsoniter.ConfigCompatibleWithStandardLibrary, jsoniter.ConfigFastest
	return slices.Concat([]codecForm{
		{
			"protobuf",
			func(n int) (data []byte, err error) {
				for i := 0; i < n && err == nil; i++ {
					data, err = proto.Marshal(pb)
				}
				return data, err
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
			func(n int) (data []byte, err error) {
				for i := 0; i < n && err == nil; i++ {
					kept, err = proto.MarshalOptions{}.MarshalAppend(kept[:0], pb)
				}
				return kept, err
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
			func(n int) (data []byte, err error) {
				for i := 0; i < n && err == nil; i++ {
					buf.Reset()
					_, err = protodelim.MarshalTo(&buf, pb)
				}
				return buf.Bytes(), err
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
			func(n int) (data []byte, err error) {
				for i := 0; i < n && err == nil; i++ {
					data, err = pb.MarshalVT()
				}
				return data, err
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
			func(n int) (data []byte, err error) {
				for i := 0; i < n && err == nil; i++ {
					size := pool.SizeVT()
					kept = slices.Grow(kept[:0], size)[:size]
					_, err = pool.MarshalToSizedBufferVT(kept)
				}
				return kept, err
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
			func(n int) (data []byte, err error) {
				for i := 0; i < n && err == nil; i++ {
					data, err = protojson.Marshal(pb)
				}
				return data, err
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
			func(n int) (data []byte, err error) {
				for i := 0; i < n && err == nil; i++ {
					data, err = json.Marshal(small)
				}
				return data, err
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
			func(n int) (data []byte, err error) {
				for i := 0; i < n && err == nil; i++ {
					buf.Reset()
					err = json.NewEncoder(&buf).Encode(small)
				}
				return buf.Bytes(), err
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
			func(n int) (data []byte, err error) {
				for i := 0; i < n && err == nil; i++ {
					data, err = compatible.Marshal(small)
				}
				return data, err
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
			func(n int) (data []byte, err error) {
				for i := 0; i < n && err == nil; i++ {
					data, err = fastest.Marshal(small)
				}
				return data, err
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
			func(n int) (data []byte, err error) {
				for i := 0; i < n && err == nil; i++ {
					data, err = xml.Marshal(small)
				}
				return data, err
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
			func(n int) (data []byte, err error) {
				for i := 0; i < n && err == nil; i++ {
					data, err = msgpack.Marshal(small)
				}
				return data, err
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
			func(n int) (data []byte, err error) {
				for i := 0; i < n && err == nil; i++ {
					data, err = pack.MarshalMsg(nil)
				}
				return data, err
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

// find is the smallest message in a codec's native type.
func find[T any](tb testing.TB, name string) *T {
	tb.Helper()
	v, ok := formOf(tb, name).Value.(*T)
	require.True(tb, ok, "%T", formOf(tb, name).Value)
	return v
}

// known is a row's name in other builds than that with encoding/json/v2.
func known(row codecs.Row) string { return strings.Replace(row.Name, ".v1onv2", "", 1) }

func formOf(tb testing.TB, name string) codecs.Form {
	tb.Helper()
	messages, err := codecs.FindMessages(smallest)
	require.NoError(tb, err)
	for _, row := range codecs.All() {
		if known(row) == name {
			return row.Form(messages[0])
		}
	}
	require.FailNow(tb, "no codec "+name)
	return codecs.Form{}
}

// BenchmarkCodecOverhead is BenchmarkOverhead for codecs.
func BenchmarkCodecOverhead(b *testing.B) {
	const batch = 100 // so that calling the loop is no part of it
	for _, direct := range codecForms(b) {
		form := formOf(b, direct.name)
		data, err := form.Marshal(1)
		require.NoError(b, err)
		data = bytes.Clone(data)
		b.Run("codec="+direct.name+"/op=marshal", func(b *testing.B) {
			marshal := func(loop func(int) ([]byte, error)) func() error {
				return func() error { _, err := loop(batch); return err }
			}
			overhead(b, batch, marshal(direct.marshal), marshal(form.Marshal))
		})
		b.Run("codec="+direct.name+"/op=unmarshal", func(b *testing.B) {
			unmarshal := func(loop func([]byte, int) (any, error)) func() error {
				return func() error { _, err := loop(data, batch); return err }
			}
			overhead(b, batch, unmarshal(direct.unmarshal), unmarshal(form.Unmarshal))
		})
	}
}
