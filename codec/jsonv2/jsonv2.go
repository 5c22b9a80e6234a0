//go:build go1.27 && goexperiment.jsonv2

// Package jsonv2 is encoding/json/v2 as a codec, for Go 1.27 and later without GOEXPERIMENT=nojsonv2.
package jsonv2

import (
	"encoding/json/v2"

	"github.com/rpcbench/rpcbench/codec"
)

// Codec calls Marshal and Unmarshal of encoding/json/v2, with its own defaults.
type Codec struct{}

func (Codec) ContentType() string                { return "application/json" }
func (Codec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (Codec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// Traits: a negative zero comes back, since this omitempty leaves out what is empty in JSON, which no number is.
func (Codec) Traits() codec.Traits {
	return codec.Traits{
		Library:     "encoding/json/v2",
		Lossy:       []string{codec.NaN, codec.Infinities},
		InvalidUTF8: codec.UTF8{Encoding: codec.Rejected, Decoding: codec.Rejected},
	}
}
