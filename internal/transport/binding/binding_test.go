package binding_test

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/binding/pb"
	"github.com/rpcbench/rpcbench/internal/transport/codec/msgp"
	"github.com/rpcbench/rpcbench/internal/transport/codec/xmlstd"
	"github.com/rpcbench/rpcbench/internal/transport/message"
)

func TestAPI(t *testing.T) {
	t.Run("msgp", func(t *testing.T) {
		testAPI(t, binding.Alike[msgp.User, msgp.Response, msgp.Flex, msgp.Error](), true)
	})
	t.Run("xml", func(t *testing.T) {
		testAPI(t, binding.Alike[xmlstd.User, xmlstd.Response, xmlstd.Flex, xmlstd.Error](), true)
	})
	t.Run("protobuf", func(t *testing.T) { testAPI(t, pb.API(), false) })
}

// A copy shares no memory with what it was made of: a client's caller may change its user after PrepareUser.
func TestCopiesAreDeep(t *testing.T) {
	u, m := rpcbench.SampleUser(1, 10), message.Complex()
	user, flex := binding.Convert[rpcbench.User](&u), binding.Convert[rpcbench.Flex](m)
	u.Avatar[3]++
	require.Equal(t, rpcbench.SampleUser(1, 10), *user)
	m.Bytes[0]++
	m.Message.Value++
	m.First[0].Value++
	require.True(t, message.Complex().Equal(flex))
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

// testAPI requires that api's conversions keep every field, and that its service answers and checks as that of the
// plain structs does. Exact types tell a NaN and a negative zero from other numbers.
func testAPI[U, R, F, E any](t *testing.T, api binding.API[U, R, F, E], exact bool) {
	t.Run("flex", func(t *testing.T) {
		all := flexes(t)
		if exact {
			all = append(all, &rpcbench.Flex{Double: math.Copysign(0, -1)}, &rpcbench.Flex{Float: float32(math.Copysign(0, -1))},
				&rpcbench.Flex{Double: math.NaN()}, &rpcbench.Flex{Float: float32(math.NaN())})
		}
		for i, f := range all {
			require.True(t, f.Equal(binding.Convert[rpcbench.Flex](binding.Convert[F](f))), "%+v: conversion keeps every field",
				f)
			for j, g := range all {
				require.Equal(t, i == j, f.Equal(g))
				require.Equal(t, i == j, api.Equal(binding.Convert[F](f), binding.Convert[F](g)), "%+v\n%+v", f, g)
			}
		}
	})
	t.Run("user", func(t *testing.T) { user(t, api) })
	t.Run("error", func(t *testing.T) {
		for _, e := range []*rpcbench.Error{
			{Code: rpcbench.CodeInvalid, Violations: []rpcbench.Violation{{Field: "email", Rule: "required"},
				{Field: "name", Rule: "min=4"}}},
			{Code: rpcbench.CodeMalformed, Message: "unexpected end"},
		} {
			require.Equal(t, e, api.ToError(api.FromError(e)))
		}
	})
}

// user requires the same answer and the same errors as of the service of the plain struct, and the same check of the
// reply.
func user[U, R, F, E any](t *testing.T, api binding.API[U, R, F, E]) {
	plain := binding.Plain()
	u := rpcbench.SampleUser(0, 3)
	u.ID = "7"
	for _, asked := range []rpcbench.User{u, rpcbench.SampleUser(1, 0), {}} {
		theirs, ours := asked, asked
		want, wantErr := plain.NewService(rpcbench.ServerConfig{})(t.Context(), &theirs)
		got, err := api.NewService(rpcbench.ServerConfig{})(t.Context(), binding.Convert[U](&ours))
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
		r, err := api.NewService(rpcbench.ServerConfig{})(t.Context(), binding.Convert[U](&asked))
		require.NoError(t, err)
		return r
	}
	native, right := binding.Convert[U](&u), answer()
	require.NoError(t, api.Check(native, right))
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = api.Check(native, right) }), "allocations of a check")
	differs := func(r *R, v reflect.Value, what string) {
		require.False(t, v.IsZero(), "%s would not be tested", what)
		v.SetZero()
		require.Equal(t, rpcbench.CodeInternal, rpcbench.CodeOf(api.Check(binding.Convert[U](&u), r)),
			"the reply lacks %s", what)
	}
	for f := range reflect.TypeFor[R]().Fields() {
		if r := answer(); f.IsExported() {
			differs(r, field(r, f.Name), f.Name)
		}
	}
	for f := range reflect.TypeFor[U]().Fields() {
		if r := answer(); f.IsExported() {
			differs(r, field(r, "User").Elem().FieldByName(f.Name), f.Name)
		}
	}
}

// flexes are pairwise different: message.Complex, and each with one field changed.
func flexes(t *testing.T) []*rpcbench.Flex {
	all := []*rpcbench.Flex{message.Complex(), {}}
	for i := range reflect.TypeFor[rpcbench.Flex]().NumField() {
		f := message.Complex()
		v := reflect.ValueOf(f).Elem().Field(i)
		require.False(t, v.IsZero(), "field %d of message.Complex would not be tested", i)
		v.SetZero()
		all = append(all, f)
	}
	for _, change := range []func(*rpcbench.Flex) **rpcbench.Pair{
		func(f *rpcbench.Flex) **rpcbench.Pair { return &f.Message },
		func(f *rpcbench.Flex) **rpcbench.Pair { return &f.First[0] },
		func(f *rpcbench.Flex) **rpcbench.Pair { return &f.Second[0] },
		func(f *rpcbench.Flex) **rpcbench.Pair { return &f.Optional },
	} {
		for _, p := range []*rpcbench.Pair{{}, {Key: "x"}, {Value: 7}} {
			f := message.Complex()
			*change(f) = p
			all = append(all, f)
		}
	}
	return all
}
