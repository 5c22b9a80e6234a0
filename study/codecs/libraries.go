package codecs

import (
	"bytes"

	goccy "github.com/goccy/go-json"
	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding/pb"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
	"github.com/rpcbench/rpcbench/internal/transport/codec/jsonstd"
	"github.com/rpcbench/rpcbench/internal/transport/codec/protobuf"
)

// library is a codec that calls a library's documented functions.
type library struct {
	contentType string
	marshal     func(any) ([]byte, error)
	unmarshal   func([]byte, any) error
	traits      codec.Traits
}

func (l library) ContentType() string                { return l.contentType }
func (l library) Marshal(v any) ([]byte, error)      { return l.marshal(v) }
func (l library) Unmarshal(data []byte, v any) error { return l.unmarshal(data, v) }
func (l library) Traits() codec.Traits               { return l.traits }

// LargestFloat is the loss of the largest float32, which can't be decoded.
const LargestFloat rpcbench.Loss = "largest float32"

// goccyJSON loses what encoding/json loses, and the largest float32. Version 0.12.0 parses its shortest text as a
// float64, which is a little larger, and refuses the result.
func goccyJSON() codec.Codec {
	t := jsonstd.Codec{}.Traits()
	t.Library = "github.com/goccy/go-json"
	t.Lossy = append(t.Lossy, LargestFloat)
	return library{"application/json", goccy.Marshal, goccy.Unmarshal, t}
}

// messagePack is for trusted input only. Version 5.4.1 allocates byte slices and arrays by their declared length: a few
// bytes can ask for 4 or 64 GiB. It skips unknown values by recursion without a limit. By default it writes int32 and
// int64 in 5 and 9 bytes, and a number too large for its field keeps its low bits.
func messagePack() codec.Codec {
	t := zeroAndUTF8("github.com/vmihailenco/msgpack/v5")
	return library{"application/vnd.msgpack", msgpack.Marshal, msgpack.Unmarshal, t}
}

// jsonOfProtobuf is protobuf's JSON, which loses nothing: NaN and infinities are strings. The library adds spaces that
// differ between programs, so that nobody compares its bytes.
func jsonOfProtobuf() codec.Codec {
	t := protobuf.Codec{}.Traits()
	t.Library = "google.golang.org/protobuf/encoding/protojson"
	marshal := func(v any) ([]byte, error) { return protojson.Marshal(v.(proto.Message)) }
	unmarshal := func(data []byte, v any) error { return protojson.Unmarshal(data, v.(proto.Message)) }
	return library{"application/json", marshal, unmarshal, t}
}

// zeroAndUTF8 returns the traits of a library that loses a negative zero and does not check UTF-8.
func zeroAndUTF8(library string) codec.Traits {
	return codec.Traits{Library: library, Lossy: []rpcbench.Loss{rpcbench.LossNegativeZero},
		InvalidUTF8: rpcbench.UTF8Kept}
}

// appended is protobuf.Codec with MarshalAppend into one buffer.
type appended struct {
	protobuf.Codec
	buf []byte
}

func (c *appended) Marshal(v any) (_ []byte, err error) {
	c.buf, err = proto.MarshalOptions{}.MarshalAppend(c.buf[:0], v.(proto.Message))
	return c.buf, err
}

// delimited writes a message after its length, as package protodelim does. A message has at most 4 MiB, protodelim's
// default.
type delimited struct {
	protobuf.Codec
	out bytes.Buffer
	in  bytes.Reader
}

func (*delimited) ContentType() string { return "application/octet-stream" } // IANA has no name for it

func (c *delimited) Marshal(v any) ([]byte, error) {
	c.out.Reset()
	_, err := protodelim.MarshalTo(&c.out, v.(proto.Message))
	return c.out.Bytes(), err
}

func (c *delimited) Unmarshal(data []byte, v any) error {
	c.in.Reset(data)
	return protodelim.UnmarshalFrom(&c.in, v.(proto.Message))
}

// vt is a codec for protobuf by vtprotobuf's generated methods. UnmarshalVT merges and copies. UnmarshalVTUnsafe, which
// does not copy, is not generated here.
type vt struct{ protobuf.Codec }

func (vt) Marshal(v any) ([]byte, error) {
	return v.(interface{ MarshalVT() ([]byte, error) }).MarshalVT()
}

func (vt) Unmarshal(data []byte, v any) error {
	return v.(pb.VTMessage).UnmarshalVT(data)
}

func (vt) Traits() codec.Traits {
	return zeroAndUTF8("github.com/planetscale/vtprotobuf")
}

// jsonStream uses a new json.Encoder or json.Decoder for each body, with one buffer and one reader.
type jsonStream struct {
	jsonstd.Streaming
	out bytes.Buffer
	in  bytes.Reader
}

func (c *jsonStream) Marshal(v any) ([]byte, error) {
	c.out.Reset()
	err := c.Encode(&c.out, v)
	return c.out.Bytes(), err
}

func (c *jsonStream) Unmarshal(data []byte, v any) error {
	c.in.Reset(data)
	return c.Decode(&c.in, v)
}

// none encodes every value to an empty body.
type none struct{ protobuf.Codec }

func (none) Marshal(any) ([]byte, error) { return nil, nil }
func (none) Unmarshal([]byte, any) error { return nil }
