package msgp_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/msgp"
	"github.com/rpcbench/rpcbench/internal/native"
	"github.com/rpcbench/rpcbench/internal/users"
	"github.com/rpcbench/rpcbench/message"
)

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

// A field that is added to a plain type, and not to the native one, would be lost on the way.
func TestTypesAreFieldEqual(t *testing.T) {
	require.Contains(t, shape(reflect.TypeFor[rpcbench.Response]()), "Avatar avatar,omitempty slice of uint8", "within the user")
	for native, plain := range map[reflect.Type]reflect.Type{
		reflect.TypeFor[msgp.User]():      reflect.TypeFor[rpcbench.User](),
		reflect.TypeFor[msgp.Response]():  reflect.TypeFor[rpcbench.Response](),
		reflect.TypeFor[msgp.Flex]():      reflect.TypeFor[message.Flex](),
		reflect.TypeFor[msgp.Error]():     reflect.TypeFor[rpcbench.Error](),
		reflect.TypeFor[msgp.Pair]():      reflect.TypeFor[message.Pair](),
		reflect.TypeFor[msgp.Violation](): reflect.TypeFor[rpcbench.Violation](),
	} {
		require.Equal(t, shape(plain), shape(native), "%v", native)
		for f := range native.Fields() {
			tag, _, _ := strings.Cut(f.Tag.Get("msg"), ",limit=")
			require.Equal(t, f.Tag.Get("json"), tag, "%v.%s is named and left out as in JSON", native, f.Name)
		}
	}
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

func TestFlex(t *testing.T) {
	api := msgp.API()
	all := flexes(t)
	for i, f := range all {
		require.True(t, f.Equal(api.ToFlex(api.FromFlex(f))), "%+v: conversion keeps every field", f)
		for j, g := range all {
			require.Equal(t, i == j, f.Equal(g))
			require.Equal(t, i == j, api.Equal(api.FromFlex(f), api.FromFlex(g)), "%+v\n%+v", f, g)
		}
	}
}

// The same answer and the same errors as the service of the plain struct, and the same check of the reply.
func TestUser(t *testing.T) {
	api, plain := msgp.API(), native.Plain()
	u := users.Sample(0, 3)
	u.ID = "7"
	for _, asked := range []rpcbench.User{u, users.Sample(1, 0), {}} {
		theirs := asked
		want, wantErr := plain.NewService()(t.Context(), &theirs)
		ours := asked
		got, err := api.NewService()(t.Context(), api.FromUser(&ours))
		require.Equal(t, wantErr, err)
		if err == nil {
			require.Equal(t, want, api.ToResponse(got))
		}
	}
	require.Equal(t, &rpcbench.Response{Code: 7}, api.ToResponse(&msgp.Response{Code: 7}), "no user")

	answer := func() *msgp.Response {
		asked := u
		r, err := api.NewService()(t.Context(), api.FromUser(&asked))
		require.NoError(t, err)
		return r
	}
	require.NoError(t, api.Check(api.FromUser(&u), answer()))
	differs := func(what string, change func(*msgp.Response) reflect.Value) {
		r := answer()
		v := change(r)
		require.False(t, v.IsZero(), "%s would not be tested", what)
		v.SetZero()
		require.Equal(t, rpcbench.Internal, rpcbench.CodeOf(api.Check(api.FromUser(&u), r)), "the reply lacks %s", what)
	}
	for f := range reflect.TypeFor[msgp.Response]().Fields() {
		differs(f.Name, func(r *msgp.Response) reflect.Value { return reflect.ValueOf(r).Elem().FieldByIndex(f.Index) })
	}
	for f := range reflect.TypeFor[msgp.User]().Fields() {
		differs(f.Name, func(r *msgp.Response) reflect.Value { return reflect.ValueOf(r.User).Elem().FieldByIndex(f.Index) })
	}
}

func TestError(t *testing.T) {
	api := msgp.API()
	for _, e := range []*rpcbench.Error{
		{Code: rpcbench.Invalid, Violations: []rpcbench.Violation{{Field: "email", Rule: "required"}, {Field: "name", Rule: "min=4"}}},
		{Code: rpcbench.Malformed, Message: "unexpected end"},
	} {
		require.Equal(t, e, api.ToError(api.FromError(e)))
	}
}
