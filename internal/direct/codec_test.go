package direct

import (
	"encoding/json"
	"encoding/xml"
	"testing"

	jsoniter "github.com/json-iterator/go"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	rpccodec "github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/codec/msgp"
	"github.com/rpcbench/rpcbench/internal/codecs"
	"github.com/rpcbench/rpcbench/message"
	"github.com/rpcbench/rpcbench/message/messagepb"
)

// A codecForm is what a codec does, written as its library's documentation has it, on the smallest message: nothing shows
// what an interface costs as well.
type codecForm struct {
	name               string
	marshal, unmarshal func() error
}

const smallest = "small.3B"

// codecForms leave in out what was encoded last.
func codecForms(tb testing.TB, out *[]byte) []codecForm {
	tb.Helper()
	small, pb, pack := find[message.Small](tb, "json"), find[messagepb.Small](tb, "protobuf"), find[msgp.Small](tb, "msgpack.generated")
	inProto, inJSON, inXML, inPack := body(tb, "protobuf"), body(tb, "json"), body(tb, "xml"), body(tb, "msgpack")
	var ( // decoded values live longer than the op, as a caller's do: else the compiler has them on the stack
		backPB   *messagepb.Small
		backPack *msgp.Small
	)
	compatible := jsoniter.ConfigCompatibleWithStandardLibrary
	return []codecForm{
		{"protobuf", func() (err error) { *out, err = proto.Marshal(pb); return err },
			func() error { return proto.Unmarshal(inProto, new(messagepb.Small)) }},
		{"protobuf.append", func() (err error) { *out, err = proto.MarshalOptions{}.MarshalAppend((*out)[:0], pb); return err },
			func() error { return proto.Unmarshal(inProto, new(messagepb.Small)) }},
		{"protobuf.vt", func() (err error) { *out, err = pb.MarshalVT(); return err },
			func() error { backPB = new(messagepb.Small); return backPB.UnmarshalVT(inProto) }},
		{"protojson", func() (err error) { *out, err = protojson.Marshal(pb); return err },
			func() error { return protojson.Unmarshal(inJSON, new(messagepb.Small)) }},
		{"json", func() (err error) { *out, err = json.Marshal(small); return err },
			func() error { return json.Unmarshal(inJSON, new(message.Small)) }},
		{"jsoniter", func() (err error) { *out, err = compatible.Marshal(small); return err },
			func() error { return compatible.Unmarshal(inJSON, new(message.Small)) }},
		{"xml", func() (err error) { *out, err = xml.Marshal(small); return err },
			func() error { return xml.Unmarshal(inXML, new(message.Small)) }},
		{"msgpack", func() (err error) { *out, err = msgpack.Marshal(small); return err },
			func() error { return msgpack.Unmarshal(inPack, new(message.Small)) }},
		{"msgpack.generated", func() (err error) { *out, err = pack.MarshalMsg(nil); return err },
			func() error { backPack = new(msgp.Small); _, err := backPack.UnmarshalMsg(inPack); return err }},
	}
}

// body is the smallest message as a codec encodes it.
func body(tb testing.TB, name string) []byte {
	tb.Helper()
	c, form := viaCodec(tb, name)
	data, err := c.Marshal(form.Value)
	require.NoError(tb, err)
	return data
}

// find is the smallest message in a codec's native type.
func find[T any](tb testing.TB, name string) *T {
	tb.Helper()
	_, form := viaCodec(tb, name)
	v, ok := form.Value.(*T)
	require.True(tb, ok, "%T", form.Value)
	return v
}

func viaCodec(tb testing.TB, name string) (rpccodec.Codec, codecs.Form) {
	tb.Helper()
	rows, err := codecs.Find(name)
	require.NoError(tb, err)
	messages, err := codecs.FindMessages(smallest)
	require.NoError(tb, err)
	return rows[0].Codec, rows[0].Form(messages[0])
}

// codecOps are the two ops that the loops of stacktest make in a codec's rows.
func codecOps(tb testing.TB, name string) (marshal, unmarshal func() error) {
	tb.Helper()
	c, form := viaCodec(tb, name)
	data := body(tb, name)
	var out []byte
	unmarshal = func() error { _, err := form.Unmarshal(data); return err }
	if _, ok := c.(rpccodec.Appender); ok {
		return func() (err error) { out, err = form.Marshal(out[:0]); return err }, unmarshal
	}
	return func() (err error) { out, err = form.Marshal(nil); return err }, unmarshal
}

// BenchmarkCodecOverhead is BenchmarkOverhead for codecs.
func BenchmarkCodecOverhead(b *testing.B) {
	for _, f := range codecForms(b, new([]byte)) {
		marshal, unmarshal := codecOps(b, f.name)
		b.Run("codec="+f.name+"/op=marshal", func(b *testing.B) { overhead(b, f.marshal, marshal) })
		b.Run("codec="+f.name+"/op=unmarshal", func(b *testing.B) { overhead(b, f.unmarshal, unmarshal) })
	}
}
