package codecs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/message"
	"github.com/rpcbench/rpcbench/message/messagepb"
)

// wire are the message's bytes, by the library that defines them.
func wire(t *testing.T, m any) []byte {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m.(proto.Message))
	require.NoError(t, err)
	return data
}

func gzipRatio(t *testing.T, data []byte) float64 {
	t.Helper()
	if len(data) == 0 {
		return 0
	}
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	_, err := z.Write(data)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return float64(buf.Len()) / float64(len(data))
}

func TestSizesAndEntropyAreAsDeclared(t *testing.T) {
	for _, e := range Messages() {
		t.Run(e.Name, func(t *testing.T) {
			data := wire(t, protobufTypes(e).Value)
			ratio := gzipRatio(t, data)
			t.Logf("%d bytes, gzip %.2f", len(data), ratio)
			require.Equal(t, e.Size, len(data), "bytes of protobuf")
			// A release of Go may compress otherwise by a byte or two, which is much of a message of three bytes.
			require.InDelta(t, e.Gzip, ratio, max(0.05, 2/float64(max(1, e.Size))), "size after gzip, over size")
		})
	}
}

func TestMessagesCoverTheSizes(t *testing.T) {
	smallest, largest := math.MaxInt, 0
	names := map[string]bool{}
	for _, e := range Messages() {
		require.False(t, names[e.Name], "two messages are called %s", e.Name)
		names[e.Name] = true
		if e.Size > 0 {
			smallest = min(smallest, e.Size)
		}
		largest = max(largest, e.Size)
		switch {
		case strings.HasPrefix(e.Name, "article."):
			require.InDelta(t, 0.4, e.Gzip, 0.07, "%s: text compresses as English does", e.Name)
		case e.Name == "user.10kB":
			require.GreaterOrEqual(t, e.Gzip, 0.99, "%s: bytes do not compress", e.Name)
		}
	}
	require.LessOrEqual(t, smallest, 8)
	require.Greater(t, largest, 130_000)
}

// The same bytes in every process, on every platform and with every release of Go: else rows can't be compared.
func TestMessagesComeFromASeed(t *testing.T) {
	all := sha256.New()
	for _, e := range Messages() {
		all.Write(wire(t, protobufTypes(e).Value))
	}
	require.Equal(t, "6a2b7b0d71d22182", hex.EncodeToString(all.Sum(nil)[:8]), "a message has changed: earlier results are of another")
}

// Sizes that NewTree reckons with are protobuf's.
func TestTreesHaveTheirSize(t *testing.T) {
	for seed := range uint64(10) {
		for _, size := range []int{0, 30, 1000, 20_000} {
			for _, dense := range []bool{false, true} {
				got := proto.Size(binding.Convert[messagepb.Tree](message.NewTree(seed, size, dense)))
				require.GreaterOrEqual(t, got, size, "seed %d, dense %v", seed, dense)
				require.Less(t, got, size+160, "seed %d, dense %v: the longest message", seed, dense)
			}
		}
	}
}

var forms = []struct {
	name string
	of   func(e message.Entry) Form
}{
	{"plain", plainTypes}, {"protobuf", protobufTypes}, {"pooled", pooledTypes}, {"msgp", msgpTypes}, {"xml", xmlTypes},
}

func TestFormsAreEqual(t *testing.T) {
	for _, e := range Messages() {
		for _, f := range forms {
			form := f.of(e)
			require.Empty(t, difference(e.Name, reflect.ValueOf(e.New()), reflect.ValueOf(form.Value)), f.name)
			fresh := form.Fresh()
			require.IsType(t, form.Value, fresh, "%s as %s", e.Name, f.name)
			zero := reflect.New(reflect.TypeOf(fresh).Elem())
			if f.name != "pooled" { // whose lists may have been used before, and are kept for the next
				require.Equal(t, zero.Interface(), fresh, "%s as %s: a fresh value is zero", e.Name, f.name)
			}
			require.Empty(t, difference(e.Name, zero, reflect.ValueOf(fresh)), "%s: a fresh value has nothing in it", f.name)
		}
		data := wire(t, protobufTypes(e).Value)
		require.Equal(t, data, wire(t, pooledTypes(e).Value), "%s: field numbers and kinds of the pooled type", e.Name)
	}
}

// What a decoder's destination costs is billed to the decoder: it is what new costs.
func TestFreshIsOneAllocation(t *testing.T) {
	for _, e := range Messages() {
		for _, f := range forms {
			if f.name == "pooled" {
				continue // its pool is empty after a collection
			}
			fresh := f.of(e).Fresh
			var v any
			require.Equal(t, 1.0, testing.AllocsPerRun(100, func() { v = fresh() }), "%s as %s", e.Name, f.name)
			require.NotSame(t, v, fresh(), "%s as %s", e.Name, f.name)
		}
	}
}

// difference is the first between two messages in native types, as a sentence, or "". Fields go by their names; nil and
// empty slices are equal, nil and empty messages are not.
func difference(path string, a, b reflect.Value) string {
	if a.Kind() != b.Kind() {
		return fmt.Sprintf("%s is %v and %v", path, a.Type(), b.Type())
	}
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			if a.IsNil() != b.IsNil() {
				return path + " is nil in one"
			}
			return ""
		}
		return difference(path, a.Elem(), b.Elem())
	case reflect.Slice:
		if a.Len() != b.Len() {
			return fmt.Sprintf("%s has %d and %d elements", path, a.Len(), b.Len())
		}
		for i := range a.Len() {
			if d := difference(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i)); d != "" {
				return d
			}
		}
	case reflect.Struct:
		others := fields(b)
		for name, v := range fields(a) {
			other, ok := others[name]
			if !ok {
				return path + "." + name + " is missing in one"
			}
			if d := difference(path+"."+name, v, other); d != "" {
				return d
			}
			delete(others, name)
		}
		for name := range others {
			return path + "." + name + " is missing in one"
		}
	case reflect.Float32, reflect.Float64:
		return unless(math.Float64bits(a.Float()) == math.Float64bits(b.Float()), path, a.Float(), b.Float())
	case reflect.Int32, reflect.Int64:
		return unless(a.Int() == b.Int(), path, a.Int(), b.Int())
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		return unless(a.Uint() == b.Uint(), path, a.Uint(), b.Uint())
	case reflect.String:
		return unless(a.String() == b.String(), path, a.String(), b.String())
	case reflect.Bool:
		return unless(a.Bool() == b.Bool(), path, a.Bool(), b.Bool())
	default:
		return fmt.Sprintf("%s is a %v, which no message has", path, a.Kind())
	}
	return ""
}

func unless(equal bool, path string, a, b any) string {
	if equal {
		return ""
	}
	return fmt.Sprintf("%s is %v and %v", path, a, b)
}

// fields are the exported ones by the names that all native types agree on: protobuf writes ID as Id, and String as
// String_, since generated types have a method String.
func fields(v reflect.Value) map[string]reflect.Value {
	named := map[string]reflect.Value{}
	for f, value := range v.Fields() {
		if f.IsExported() {
			named[strings.ToLower(strings.TrimSuffix(f.Name, "_"))] = value
		}
	}
	return named
}

func TestDifference(t *testing.T) {
	type more struct {
		Key   string
		Value int64
		More  bool
	}
	type short struct {
		Key   string
		Value int32
	}
	empty := []*message.Pair{}
	for _, c := range []struct {
		reason string
		a, b   any
		want   string
	}{
		{"equal", message.Complex(), message.Complex(), ""},
		{"another type of the same fields", &message.Pair{Key: "a", Value: 1}, &messagepb.Pair{Key: "a", Value: 1}, ""},
		{"another name of a string", &message.Flex{String: "a"}, &messagepb.Flex{String_: "b"}, "m.string is a and b"},
		{"a number", &message.Pair{Value: 1}, &messagepb.Pair{Value: 2}, "m.value is 1 and 2"},
		{"the sign of a zero", &message.Flex{Double: math.Copysign(0, -1)}, &message.Flex{}, "m.double is -0 and 0"},
		{"a byte", &message.Flex{Bytes: []byte{1, 2}}, &message.Flex{Bytes: []byte{1, 3}}, "m.bytes[1] is 2 and 3"},
		{"nil and empty slices", &message.Flex{First: empty}, &message.Flex{}, ""},
		{"nil and empty messages", &message.Flex{Message: &message.Pair{}}, &message.Flex{}, "m.message is nil in one"},
		{"a longer list", &message.Flex{First: []*message.Pair{{}}}, &message.Flex{}, "m.first has 1 and 0 elements"},
		{"a field within a list", &message.Flex{First: []*message.Pair{{Key: "a"}}}, &message.Flex{First: []*message.Pair{{Key: "b"}}},
			"m.first[0].key is a and b"},
		{"a field more", &more{}, &message.Pair{}, "m.more is missing in one"},
		{"a field less", &message.Pair{}, &more{}, "m.more is missing in one"},
		{"another kind of number", &message.Pair{}, &short{}, "m.value is int64 and int32"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			require.Equal(t, c.want, difference("m", reflect.ValueOf(c.a), reflect.ValueOf(c.b)))
		})
	}
}
