package codecs_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/bytedance/sonic"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
	"github.com/rpcbench/rpcbench/internal/transport/message"
	"github.com/rpcbench/rpcbench/study/catalogue"
	"github.com/rpcbench/rpcbench/study/codecs"
)

func rowOf(t *testing.T, name string) codecs.Row {
	t.Helper()
	for _, row := range rows() {
		if row.Name == name {
			return row
		}
	}
	require.FailNow(t, "no codec "+name)
	return codecs.Row{}
}

func named(t *testing.T, name string) codec.Codec { return rowOf(t, name).New() }

// goccy/go-json reads the runtime's own data by unsafe pointers, so each new Go release may break it.
func TestGoccyIsAsEncodingJSON(t *testing.T) { asEncodingJSON(t, named(t, "goccy")) }

func TestJSONIterIsAsEncodingJSON(t *testing.T) { asEncodingJSON(t, named(t, "jsoniter")) }

// TestSonicHasRowsOfItsOwn: where sonic is encoding/json, as earlier releases were with Go 1.27, no row has its name.
func TestSonicHasRowsOfItsOwn(t *testing.T) {
	require.Equal(t, sonic.APIKind == sonic.UseSonicJSON,
		slices.ContainsFunc(rows(), func(row codecs.Row) bool { return row.Name == "sonic" }))
}

// A field without the tag would have its Go name, and be there when it is zero.
func TestMsgpackNames(t *testing.T) {
	requireNames(t, "msgpack", reflect.TypeFor[rpcbench.User]())
	for _, e := range catalogue.All() {
		requireNames(t, "msgpack", reflect.TypeOf(e.New()))
	}
	data, err := named(t, "msgpack").Marshal(new(rpcbench.Flex))
	require.NoError(t, err)
	require.Equal(t, []byte{0x80}, data, "zero fields are left out: an empty map")
}

// requireNames requires that every field of t, a struct, and of the structs within it has the tag that it has for JSON:
// the same name, and left out as there.
func requireNames(t *testing.T, tag string, typ reflect.Type) {
	t.Helper()
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct {
		return
	}
	for f := range typ.Fields() {
		require.Equal(t, f.Tag.Get("json"), f.Tag.Get(tag), "%v.%s", typ, f.Name)
		requireNames(t, tag, f.Type)
	}
}

// asEncodingJSON requires that c, which calls itself compatible, writes the bytes of encoding/json and reads the same
// from them, so that rows differ in the library alone.
func asEncodingJSON(t *testing.T, c codec.Codec) {
	unsorted := map[string]int{}
	for _, key := range strings.Fields("the keys of a map are sorted by what calls itself compatible") {
		unsorted[key] = len(key)
	}
	validate := rpcbench.NewUserValidator[rpcbench.User](rpcbench.ServerConfig{})
	for _, name := range []string{"Anna", "<b>&'\"</b>", "a\u2028b\u2029c", "\x00\t\r\n\x1f\x7f", `\u0041`, "\U0001F600", "in\xffvalid", strings.Repeat("n", 1000)} {
		u := rpcbench.SampleUser(0, 100)
		u.Name = name
		for _, v := range []any{u, &u, rpcbench.AnswerUser(&u), validate(new(rpcbench.User)), unsorted, message.Complex()} {
			want, err := json.Marshal(v)
			require.NoError(t, err)
			got, err := c.Marshal(v)
			require.NoError(t, err)
			// encoding/json writes U+FFFD as an escape, and from Go 1.27 on as the character. Either is right.
			escaped := func(b []byte) string { return strings.ReplaceAll(string(b), "\ufffd", `\ufffd`) }
			require.Equal(t, escaped(want), escaped(got), "%T", v)
		}
		var viaStd, back rpcbench.User
		data, err := c.Marshal(u)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &viaStd))
		require.NoError(t, c.Unmarshal(data, &back))
		require.Equal(t, viaStd, back)
	}
	require.Error(t, c.Unmarshal([]byte("{}x"), new(rpcbench.User)), "garbage after the value")
	require.Equal(t, "application/json", c.ContentType())
	_, ok := c.(codec.Streaming)
	require.False(t, ok, "whole bodies, as the row says")
}
