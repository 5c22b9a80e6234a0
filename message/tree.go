package message

import (
	"math/bits"
	"math/rand/v2"
)

// Tree is random values of five scalar kinds in three levels of messages, of any size. Numbers take every length that
// they can have, one in eight is negative, doubles have all their digits, and strings are random letters and digits. It
// is all fields, many and small, so a codec shows what it pays for each; sparse, it shows what unset ones cost.
//
// The levels are three types, since a type that holds itself costs some codecs more, and would let a hostile input nest
// as deep as it likes.
type Tree struct {
	Int1     int32     `json:"int1,omitempty" xml:"int1,omitempty" msgpack:"int1,omitempty"`
	Int2     int32     `json:"int2,omitempty" xml:"int2,omitempty" msgpack:"int2,omitempty"`
	Int3     int32     `json:"int3,omitempty" xml:"int3,omitempty" msgpack:"int3,omitempty"`
	Long1    int64     `json:"long1,omitempty" xml:"long1,omitempty" msgpack:"long1,omitempty"`
	Long2    int64     `json:"long2,omitempty" xml:"long2,omitempty" msgpack:"long2,omitempty"`
	Long3    int64     `json:"long3,omitempty" xml:"long3,omitempty" msgpack:"long3,omitempty"`
	Double1  float64   `json:"double1,omitempty" xml:"double1,omitempty" msgpack:"double1,omitempty"`
	Double2  float64   `json:"double2,omitempty" xml:"double2,omitempty" msgpack:"double2,omitempty"`
	Double3  float64   `json:"double3,omitempty" xml:"double3,omitempty" msgpack:"double3,omitempty"`
	Bool1    bool      `json:"bool1,omitempty" xml:"bool1,omitempty" msgpack:"bool1,omitempty"`
	Bool2    bool      `json:"bool2,omitempty" xml:"bool2,omitempty" msgpack:"bool2,omitempty"`
	Bool3    bool      `json:"bool3,omitempty" xml:"bool3,omitempty" msgpack:"bool3,omitempty"`
	String1  string    `json:"string1,omitempty" xml:"string1,omitempty" msgpack:"string1,omitempty"`
	String2  string    `json:"string2,omitempty" xml:"string2,omitempty" msgpack:"string2,omitempty"`
	String3  string    `json:"string3,omitempty" xml:"string3,omitempty" msgpack:"string3,omitempty"`
	Branches []*Branch `json:"branches,omitempty" xml:"branches,omitempty" msgpack:"branches,omitempty"`
}

// Branch is the second level of a Tree.
type Branch struct {
	Int1    int32   `json:"int1,omitempty" xml:"int1,omitempty" msgpack:"int1,omitempty"`
	Int2    int32   `json:"int2,omitempty" xml:"int2,omitempty" msgpack:"int2,omitempty"`
	Int3    int32   `json:"int3,omitempty" xml:"int3,omitempty" msgpack:"int3,omitempty"`
	Long1   int64   `json:"long1,omitempty" xml:"long1,omitempty" msgpack:"long1,omitempty"`
	Long2   int64   `json:"long2,omitempty" xml:"long2,omitempty" msgpack:"long2,omitempty"`
	Long3   int64   `json:"long3,omitempty" xml:"long3,omitempty" msgpack:"long3,omitempty"`
	Double1 float64 `json:"double1,omitempty" xml:"double1,omitempty" msgpack:"double1,omitempty"`
	Double2 float64 `json:"double2,omitempty" xml:"double2,omitempty" msgpack:"double2,omitempty"`
	Double3 float64 `json:"double3,omitempty" xml:"double3,omitempty" msgpack:"double3,omitempty"`
	Bool1   bool    `json:"bool1,omitempty" xml:"bool1,omitempty" msgpack:"bool1,omitempty"`
	Bool2   bool    `json:"bool2,omitempty" xml:"bool2,omitempty" msgpack:"bool2,omitempty"`
	Bool3   bool    `json:"bool3,omitempty" xml:"bool3,omitempty" msgpack:"bool3,omitempty"`
	String1 string  `json:"string1,omitempty" xml:"string1,omitempty" msgpack:"string1,omitempty"`
	String2 string  `json:"string2,omitempty" xml:"string2,omitempty" msgpack:"string2,omitempty"`
	String3 string  `json:"string3,omitempty" xml:"string3,omitempty" msgpack:"string3,omitempty"`
	Leaves  []*Leaf `json:"leaves,omitempty" xml:"leaves,omitempty" msgpack:"leaves,omitempty"`
}

// Leaf is the third level of a Tree.
type Leaf struct {
	Int1    int32   `json:"int1,omitempty" xml:"int1,omitempty" msgpack:"int1,omitempty"`
	Int2    int32   `json:"int2,omitempty" xml:"int2,omitempty" msgpack:"int2,omitempty"`
	Int3    int32   `json:"int3,omitempty" xml:"int3,omitempty" msgpack:"int3,omitempty"`
	Long1   int64   `json:"long1,omitempty" xml:"long1,omitempty" msgpack:"long1,omitempty"`
	Long2   int64   `json:"long2,omitempty" xml:"long2,omitempty" msgpack:"long2,omitempty"`
	Long3   int64   `json:"long3,omitempty" xml:"long3,omitempty" msgpack:"long3,omitempty"`
	Double1 float64 `json:"double1,omitempty" xml:"double1,omitempty" msgpack:"double1,omitempty"`
	Double2 float64 `json:"double2,omitempty" xml:"double2,omitempty" msgpack:"double2,omitempty"`
	Double3 float64 `json:"double3,omitempty" xml:"double3,omitempty" msgpack:"double3,omitempty"`
	Bool1   bool    `json:"bool1,omitempty" xml:"bool1,omitempty" msgpack:"bool1,omitempty"`
	Bool2   bool    `json:"bool2,omitempty" xml:"bool2,omitempty" msgpack:"bool2,omitempty"`
	Bool3   bool    `json:"bool3,omitempty" xml:"bool3,omitempty" msgpack:"bool3,omitempty"`
	String1 string  `json:"string1,omitempty" xml:"string1,omitempty" msgpack:"string1,omitempty"`
	String2 string  `json:"string2,omitempty" xml:"string2,omitempty" msgpack:"string2,omitempty"`
	String3 string  `json:"string3,omitempty" xml:"string3,omitempty" msgpack:"string3,omitempty"`
}

const leaves = 10 // of a branch, but for the last one

// NewTree makes a tree of at least size bytes on the protobuf wire, and of hardly more than one message above that. A
// dense one has every scalar field set, a sparse one about one in five.
func NewTree(seed uint64, size int, dense bool) *Tree {
	r := source(seed)
	l := newLeaf(r, dense)
	t := &Tree{
		Int1: l.Int1, Int2: l.Int2, Int3: l.Int3, Long1: l.Long1, Long2: l.Long2, Long3: l.Long3,
		Double1: l.Double1, Double2: l.Double2, Double3: l.Double3, Bool1: l.Bool1, Bool2: l.Bool2, Bool3: l.Bool3,
		String1: l.String1, String2: l.String2, String3: l.String3,
	}
	for have := l.size(); have < size; {
		l := newLeaf(r, dense)
		b := &Branch{
			Int1: l.Int1, Int2: l.Int2, Int3: l.Int3, Long1: l.Long1, Long2: l.Long2, Long3: l.Long3,
			Double1: l.Double1, Double2: l.Double2, Double3: l.Double3, Bool1: l.Bool1, Bool2: l.Bool2, Bool3: l.Bool3,
			String1: l.String1, String2: l.String2, String3: l.String3,
		}
		inside := l.size()
		for len(b.Leaves) < leaves && have+childSize(inside) < size {
			l := newLeaf(r, dense)
			b.Leaves = append(b.Leaves, l)
			inside += childSize(l.size())
		}
		t.Branches = append(t.Branches, b)
		have += childSize(inside)
	}
	return t
}

func newLeaf(r *rand.Rand, dense bool) *Leaf {
	set := func() bool { return dense || r.IntN(5) == 0 }
	var l Leaf
	for _, v := range []*int32{&l.Int1, &l.Int2, &l.Int3} {
		if set() {
			*v = int32(integer(r, 31))
		}
	}
	for _, v := range []*int64{&l.Long1, &l.Long2, &l.Long3} {
		if set() {
			*v = integer(r, 63)
		}
	}
	for _, v := range []*float64{&l.Double1, &l.Double2, &l.Double3} {
		if set() {
			*v = float64(1+r.Int64N(1<<53)) / (1 << 43) // exact on every platform, and up to 1024
		}
	}
	for _, v := range []*bool{&l.Bool1, &l.Bool2, &l.Bool3} {
		*v = set()
	}
	for _, v := range []*string{&l.String1, &l.String2, &l.String3} {
		if set() {
			*v = letters(r, 1+r.IntN(16))
		}
	}
	return &l
}

// integer has from 1 to bits bits, each number of them about as often, and is not 0. One in eight is negative.
func integer(r *rand.Rand, bits int) int64 {
	v := 1 + r.Int64N(int64(1)<<(1+r.IntN(bits))-1)
	if r.IntN(8) == 0 {
		return -v
	}
	return v
}

func letters(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[r.IntN(36)]
	}
	return string(b)
}

// size is in bytes on the protobuf wire, where the tag of each of the fields is one byte.
func (l *Leaf) size() (n int) {
	for _, v := range []int64{int64(l.Int1), int64(l.Int2), int64(l.Int3), l.Long1, l.Long2, l.Long3} {
		if v != 0 {
			n += 1 + varintSize(uint64(v))
		}
	}
	for _, v := range []float64{l.Double1, l.Double2, l.Double3} {
		if v != 0 {
			n += 1 + 8
		}
	}
	for _, v := range []bool{l.Bool1, l.Bool2, l.Bool3} {
		if v {
			n += 1 + 1
		}
	}
	for _, v := range []string{l.String1, l.String2, l.String3} {
		if v != "" {
			n += 1 + varintSize(uint64(len(v))) + len(v)
		}
	}
	return n
}

// childSize is of a message in field 16, whose tag is two bytes.
func childSize(size int) int { return 2 + varintSize(uint64(size)) + size }

func varintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
