// Package msgp is MessagePack by the methods that tinylib/msgp generates, as a codec, with the native types that have
// them. The types are copies of the plain structs, and leave out what those leave out in JSON. So a negative zero,
// which the generated code takes for a zero, is lost.
//
// Lists are limited to 65536 elements. A decoder allocates at the word of a list's length, before it has seen an
// element: without the limit a body of twelve bytes asks for 32 GiB, which ends the process.
package msgp

//go:generate go -C ../../tools run ./gentypes -tag msg -limit 65536 ../codec/msgp
//go:generate go tool -modfile=../../tools/go.mod msgp -io=false -tests=false -file types_gen.go -o methods_gen.go

import (
	"errors"

	"github.com/tinylib/msgp/msgp"

	"github.com/rpcbench/rpcbench/codec"
)

// Codec calls MarshalMsg and UnmarshalMsg, and panics if a value lacks them.
type Codec struct{}

func (Codec) ContentType() string           { return "application/vnd.msgpack" } // as IANA has it
func (Codec) Marshal(v any) ([]byte, error) { return v.(msgp.Marshaler).MarshalMsg(nil) }

// Unmarshal refuses what follows the value, as json.Unmarshal does; UnmarshalMsg returns it.
func (Codec) Unmarshal(data []byte, v any) error {
	rest, err := v.(msgp.Unmarshaler).UnmarshalMsg(data)
	if err == nil && len(rest) > 0 {
		return errors.New("msgp: more data after the value")
	}
	return err
}

// Traits: the generated code takes a negative zero for a zero, and does not look at UTF-8.
func (Codec) Traits() codec.Traits {
	return codec.Traits{
		Library:     "github.com/tinylib/msgp",
		Generated:   true,
		Lossy:       []string{codec.NegativeZero},
		InvalidUTF8: codec.UTF8{Encoding: codec.Kept, Decoding: codec.Kept},
	}
}
