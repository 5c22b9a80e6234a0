// Package protobuf is google.golang.org/protobuf as a codec.
package protobuf

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench/codec"
)

// Codec calls proto.Marshal and proto.Unmarshal: a value that is no proto.Message is an error.
//
// The wire format has no end of a message. So an empty body is a message without fields, and bytes that follow a message are
// more of its fields, or an error.
type Codec struct{}

// ContentType is the media type that IANA registers.
func (Codec) ContentType() string { return "application/protobuf" }

func (Codec) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, notMessage(v)
	}
	return proto.Marshal(m)
}

func (Codec) Unmarshal(data []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return notMessage(v)
	}
	return proto.Unmarshal(data, m)
}

// Traits: the types are generated, and the code that encodes them is not. The library builds tables from their
// descriptors, by reflection, at a type's first use.
func (Codec) Traits() codec.Traits {
	return codec.Traits{
		Library:     "google.golang.org/protobuf",
		InvalidUTF8: codec.UTF8{Encoding: codec.Rejected, Decoding: codec.Rejected},
	}
}

func notMessage(v any) error { return fmt.Errorf("protobuf: %T is no proto.Message", v) }
