package pbnative_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/pbnative"
	"github.com/rpcbench/rpcbench/internal/users"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

// full is a user with something in every field.
func full() rpcbench.User {
	u := users.Sample(0, 3)
	u.ID = "7"
	return u
}

// eachField calls f with every exported field of the struct that p points to.
func eachField(p any, f func(name string, v reflect.Value)) {
	v := reflect.ValueOf(p).Elem()
	for i := range v.NumField() {
		if field := v.Type().Field(i); field.IsExported() {
			f(field.Name, v.Field(i))
		}
	}
}

func TestConversionsKeepEveryField(t *testing.T) {
	u := full()
	eachField(&u, func(name string, v reflect.Value) { require.False(t, v.IsZero(), "%s would not be tested", name) })
	native := pbnative.FromUser(u)
	eachField(native, func(name string, v reflect.Value) { require.False(t, v.IsZero(), "%s is lost on the way", name) })
	reply := rpcbench.Response{Code: 200, Message: "OK", User: &u}
	require.Equal(t, reply, pbnative.ToResponse(&userv1.CreateUserResponse{Code: 200, Message: "OK", User: native}))
	require.Equal(t, rpcbench.Response{Code: 200}, pbnative.ToResponse(&userv1.CreateUserResponse{Code: 200}), "no user")
}

// The same answer as the service of the plain struct.
func TestService(t *testing.T) {
	create := pbnative.NewService()
	u := full()
	reply, err := create(context.Background(), pbnative.FromUser(u))
	require.NoError(t, err)
	require.Equal(t, *rpcbench.Answer(&u), pbnative.ToResponse(reply))
	reply, err = create(context.Background(), new(userv1.User))
	require.Nil(t, reply)
	require.Equal(t, rpcbench.NewValidator[rpcbench.User]()(new(rpcbench.User)), err)
}

// A field that is added to the messages is tested too.
func TestCheckComparesEveryField(t *testing.T) {
	asked := pbnative.FromUser(users.Sample(0, 3))
	answer := func() *userv1.CreateUserResponse {
		r, err := pbnative.NewService()(context.Background(), proto.CloneOf(asked))
		require.NoError(t, err)
		return r
	}
	require.NoError(t, pbnative.Check(asked, answer()))

	differs := func(what string, r *userv1.CreateUserResponse) {
		t.Helper()
		require.Equal(t, rpcbench.Internal, rpcbench.CodeOf(pbnative.Check(asked, r)), what)
	}
	eachField(new(userv1.User), func(name string, _ reflect.Value) {
		r := answer()
		switch v := reflect.ValueOf(r.User).Elem().FieldByName(name); v.Kind() {
		case reflect.String:
			v.SetString(v.String() + "x")
		default:
			v.Bytes()[1]++
		}
		differs(name, r)
	})
	eachField(new(userv1.CreateUserResponse), func(name string, _ reflect.Value) {
		r := answer()
		reflect.ValueOf(r).Elem().FieldByName(name).SetZero()
		differs(name, r)
	})
	differs("all of it", new(userv1.CreateUserResponse))
	differs("a reply that is none", nil)
}
