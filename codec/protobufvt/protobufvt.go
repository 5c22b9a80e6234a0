// Package protobufvt is protobuf by the methods that vtprotobuf generates, as a codec. It compiles none of the library:
// the methods are in the packages of the messages.
package protobufvt

import (
	"fmt"
	"slices"

	"github.com/rpcbench/rpcbench/codec"
)

// Codec calls MarshalVT and UnmarshalVT: a value without them is an error. The destination must be fresh, since
// UnmarshalVT merges into what is there.
type Codec struct{}

// ContentType is the media type that IANA registers.
func (Codec) ContentType() string { return "application/protobuf" }

func (Codec) Marshal(v any) ([]byte, error) {
	m, ok := v.(interface{ MarshalVT() ([]byte, error) })
	if !ok {
		return nil, noMethods(v)
	}
	return m.MarshalVT()
}

func (Codec) Unmarshal(data []byte, v any) error {
	m, ok := v.(interface{ UnmarshalVT([]byte) error })
	if !ok {
		return noMethods(v)
	}
	return m.UnmarshalVT(data)
}

// Traits: the generated code takes a negative zero for a zero, and does not look at UTF-8. UnmarshalVT copies;
// UnmarshalVTUnsafe, which does not, is not generated.
func (Codec) Traits() codec.Traits {
	return codec.Traits{
		Library:     "github.com/planetscale/vtprotobuf",
		Generated:   true,
		Lossy:       []string{"negative zero"},
		InvalidUTF8: codec.UTF8{Encoding: codec.Kept, Decoding: codec.Kept},
	}
}

// Pooled is Codec with the caller's buffer, and with destinations that come from the pools of the generated types, by
// their FromVTPool functions, and go back there.
type Pooled struct{ Codec }

// Append calls MarshalToSizedBufferVT on the end of dst, once that has room for SizeVT bytes.
func (Pooled) Append(dst []byte, v any) ([]byte, error) {
	m, ok := v.(interface {
		SizeVT() int
		MarshalToSizedBufferVT([]byte) (int, error)
	})
	if !ok {
		return dst, noMethods(v)
	}
	end := len(dst) + m.SizeVT()
	out := slices.Grow(dst, end-len(dst))[:end]
	_, err := m.MarshalToSizedBufferVT(out[len(dst):])
	return out, err
}

// Release calls ReturnToVTPool, and panics where v has no such method: the type was generated without a pool.
func (Pooled) Release(v any) { v.(interface{ ReturnToVTPool() }).ReturnToVTPool() }

func (p Pooled) Traits() codec.Traits {
	t := p.Codec.Traits()
	t.Reuses = "buffer, values"
	return t
}

func noMethods(v any) error { return fmt.Errorf("protobufvt: %T has no vtprotobuf methods", v) }
