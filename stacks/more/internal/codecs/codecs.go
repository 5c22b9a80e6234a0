// Package codecs has codecs of libraries that the main module does without: sonic and fxamacker/cbor. Each is the
// library's defaults, on the plain structs of the main module.
package codecs

import (
	"github.com/bytedance/sonic"
	"github.com/fxamacker/cbor/v2"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/codec"
)

// Sonic is a codec for JSON by sonic.Marshal and sonic.Unmarshal, which neither sort maps nor escape HTML. Unmarshal
// copies the whole body once, and the strings of a value share that copy.
type Sonic struct{}

func (Sonic) ContentType() string                { return "application/json" }
func (Sonic) Marshal(v any) ([]byte, error)      { return sonic.Marshal(v) }
func (Sonic) Unmarshal(data []byte, v any) error { return sonic.Unmarshal(data, v) }

// Traits declares that JSON lacks NaN and infinities, and that omitempty leaves out a negative zero.
func (Sonic) Traits() codec.Traits { return sonicTraits(rpcbench.Kept) }

// SonicStd is sonic.ConfigStd, which does what encoding/json does.
type SonicStd struct{ Sonic }

func (SonicStd) Marshal(v any) ([]byte, error)      { return sonic.ConfigStd.Marshal(v) }
func (SonicStd) Unmarshal(data []byte, v any) error { return sonic.ConfigStd.Unmarshal(data, v) }
func (SonicStd) Traits() codec.Traits               { return sonicTraits(rpcbench.Replaced) }

func sonicTraits(utf8 rpcbench.UTF8) codec.Traits {
	return codec.Traits{
		Library:     "github.com/bytedance/sonic",
		Lossy:       []rpcbench.Loss{rpcbench.NegativeZero, rpcbench.NaN, rpcbench.Infinities},
		InvalidUTF8: codec.UTF8{Encoding: utf8, Decoding: utf8},
	}
}

// CBOR is a codec for CBOR (RFC 8949) by cbor.Marshal and cbor.Unmarshal, with the names of the fields' json tags.
type CBOR struct{}

func (CBOR) ContentType() string                { return "application/cbor" }
func (CBOR) Marshal(v any) ([]byte, error)      { return cbor.Marshal(v) }
func (CBOR) Unmarshal(data []byte, v any) error { return cbor.Unmarshal(data, v) }

// Traits declares that omitempty leaves out a negative zero, and that a NaN comes back as another NaN. The decoder
// refuses invalid UTF-8, which the encoder writes.
func (CBOR) Traits() codec.Traits {
	return codec.Traits{
		Library:     "github.com/fxamacker/cbor/v2",
		Lossy:       []rpcbench.Loss{rpcbench.NegativeZero, rpcbench.NaN},
		InvalidUTF8: codec.UTF8{Encoding: rpcbench.Kept, Decoding: rpcbench.Rejected},
	}
}
