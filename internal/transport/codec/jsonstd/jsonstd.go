// Package jsonstd is a codec for JSON by encoding/json.
package jsonstd

import (
	"encoding/json"
	"io"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
)

// Codec calls json.Marshal and json.Unmarshal.
type Codec struct{}

func (Codec) ContentType() string                { return "application/json" }
func (Codec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (Codec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// Traits declares that JSON lacks NaN and infinities, and that omitempty leaves out a negative zero.
func (Codec) Traits() codec.Traits {
	return codec.Traits{
		Library:     "encoding/json",
		Lossy:       []rpcbench.Loss{rpcbench.LossNegativeZero, rpcbench.LossNaN, rpcbench.LossInfinities},
		InvalidUTF8: rpcbench.UTF8Replaced,
	}
}

// Streaming uses a new json.Encoder or json.Decoder for each body.
type Streaming struct{ Codec }

func (Streaming) Encode(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }
func (Streaming) Decode(r io.Reader, v any) error { return json.NewDecoder(r).Decode(v) }
