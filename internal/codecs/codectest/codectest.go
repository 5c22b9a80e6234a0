// Package codectest is what the tests of several codecs share.
package codectest

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/users"
	"github.com/rpcbench/rpcbench/message"
)

// API requires that api's types are field-equal to the plain structs, with names by tag that are JSON's, that its
// conversions keep every field, and that its service answers and checks as that of the plain structs does.
func API[U, R, F, E any](t *testing.T, tag string, api binding.API[U, R, F, E]) {
	t.Run("types", func(t *testing.T) {
		require.Contains(t, Shape(reflect.TypeFor[rpcbench.Response]()), "Avatar avatar,omitempty slice of uint8", "within the user")
		for own, plain := range map[reflect.Type]reflect.Type{
			reflect.TypeFor[U](): reflect.TypeFor[rpcbench.User](),
			reflect.TypeFor[R](): reflect.TypeFor[rpcbench.Response](),
			reflect.TypeFor[F](): reflect.TypeFor[message.Flex](),
			reflect.TypeFor[E](): reflect.TypeFor[rpcbench.Error](),
		} {
			require.Equal(t, Shape(plain), Shape(own), "%v: a field of one alone would be lost on the way", own)
			Names(t, tag, own)
		}
	})
	t.Run("flex", func(t *testing.T) {
		all := Flexes(t)
		for i, f := range all {
			require.True(t, f.Equal(binding.Convert[message.Flex](binding.Convert[F](f))), "%+v: conversion keeps every field", f)
			for j, g := range all {
				require.Equal(t, i == j, f.Equal(g))
				require.Equal(t, i == j, api.Equal(binding.Convert[F](f), binding.Convert[F](g)), "%+v\n%+v", f, g)
			}
		}
	})
	t.Run("user", func(t *testing.T) { user(t, api) })
	t.Run("error", func(t *testing.T) {
		for _, e := range []*rpcbench.Error{
			{Code: rpcbench.Invalid, Violations: []rpcbench.Violation{{Field: "email", Rule: "required"}, {Field: "name", Rule: "min=4"}}},
			{Code: rpcbench.Malformed, Message: "unexpected end"},
		} {
			require.Equal(t, e, api.ToError(api.FromError(e)))
		}
	})
}

// user requires the same answer and the same errors as of the service of the plain struct, and the same check of the reply.
func user[U, R, F, E any](t *testing.T, api binding.API[U, R, F, E]) {
	plain := binding.Plain()
	u := users.Sample(0, 3)
	u.ID = "7"
	for _, asked := range []rpcbench.User{u, users.Sample(1, 0), {}} {
		theirs, ours := asked, asked
		want, wantErr := plain.NewService()(t.Context(), &theirs)
		got, err := api.NewService()(t.Context(), binding.Convert[U](&ours))
		require.Equal(t, wantErr, err)
		if err == nil {
			require.Equal(t, want, binding.Convert[rpcbench.Response](got))
		}
	}
	field := func(of any, name string) reflect.Value { return reflect.ValueOf(of).Elem().FieldByName(name) }
	nobody := new(R)
	field(nobody, "Code").SetInt(7)
	require.Equal(t, &rpcbench.Response{Code: 7}, binding.Convert[rpcbench.Response](nobody), "no user")

	answer := func() *R {
		asked := u
		r, err := api.NewService()(t.Context(), binding.Convert[U](&asked))
		require.NoError(t, err)
		return r
	}
	require.NoError(t, api.Check(binding.Convert[U](&u), answer()))
	differs := func(r *R, v reflect.Value, what string) {
		require.False(t, v.IsZero(), "%s would not be tested", what)
		v.SetZero()
		require.Equal(t, rpcbench.Internal, rpcbench.CodeOf(api.Check(binding.Convert[U](&u), r)), "the reply lacks %s", what)
	}
	for f := range reflect.TypeFor[R]().Fields() {
		r := answer()
		differs(r, field(r, f.Name), f.Name)
	}
	for f := range reflect.TypeFor[U]().Fields() {
		r := answer()
		differs(r, field(r, "User").Elem().FieldByName(f.Name), f.Name)
	}
}

// Shape describes a type by its fields' names, kinds and json tags, in order; what JSON does not send is left out.
func Shape(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return t.Kind().String() + " of " + Shape(t.Elem())
	case reflect.Struct:
		var fields strings.Builder
		for f := range t.Fields() {
			if tag := f.Tag.Get("json"); tag != "-" {
				fields.WriteString("\n" + f.Name + " " + tag + " " + Shape(f.Type))
			}
		}
		return "struct {" + fields.String() + "\n}"
	}
	return t.Kind().String()
}

// Names requires that every field of t, a struct, and of the structs within it has the tag that it has for JSON: the
// same name, and left out as there. A limit is the codec's own.
func Names(t *testing.T, tag string, typ reflect.Type) {
	t.Helper()
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct {
		return
	}
	for f := range typ.Fields() {
		got, _, _ := strings.Cut(f.Tag.Get(tag), ",limit=")
		require.Equal(t, f.Tag.Get("json"), got, "%v.%s", typ, f.Name)
		Names(t, tag, f.Type)
	}
}

// Flexes are pairwise different: message.Complex, each with one field changed, and values that == takes for equal or
// for different from themselves.
func Flexes(t *testing.T) []*message.Flex {
	all := []*message.Flex{message.Complex(), {}, {Double: math.Copysign(0, -1)}, {Float: float32(math.Copysign(0, -1))},
		{Double: math.NaN()}, {Float: float32(math.NaN())}}
	for i := range reflect.TypeFor[message.Flex]().NumField() {
		f := message.Complex()
		v := reflect.ValueOf(f).Elem().Field(i)
		require.False(t, v.IsZero(), "field %d of message.Complex would not be tested", i)
		v.SetZero()
		all = append(all, f)
	}
	for _, change := range []func(*message.Flex) **message.Pair{
		func(f *message.Flex) **message.Pair { return &f.Message },
		func(f *message.Flex) **message.Pair { return &f.First[0] },
		func(f *message.Flex) **message.Pair { return &f.Second[0] },
		func(f *message.Flex) **message.Pair { return &f.Optional },
	} {
		for _, p := range []*message.Pair{{}, {Key: "x"}, {Value: 7}} {
			f := message.Complex()
			*change(f) = p
			all = append(all, f)
		}
	}
	return all
}

// AsEncodingJSON requires that c, which calls itself compatible, writes the bytes of encoding/json and reads the same
// from them, so that rows differ in the library alone.
func AsEncodingJSON(t *testing.T, c codec.Codec) {
	unsorted := map[string]int{}
	for _, key := range strings.Fields("the keys of a map are sorted by what calls itself compatible") {
		unsorted[key] = len(key)
	}
	for _, name := range []string{"Anna", "<b>&'\"</b>", "a\u2028b\u2029c", "\x00\t\r\n\x1f\x7f", `\u0041`, "\U0001F600", "in\xffvalid", strings.Repeat("n", 1000)} {
		u := users.Sample(0, 100)
		u.Name = name
		for _, v := range []any{u, &u, rpcbench.Answer(&u), rpcbench.NewValidator[rpcbench.User]()(new(rpcbench.User)), unsorted, message.Complex()} {
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
