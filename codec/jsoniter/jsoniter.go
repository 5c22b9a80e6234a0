// Package jsoniter is json-iterator as a codec.
package jsoniter

import jsoniter "github.com/json-iterator/go"

// Codec calls one configuration of json-iterator.
type Codec struct{ api jsoniter.API }

// Compatible is ConfigCompatibleWithStandardLibrary, the configuration its documentation calls a drop-in replacement.
func Compatible() Codec { return Codec{jsoniter.ConfigCompatibleWithStandardLibrary} }

// Fastest is ConfigFastest: floats lose what is beyond six digits, and HTML is not escaped.
func Fastest() Codec { return Codec{jsoniter.ConfigFastest} }

func (Codec) ContentType() string                  { return "application/json" }
func (c Codec) Marshal(v any) ([]byte, error)      { return c.api.Marshal(v) }
func (c Codec) Unmarshal(data []byte, v any) error { return c.api.Unmarshal(data, v) }
