// Package protobuf is google.golang.org/protobuf as a codec, for bodies without gRPC around them.
package protobuf

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// Codec calls proto.Marshal and proto.Unmarshal: a value that is no proto.Message is an error.
//
// What the wire format can't tell, it can't either: no bytes are a message without fields, and bytes that follow a
// message are more of its fields, or an error when they can't be.
type Codec struct{}

// ContentType is the media type that IANA registers.
func (Codec) ContentType() string { return "application/protobuf" }

func (Codec) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("protobuf: %T is no proto.Message", v)
	}
	return proto.Marshal(m)
}

func (Codec) Unmarshal(data []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("protobuf: %T is no proto.Message", v)
	}
	return proto.Unmarshal(data, m)
}
