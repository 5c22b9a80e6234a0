package grpcapi

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"github.com/rpcbench/rpcbench/internal/binding/pb"
)

// VT is vtprotobuf as a codec for grpc.ForceServerCodecV2 and grpc.ForceCodecV2, which set it for one server and one
// client; registering it would change every client of the process. It uses the library's buffer pool as its own codec
// for protobuf does. The older Codec interface would put a copy between them. Messages without vtprotobuf's methods, such as
// those of gRPC reflection, are the library's own codec's.
func VT() encoding.CodecV2 { return vt{} }

type vt struct{}

func (vt) Name() string { return "proto" } // of the wire format, which is the same

func (vt) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(pb.VTMessage)
	if !ok {
		return encoding.GetCodecV2("proto").Marshal(v)
	}
	size := m.SizeVT()
	if mem.IsBelowBufferPoolingThreshold(size) {
		buf := make([]byte, size)
		_, err := m.MarshalToSizedBufferVT(buf)
		return mem.BufferSlice{mem.SliceBuffer(buf)}, err
	}
	pool := mem.DefaultBufferPool()
	buf := pool.Get(size)
	if _, err := m.MarshalToSizedBufferVT((*buf)[:size]); err != nil {
		pool.Put(buf)
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(buf, pool)}, nil
}

// Unmarshal expects a fresh v: UnmarshalVT merges.
func (vt) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(pb.VTMessage)
	if !ok {
		return encoding.GetCodecV2("proto").Unmarshal(data, v)
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	return m.UnmarshalVT(buf.ReadOnlyData())
}
