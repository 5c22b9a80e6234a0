// Package message is the catalogue of messages that stacks and codecs carry, as plain structs; package messagepb has the
// same as generated types, and pooledpb as types with pools. Content comes from a fixed seed. It imports nothing of the
// module.
package message

import (
	"bytes"
	"math"
	"slices"
)

// Flex has one field of each scalar kind of protobuf, a string, bytes, a message, two repeated messages and an optional
// one. Empty it costs a stack its handling alone; complex it goes through every path of a codec. Zero fields are left out
// of the text formats, as protobuf leaves them out.
type Flex struct {
	Double   float64 `json:"double,omitempty" xml:"double,omitempty" msgpack:"double,omitempty"`
	Float    float32 `json:"float,omitempty" xml:"float,omitempty" msgpack:"float,omitempty"`
	Int32    int32   `json:"int32,omitempty" xml:"int32,omitempty" msgpack:"int32,omitempty"`
	Int64    int64   `json:"int64,omitempty" xml:"int64,omitempty" msgpack:"int64,omitempty"`
	Uint32   uint32  `json:"uint32,omitempty" xml:"uint32,omitempty" msgpack:"uint32,omitempty"`
	Uint64   uint64  `json:"uint64,omitempty" xml:"uint64,omitempty" msgpack:"uint64,omitempty"`
	Sint32   int32   `json:"sint32,omitempty" xml:"sint32,omitempty" msgpack:"sint32,omitempty"`
	Sint64   int64   `json:"sint64,omitempty" xml:"sint64,omitempty" msgpack:"sint64,omitempty"`
	Fixed32  uint32  `json:"fixed32,omitempty" xml:"fixed32,omitempty" msgpack:"fixed32,omitempty"`
	Fixed64  uint64  `json:"fixed64,omitempty" xml:"fixed64,omitempty" msgpack:"fixed64,omitempty"`
	Sfixed32 int32   `json:"sfixed32,omitempty" xml:"sfixed32,omitempty" msgpack:"sfixed32,omitempty"`
	Sfixed64 int64   `json:"sfixed64,omitempty" xml:"sfixed64,omitempty" msgpack:"sfixed64,omitempty"`
	Bool     bool    `json:"bool,omitempty" xml:"bool,omitempty" msgpack:"bool,omitempty"`
	String   string  `json:"string,omitempty" xml:"string,omitempty" msgpack:"string,omitempty"`
	Bytes    []byte  `json:"bytes,omitempty" xml:"bytes,omitempty" msgpack:"bytes,omitempty"`
	Message  *Pair   `json:"message,omitempty" xml:"message,omitempty" msgpack:"message,omitempty"`
	First    []*Pair `json:"first,omitempty" xml:"first,omitempty" msgpack:"first,omitempty"`
	Second   []*Pair `json:"second,omitempty" xml:"second,omitempty" msgpack:"second,omitempty"`
	Optional *Pair   `json:"optional,omitempty" xml:"optional,omitempty" msgpack:"optional,omitempty"`
}

// Pair is the message within Flex.
type Pair struct {
	Key   string `json:"key,omitempty" xml:"key,omitempty" msgpack:"key,omitempty"`
	Value int64  `json:"value,omitempty" xml:"value,omitempty" msgpack:"value,omitempty"`
}

// Complex is the Flex of the echo benchmarks: every field set, 133 bytes of protobuf.
func Complex() *Flex {
	return &Flex{
		Double: 3.141592653589793, Float: 2.7182817, Int32: -42, Int64: 1 << 40, Uint32: 7, Uint64: 1 << 50,
		Sint32: -7, Sint64: -1 << 33, Fixed32: 1 << 20, Fixed64: 1 << 45, Sfixed32: -99, Sfixed64: -1 << 41,
		Bool: true, String: "hello, flex", Bytes: []byte{0, 1, 2, 0xfe, 0xff},
		Message:  &Pair{Key: "a", Value: 1},
		First:    []*Pair{{Key: "b", Value: 2}},
		Second:   []*Pair{{Key: "c", Value: 3}},
		Optional: &Pair{Key: "d", Value: 4},
	}
}

// Equal compares bit by bit: a NaN equals itself, and the two zeros differ. nil and empty slices are equal, since not
// every format tells them apart; nil and empty messages are not.
func (f *Flex) Equal(g *Flex) bool {
	return math.Float64bits(f.Double) == math.Float64bits(g.Double) && math.Float32bits(f.Float) == math.Float32bits(g.Float) &&
		f.Int32 == g.Int32 && f.Int64 == g.Int64 && f.Uint32 == g.Uint32 && f.Uint64 == g.Uint64 &&
		f.Sint32 == g.Sint32 && f.Sint64 == g.Sint64 && f.Fixed32 == g.Fixed32 && f.Fixed64 == g.Fixed64 &&
		f.Sfixed32 == g.Sfixed32 && f.Sfixed64 == g.Sfixed64 && f.Bool == g.Bool && f.String == g.String &&
		bytes.Equal(f.Bytes, g.Bytes) && f.Message.equal(g.Message) && slices.EqualFunc(f.First, g.First, (*Pair).equal) &&
		slices.EqualFunc(f.Second, g.Second, (*Pair).equal) && f.Optional.equal(g.Optional)
}

func (p *Pair) equal(q *Pair) bool {
	return p == q || p != nil && q != nil && *p == *q
}
