// Package msgp is a codec for MessagePack by the methods that tinylib/msgp generates. Its types are copies of the plain
// structs with these methods, and leave out the same empty fields. The methods also leave out a negative zero.
//
// Lists have at most 65536 elements. A decoder allocates a list by its declared length: without the limit, a body of
// twelve bytes could ask for 32 GiB and end the process.
package msgp

//go:generate go -C ../../../tools run ./gentypes -tag msg -limit 65536 ../transport/codec/msgp ../../user.go ../../types_gen.go
//go:generate go tool -modfile=../../../tools/go.mod msgp -io=false -tests=false -file types_gen.go -o methods_gen.go

import (
	"errors"

	"github.com/tinylib/msgp/msgp"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
)

// Codec calls MarshalMsg and UnmarshalMsg. It panics if a value lacks them.
type Codec struct{}

func (Codec) ContentType() string           { return "application/vnd.msgpack" } // IANA's name
func (Codec) Marshal(v any) ([]byte, error) { return v.(msgp.Marshaler).MarshalMsg(nil) }

// Unmarshal fails if data follows the value, as json.Unmarshal does.
func (Codec) Unmarshal(data []byte, v any) error {
	rest, err := v.(msgp.Unmarshaler).UnmarshalMsg(data)
	if err == nil && len(rest) > 0 {
		return errors.New("msgp: more data after the value")
	}
	return err
}

// Traits declares that the generated code loses a negative zero, and does not check UTF-8.
func (Codec) Traits() codec.Traits {
	return codec.Traits{
		Library:     "github.com/tinylib/msgp",
		Lossy:       []rpcbench.Loss{rpcbench.LossNegativeZero},
		InvalidUTF8: rpcbench.UTF8Kept,
	}
}
