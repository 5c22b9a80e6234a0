package codecs_test

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
	"github.com/rpcbench/rpcbench/internal/transport/message"
	messagepb "github.com/rpcbench/rpcbench/proto/message/v1"
	"github.com/rpcbench/rpcbench/study/catalogue"
	"github.com/rpcbench/rpcbench/study/codecs"
)

// ops is a row with its codec.
type ops struct {
	codecs.Row
	Codec codec.Codec
}

func newOps(row codecs.Row) *ops { return &ops{row, row.New()} }

// encoded is a copy.
func (o *ops) encoded(t testing.TB, v any) []byte {
	t.Helper()
	data, err := o.Codec.Marshal(v)
	require.NoError(t, err)
	return bytes.Clone(data)
}

// zero is a new destination.
func zero(form codecs.Form) any { return reflect.New(reflect.TypeOf(form.Value).Elem()).Interface() }

// decoded is what data say.
func (o *ops) decoded(t testing.TB, data []byte, form codecs.Form) any {
	t.Helper()
	v := zero(form)
	require.NoError(t, o.Codec.Unmarshal(data, v))
	return v
}

func eachRow(t *testing.T, test func(t *testing.T, o *ops)) {
	t.Helper()
	for _, row := range rows() {
		t.Run(row.Name, func(t *testing.T) { test(t, newOps(row)) })
	}
}

func eachMessage(t *testing.T, test func(t *testing.T, o *ops, form codecs.Form)) {
	t.Helper()
	eachRow(t, func(t *testing.T, o *ops) {
		for _, e := range codecs.Messages() {
			t.Run(e.Name, func(t *testing.T) {
				if testing.Short() && e.Size > 20_000 {
					t.Skip("large")
				}
				test(t, o, o.Form(e))
			})
		}
	})
}

func entry(t testing.TB, name string) catalogue.Entry {
	t.Helper()
	for _, e := range codecs.Messages() {
		if e.Name == name {
			return e
		}
	}
	require.FailNow(t, "no message in the catalogue is called "+name)
	return catalogue.Entry{}
}

// native makes a value of a row's own type of the plain one.
func native(form codecs.Form, plain any) any {
	v := zero(form)
	binding.Copy(v, plain)
	return v
}

// requireEqual compares what came back. Of generated types it also compares fields that they don't know.
func (o *ops) requireEqual(t testing.TB, want, got any) {
	t.Helper()
	off := 0.0
	if slices.Contains(o.Codec.Traits().Lossy, rpcbench.LossFloatDigits) {
		off = 1e-6 // what six digits leave
	}
	require.Empty(t, differ("", reflect.ValueOf(want), reflect.ValueOf(got), off))
	if m, ok := want.(proto.Message); ok {
		require.True(t, proto.Equal(m, got.(proto.Message)))
	}
}

// difference says where two messages differ, "" if nowhere. It compares bit by bit, fields by their names in JSON: a
// NaN equals itself and the two zeros differ. nil and empty slices are equal, since not every format tells them apart.
func difference(want, got any) string {
	return differ("", reflect.ValueOf(want), reflect.ValueOf(got), 0)
}

// differ lets floats be off.
func differ(path string, want, got reflect.Value, off float64) string {
	differs := func(want, got string) string { return path + ": " + want + " came as " + got }
	if want.Kind() != got.Kind() {
		return differs(want.Kind().String(), got.Kind().String())
	}
	switch want.Kind() {
	case reflect.Pointer:
		switch {
		case want.IsNil() && got.IsNil():
			return ""
		case want.IsNil():
			return differs("none", "one")
		case got.IsNil():
			return differs("one", "none")
		}
		return differ(path, want.Elem(), got.Elem(), off)
	case reflect.Struct:
		var all []string
		others := exported(got)
		for name, value := range exported(want) {
			place := strings.TrimPrefix(path+"."+name, ".")
			if other, ok := others[name]; !ok {
				all = append(all, place+": is missing in one")
			} else if d := differ(place, value, other, off); d != "" {
				all = append(all, d)
			}
			delete(others, name)
		}
		for name := range others {
			all = append(all, strings.TrimPrefix(path+"."+name, ".")+": is missing in one")
		}
		slices.Sort(all)
		return strings.Join(all, "; ")
	case reflect.Slice:
		if want.Type().Elem().Kind() == reflect.Uint8 {
			if !bytes.Equal(want.Bytes(), got.Bytes()) {
				return differs(fmt.Sprintf("%.40x", want.Bytes()), fmt.Sprintf("%.40x", got.Bytes()))
			}
			return ""
		}
		if want.Len() != got.Len() {
			return differs(fmt.Sprint(want.Len(), " elements"), fmt.Sprint(got.Len(), " elements"))
		}
		for i := range want.Len() {
			if d := differ(fmt.Sprintf("%s[%d]", path, i), want.Index(i), got.Index(i), off); d != "" {
				return d
			}
		}
		return ""
	case reflect.Float32, reflect.Float64:
		if math.Float64bits(want.Float()) == math.Float64bits(got.Float()) || off > 0 &&
			math.Abs(want.Float()-got.Float()) <= off {
			return ""
		}
		return differs(fmt.Sprint(want), fmt.Sprint(got))
	case reflect.Bool, reflect.String, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64:
		if want.Equal(got.Convert(want.Type())) {
			return ""
		}
		return differs(fmt.Sprintf("%.40q", fmt.Sprint(want)), fmt.Sprintf("%.40q", fmt.Sprint(got)))
	}
	panic("the catalogue has no " + want.Kind().String())
}

// exported are the exported fields by their names in JSON.
func exported(v reflect.Value) map[string]reflect.Value {
	named := map[string]reflect.Value{}
	for f, value := range v.Fields() {
		if f.IsExported() {
			named[binding.JSONName(f)] = value
		}
	}
	return named
}

func TestDiffer(t *testing.T) {
	complex := message.Complex
	for _, c := range []struct {
		why  string
		give func(*rpcbench.Flex)
		want string
	}{
		{"none", func(*rpcbench.Flex) {}, ""},
		{"a bit of a float", func(f *rpcbench.Flex) { f.Double = math.Nextafter(f.Double, 4) },
			"double: 3.141592653589793 came as 3.1415926535897936"},
		{"a float", func(f *rpcbench.Flex) { f.Float = 0 }, "float: 2.7182817 came as 0"},
		{"the sign of a zero", func(f *rpcbench.Flex) { f.Float = float32(math.Copysign(0, -1)) },
			"float: 2.7182817 came as -0"},
		{"an integer", func(f *rpcbench.Flex) { f.Sint64++ }, `sint64: "-8589934592" came as "-8589934591"`},
		{"a string", func(f *rpcbench.Flex) { f.String += "x" }, `string: "hello, flex" came as "hello, flexx"`},
		{"bytes", func(f *rpcbench.Flex) { f.Bytes[0] = 1 }, "bytes: 000102feff came as 010102feff"},
		{"no bytes", func(f *rpcbench.Flex) { f.Bytes = nil }, "bytes: 000102feff came as "},
		{"a message less", func(f *rpcbench.Flex) { f.Optional = nil }, "optional: one came as none"},
		{"within a message", func(f *rpcbench.Flex) { f.Message.Value = 7 }, `message.value: "1" came as "7"`},
		{"an element more", func(f *rpcbench.Flex) { f.First = append(f.First, nil) },
			"first: 1 elements came as 2 elements"},
		{"two fields", func(f *rpcbench.Flex) { f.Float, f.String = 0, "" },
			`float: 2.7182817 came as 0; string: "hello, flex" came as ""`},
		{"an element", func(f *rpcbench.Flex) { f.Second[0].Key = "" }, `second[0].key: "c" came as ""`},
	} {
		got := complex()
		c.give(got)
		require.Equal(t, c.want, difference(complex(), got), c.why)
	}
	require.Empty(t, difference(&rpcbench.Flex{Double: math.NaN(), Bytes: []byte{}}, &rpcbench.Flex{Double: math.NaN()}))
	require.Equal(t, "optional: none came as one",
		difference(&rpcbench.Flex{}, &rpcbench.Flex{Optional: &rpcbench.Pair{}}))
	require.Equal(t, `string: "a" came as "b"`,
		difference(&rpcbench.Flex{String: "a"}, &messagepb.Flex{String_: "b"}), "another type")
	type other struct{ Key, Value string }
	require.Contains(t, difference(&rpcbench.Pair{}, &other{}), "is missing in one", "no names in JSON")
}
