// Package msgp is MessagePack by the methods that tinylib/msgp generates, as a codec, with the native types that have
// them. Each type is field-equal to the plain one that its comment names, and leaves out what that leaves out in JSON;
// so a negative zero, which the generated code takes for a zero, is lost.
package msgp

import (
	"errors"
	"fmt"

	"github.com/tinylib/msgp/msgp"

	"github.com/rpcbench/rpcbench/codec"
)

// Codec calls MarshalMsg and UnmarshalMsg, and nothing else: a value without them is an error.
type Codec struct{}

// ContentType is the media type that IANA registers.
func (Codec) ContentType() string { return "application/vnd.msgpack" }

func (Codec) Marshal(v any) ([]byte, error) {
	m, ok := v.(msgp.Marshaler)
	if !ok {
		return nil, fmt.Errorf("msgp: %T has no generated methods", v)
	}
	return m.MarshalMsg(nil)
}

// Unmarshal refuses what follows the value, as json.Unmarshal does; UnmarshalMsg returns it.
func (Codec) Unmarshal(data []byte, v any) error {
	m, ok := v.(msgp.Unmarshaler)
	if !ok {
		return fmt.Errorf("msgp: %T has no generated methods", v)
	}
	rest, err := m.UnmarshalMsg(data)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return errRest
	}
	return nil
}

var errRest = errors.New("msgp: more data after the value")

// Traits: the generated code takes a negative zero for a zero, and does not look at UTF-8.
func (Codec) Traits() codec.Traits {
	return codec.Traits{
		Library:     "github.com/tinylib/msgp",
		Generated:   true,
		Lossy:       []string{"negative zero"},
		InvalidUTF8: codec.UTF8{Encoding: codec.Kept, Decoding: codec.Kept},
	}
}
