package connectrpc

import (
	"slices"

	"google.golang.org/protobuf/proto"
)

// vt is vtprotobuf as connect's codec for protobuf. What has no such methods is google.rpc.Status, in which the library
// tells a gRPC client of a failure's details; it goes by reflection.
type vt struct{}

// vtMessage is what protoc-gen-go-vtproto adds to a generated type.
type vtMessage interface {
	SizeVT() int
	MarshalToSizedBufferVT([]byte) (int, error)
	UnmarshalVT([]byte) error
}

// Name is that of the wire format, which is the same.
func (vt) Name() string { return "proto" }

func (c vt) Marshal(v any) ([]byte, error) { return c.MarshalAppend(nil, v) }

// MarshalAppend is found by assertion: with it, the library encodes into buffers of its pool.
func (vt) MarshalAppend(buf []byte, v any) ([]byte, error) {
	m, ok := v.(vtMessage)
	if !ok {
		return proto.MarshalOptions{}.MarshalAppend(buf, v.(proto.Message))
	}
	size := m.SizeVT()
	buf = slices.Grow(buf, size)[:len(buf)+size]
	_, err := m.MarshalToSizedBufferVT(buf[len(buf)-size:])
	return buf, err
}

// Unmarshal expects a fresh v: UnmarshalVT merges.
func (vt) Unmarshal(data []byte, v any) error {
	if m, ok := v.(vtMessage); ok {
		return m.UnmarshalVT(data)
	}
	return proto.Unmarshal(data, v.(proto.Message))
}
