package rpcbench

import (
	"bytes"
	"math"
	"slices"
)

// Equal compares two messages bit by bit: a NaN equals itself, and zero differs from negative zero. A nil and an empty
// slice are equal, because some formats do not distinguish them, but a nil and an empty Pair differ.
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
