package message

import (
	"math/bits"
	"math/rand/v2"
	"reflect"
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
	t := new(Tree)
	for have := fill(t, r, dense); have < size; {
		b := new(Branch)
		inside := fill(b, r, dense)
		for len(b.Leaves) < leaves && have+childSize(inside) < size {
			l := new(Leaf)
			inside += childSize(fill(l, r, dense))
			b.Leaves = append(b.Leaves, l)
		}
		t.Branches = append(t.Branches, b)
		have += childSize(inside)
	}
	return t
}

// fill sets scalar fields of a message. It returns their size on the protobuf wire, where the tag of each is one byte.
func fill(m any, r *rand.Rand, dense bool) (size int) {
	for _, f := range reflect.ValueOf(m).Elem().Fields() {
		if f.Kind() == reflect.Slice || !dense && r.IntN(5) != 0 {
			continue
		}
		switch f.Kind() {
		case reflect.Int32, reflect.Int64:
			f.SetInt(integer(r, f.Type().Bits()-1))
			size += 1 + varintSize(uint64(f.Int()))
		case reflect.Float64:
			f.SetFloat(float64(1+r.Int64N(1<<53)) / (1 << 43)) // exact on every platform, and up to 1024
			size += 1 + 8
		case reflect.Bool:
			f.SetBool(true)
			size += 1 + 1
		case reflect.String:
			f.SetString(letters(r, 1+r.IntN(16)))
			size += 1 + varintSize(uint64(f.Len())) + f.Len()
		}
	}
	return size
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

// childSize is of a message in field 16, whose tag is two bytes.
func childSize(size int) int { return 2 + varintSize(uint64(size)) + size }

func varintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
