// Package jsoniter is a codec for JSON by json-iterator, which is unmaintained.
package jsoniter

import (
	jsoniter "github.com/json-iterator/go"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
)

// Codec encodes and decodes with one configuration of json-iterator.
type Codec struct{ api jsoniter.API }

// Compatible uses ConfigCompatibleWithStandardLibrary, the drop-in replacement of encoding/json.
func Compatible() Codec { return Codec{jsoniter.ConfigCompatibleWithStandardLibrary} }

// Fastest uses ConfigFastest, which writes floats with six digits and does not escape HTML.
func Fastest() Codec { return Codec{jsoniter.ConfigFastest} }

func (Codec) ContentType() string                  { return "application/json" }
func (c Codec) Marshal(v any) ([]byte, error)      { return c.api.Marshal(v) }
func (c Codec) Unmarshal(data []byte, v any) error { return c.api.Unmarshal(data, v) }

// Traits declares that only Compatible checks UTF-8 when encoding.
func (c Codec) Traits() codec.Traits {
	t := codec.Traits{
		Library:     "github.com/json-iterator/go",
		Lossy:       []rpcbench.Loss{rpcbench.LossNegativeZero, rpcbench.LossNaN, rpcbench.LossInfinities},
		InvalidUTF8: rpcbench.UTF8Replaced,
	}
	if c.api == jsoniter.ConfigFastest {
		t.Lossy = append(t.Lossy, rpcbench.LossFloatDigits)
		t.InvalidUTF8 = rpcbench.UTF8Kept
	}
	return t
}
