// Package protojson is the JSON form of protobuf messages as a codec. Its bytes are not stable: the library adds spaces,
// the same in one program and others in the next, so that nobody compares them.
package protojson

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench/codec"
)

// Codec calls protojson.Marshal and protojson.Unmarshal: a value that is no proto.Message is an error.
type Codec struct{}

func (Codec) ContentType() string { return "application/json" }

func (Codec) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("protojson: %T is no proto.Message", v)
	}
	return protojson.Marshal(m)
}

func (Codec) Unmarshal(data []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("protojson: %T is no proto.Message", v)
	}
	return protojson.Unmarshal(data, m)
}

// Traits: nothing is lost, since NaN and the infinities are strings, and a negative zero is not left out.
func (Codec) Traits() codec.Traits {
	return codec.Traits{
		Library:     "google.golang.org/protobuf/encoding/protojson",
		InvalidUTF8: codec.UTF8{Encoding: codec.Rejected, Decoding: codec.Rejected},
	}
}
