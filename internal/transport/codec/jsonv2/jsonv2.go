//go:build go1.27 && goexperiment.jsonv2

// Package jsonv2 is a codec for JSON by encoding/json/v2. It needs Go 1.27, without GOEXPERIMENT=nojsonv2.
package jsonv2

import (
	"encoding/json/v2"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
)

// Codec calls Marshal and Unmarshal of encoding/json/v2 with the defaults.
type Codec struct{}

func (Codec) ContentType() string                { return "application/json" }
func (Codec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (Codec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// Traits declares that a negative zero comes back: in encoding/json/v2 omitempty never leaves out a number.
func (Codec) Traits() codec.Traits {
	return codec.Traits{
		Library:     "encoding/json/v2",
		Lossy:       []rpcbench.Loss{rpcbench.LossNaN, rpcbench.LossInfinities},
		InvalidUTF8: rpcbench.UTF8Rejected,
	}
}
