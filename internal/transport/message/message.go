// Package message defines the message that stacks echo, as plain structs. Package messagepb has the same as protobuf
// types. All types are generated from proto/message/v1.
package message

import (
	"bytes"
	"math"
	"slices"
)

// Complex returns the Flex of the echo benchmarks, which has every field set and 133 bytes as protobuf.
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

// Equal compares bit by bit: a NaN equals itself, and zero differs from negative zero. nil and empty slices are equal,
// since some formats do not distinguish them. nil and empty messages differ.
func (f *Flex) Equal(g *Flex) bool {
	return math.Float64bits(f.Double) == math.Float64bits(g.Double) &&
		math.Float32bits(f.Float) == math.Float32bits(g.Float) && f.Int32 == g.Int32 && f.Int64 == g.Int64 &&
		f.Uint32 == g.Uint32 && f.Uint64 == g.Uint64 && f.Sint32 == g.Sint32 && f.Sint64 == g.Sint64 &&
		f.Fixed32 == g.Fixed32 && f.Fixed64 == g.Fixed64 && f.Sfixed32 == g.Sfixed32 && f.Sfixed64 == g.Sfixed64 &&
		f.Bool == g.Bool && f.String == g.String && bytes.Equal(f.Bytes, g.Bytes) && f.Message.equal(g.Message) &&
		slices.EqualFunc(f.First, g.First, (*Pair).equal) && slices.EqualFunc(f.Second, g.Second, (*Pair).equal) &&
		f.Optional.equal(g.Optional)
}

func (p *Pair) equal(q *Pair) bool {
	return p == q || p != nil && q != nil && *p == *q
}
