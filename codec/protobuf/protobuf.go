// Package protobuf is google.golang.org/protobuf as a codec.
package protobuf

import (
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench/codec"
)

// Codec calls proto.Marshal and proto.Unmarshal, and panics if a value is no proto.Message. The wire format has no end
// of a message. So an empty body is a message without fields, and what follows a message is more of it, or an error.
type Codec struct{}

func (Codec) ContentType() string                { return "application/protobuf" } // as IANA has it
func (Codec) Marshal(v any) ([]byte, error)      { return proto.Marshal(v.(proto.Message)) }
func (Codec) Unmarshal(data []byte, v any) error { return proto.Unmarshal(data, v.(proto.Message)) }

// Traits: the types are generated, the code that encodes them is not. The library builds tables from their descriptors.
func (Codec) Traits() codec.Traits {
	return codec.Traits{
		Library:     "google.golang.org/protobuf",
		InvalidUTF8: codec.UTF8{Encoding: codec.Rejected, Decoding: codec.Rejected},
	}
}
