// Package goccy is goccy/go-json as a codec. The library reads the runtime's own data by unsafe pointers, so each new Go
// release may break it: the tests compare it with encoding/json on every release that CI runs.
package goccy

import (
	"github.com/goccy/go-json"

	"github.com/rpcbench/rpcbench/codec"
)

// Codec calls the library's Marshal and Unmarshal, which its documentation calls a drop-in replacement for encoding/json.
type Codec struct{}

func (Codec) ContentType() string                { return "application/json" }
func (Codec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (Codec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// Traits are those of encoding/json, but for the largest float32: version 0.12.0 reads it as a float64, which its shortest
// text rounds up to, and refuses that as too large. Strings are copies unless the option DecodeNoCopyString says otherwise.
func (Codec) Traits() codec.Traits {
	return codec.Traits{
		Library:     "github.com/goccy/go-json",
		Lossy:       []string{"negative zero", "NaN", "infinities", "smallest and largest floats"},
		InvalidUTF8: codec.UTF8{Encoding: codec.Replaced, Decoding: codec.Replaced},
	}
}
