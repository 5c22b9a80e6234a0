package binding_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/msgp"
	"github.com/rpcbench/rpcbench/codec/xmlstd"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/message"
)

func TestAlike(t *testing.T) {
	t.Run("msgp", func(t *testing.T) {
		testAPI(t, binding.Alike[msgp.User, msgp.Response, msgp.Flex, msgp.Error]())
	})
	t.Run("xml", func(t *testing.T) {
		testAPI(t, binding.Alike[xmlstd.User, xmlstd.Response, xmlstd.Flex, xmlstd.Error]())
	})
}

// Types that lie in memory in another way are refused.
func TestAlikeRefuses(t *testing.T) {
	type (
		reordered struct {
			ID, Name, Email, Password string
			Avatar                    []byte
		}
		short struct{ ID, Email, Name, Password string }
		long  struct {
			ID, Email, Name, Password string
			Avatar                    []byte
			More                      int
		}
		other struct {
			ID, Email, Name, Password string
			Avatar                    string
		}
	)
	refuses := func(why string, make func()) { require.Panics(t, make, why) }
	refuses("another order", func() { binding.Alike[reordered, msgp.Response, msgp.Flex, msgp.Error]() })
	refuses("a field less", func() { binding.Alike[short, msgp.Response, msgp.Flex, msgp.Error]() })
	refuses("a field more", func() { binding.Alike[long, msgp.Response, msgp.Flex, msgp.Error]() })
	refuses("another type", func() { binding.Alike[other, msgp.Response, msgp.Flex, msgp.Error]() })
	refuses("another type within", func() {
		binding.Alike[msgp.User, struct {
			Code    int32
			Message string
			User    *other
		}, msgp.Flex, msgp.Error]()
	})
	refuses("an Error with what is not sent", func() { binding.Alike[msgp.User, msgp.Response, msgp.Flex, msgp.Code]() })
}

// testAPI requires that api's types are field-equal to the plain structs, that its
// conversions keep every field, and that its service answers and checks as that of the plain structs does.
func testAPI[U, R, F, E any](t *testing.T, api binding.API[U, R, F, E]) {
	t.Run("types", func(t *testing.T) {
		require.Contains(t, shape(reflect.TypeFor[rpcbench.Response]()), "Avatar avatar,omitempty slice of uint8", "within the user")
		for own, plain := range map[reflect.Type]reflect.Type{
			reflect.TypeFor[U](): reflect.TypeFor[rpcbench.User](),
			reflect.TypeFor[R](): reflect.TypeFor[rpcbench.Response](),
			reflect.TypeFor[F](): reflect.TypeFor[message.Flex](),
			reflect.TypeFor[E](): reflect.TypeFor[rpcbench.Error](),
		} {
			require.Equal(t, shape(plain), shape(own), "%v: a field of one alone would be lost on the way", own)
		}
	})
	t.Run("flex", func(t *testing.T) {
		all := flexes(t)
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
	u := corpus.Sample(0, 3)
	u.ID = "7"
	for _, asked := range []rpcbench.User{u, corpus.Sample(1, 0), {}} {
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

// shape describes a type by its fields' names, kinds and json tags, in order; what JSON does not send is left out.
func shape(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return t.Kind().String() + " of " + shape(t.Elem())
	case reflect.Struct:
		var fields strings.Builder
		for f := range t.Fields() {
			if tag := f.Tag.Get("json"); tag != "-" {
				fields.WriteString("\n" + f.Name + " " + tag + " " + shape(f.Type))
			}
		}
		return "struct {" + fields.String() + "\n}"
	}
	return t.Kind().String()
}

// flexes are pairwise different: message.Complex, each with one field changed, and values that == takes for equal or
// for different from themselves.
func flexes(t *testing.T) []*message.Flex {
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
