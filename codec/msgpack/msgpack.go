// Package msgpack is MessagePack by reflection, vmihailenco/msgpack, as a codec: the plain structs, by their msgpack tags.
// Package msgp is the same format by generated code.
//
// It is for input that one trusts: version 5.4.1 believes the length of a byte slice and of an array before it has seen
// an element, so that a few bytes ask for 4 and for 64 GiB, and it skips unknown values by recursion without a limit.
package msgpack

import (
	"bytes"
	"errors"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/rpcbench/rpcbench/codec"
)

// Codec calls msgpack.Marshal, and what msgpack.Unmarshal is made of.
type Codec struct{}

// ContentType is the media type that IANA registers.
func (Codec) ContentType() string { return "application/vnd.msgpack" }

func (Codec) Marshal(v any) ([]byte, error) { return msgpack.Marshal(v) }

// Unmarshal refuses what follows the value, as json.Unmarshal does; msgpack.Unmarshal does not look at it.
func (Codec) Unmarshal(data []byte, v any) error {
	r := bytes.NewReader(data)
	d := msgpack.GetDecoder()
	d.Reset(r)
	err := d.Decode(v)
	msgpack.PutDecoder(d)
	if err != nil {
		return err
	}
	if r.Len() > 0 {
		return errRest
	}
	return nil
}

var errRest = errors.New("msgpack: more data after the value")

// Traits: omitempty takes a negative zero for a zero.
func (Codec) Traits() codec.Traits {
	return codec.Traits{
		Library:     "github.com/vmihailenco/msgpack/v5",
		Lossy:       []string{"negative zero"},
		InvalidUTF8: codec.UTF8{Encoding: codec.Kept, Decoding: codec.Kept},
	}
}
