// Package jsoniter is json-iterator as a codec.
package jsoniter

import (
	jsoniter "github.com/json-iterator/go"

	"github.com/rpcbench/rpcbench/codec"
)

// Codec calls one configuration of json-iterator.
type Codec struct{ api jsoniter.API }

// Compatible is ConfigCompatibleWithStandardLibrary, which the documentation calls a drop-in replacement.
func Compatible() Codec { return Codec{jsoniter.ConfigCompatibleWithStandardLibrary} }

// Fastest is ConfigFastest: floats lose what is beyond six digits, and HTML is not escaped.
func Fastest() Codec { return Codec{jsoniter.ConfigFastest} }

func (Codec) ContentType() string                  { return "application/json" }
func (c Codec) Marshal(v any) ([]byte, error)      { return c.api.Marshal(v) }
func (c Codec) Unmarshal(data []byte, v any) error { return c.api.Unmarshal(data, v) }

// Traits: no configuration looks at the UTF-8 that it reads, and only the one that escapes HTML at what it writes.
func (c Codec) Traits() codec.Traits {
	t := codec.Traits{
		Library:     "github.com/json-iterator/go",
		Lossy:       []string{codec.NegativeZero, codec.NaN, codec.Infinities},
		InvalidUTF8: codec.UTF8{Encoding: codec.Replaced, Decoding: codec.Kept},
	}
	if c.api == jsoniter.ConfigFastest {
		t.Lossy = append(t.Lossy, codec.FloatDigits)
		t.InvalidUTF8.Encoding = codec.Kept
	}
	return t
}
