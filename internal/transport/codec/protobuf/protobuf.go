// Package protobuf is a codec for protobuf by google.golang.org/protobuf.
package protobuf

import (
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
)

// Codec calls proto.Marshal and proto.Unmarshal. It panics if a value is not a proto.Message. The wire format does not
// mark the end of a message: an empty body is a message without fields, and data after a message is read as more
// fields.
type Codec struct{}

func (Codec) ContentType() string                { return "application/protobuf" } // IANA's name
func (Codec) Marshal(v any) ([]byte, error)      { return proto.Marshal(v.(proto.Message)) }
func (Codec) Unmarshal(data []byte, v any) error { return proto.Unmarshal(data, v.(proto.Message)) }

func (Codec) Traits() codec.Traits {
	return codec.Traits{
		Library:     "google.golang.org/protobuf",
		InvalidUTF8: rpcbench.UTF8Rejected,
	}
}
