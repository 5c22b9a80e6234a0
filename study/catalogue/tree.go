package catalogue

import (
	"math/bits"
	"math/rand/v2"
	"reflect"
)

// NewTree makes a tree of at least size bytes as protobuf; it exceeds size by little more than one message. A dense
// tree has every scalar field set, a sparse tree about one in five.
func NewTree(seed uint64, size int, dense bool) *Tree {
	r := source(seed)
	t := new(Tree)
	for have := fill(t, r, dense); have < size; {
		b := new(Branch)
		inside := fill(b, r, dense)
		for len(b.Leaves) < 10 && have+childSize(inside) < size {
			l := new(Leaf)
			inside += childSize(fill(l, r, dense))
			b.Leaves = append(b.Leaves, l)
		}
		t.Branches = append(t.Branches, b)
		have += childSize(inside)
	}
	return t
}

// fill sets scalar fields of a message. It returns their size as protobuf, where each tag takes one byte.
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

// integer returns a random number other than 0, one in eight negative. Each length from 1 to bits bits is about as
// likely.
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

// childSize returns the size of a message in field 16, whose tag takes two bytes.
func childSize(size int) int { return 2 + varintSize(uint64(size)) + size }

func varintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
