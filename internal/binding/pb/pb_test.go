package pb_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/binding/pb"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/message"
	"github.com/rpcbench/rpcbench/message/messagepb"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

// fromUser and toResponse are the conversions, by value.
func fromUser(u rpcbench.User) *userv1.User { return binding.Convert[userv1.User](&u) }
func toResponse(r *userv1.CreateUserResponse) rpcbench.Response {
	return *binding.Convert[rpcbench.Response](r)
}

// full is a user with something in every field.
func full() rpcbench.User {
	u := corpus.Sample(0, 3)
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
	native := fromUser(u)
	eachField(native, func(name string, v reflect.Value) { require.False(t, v.IsZero(), "%s is lost on the way", name) })
	reply := rpcbench.Response{Code: 200, Message: "OK", User: &u}
	require.Equal(t, reply, toResponse(&userv1.CreateUserResponse{Code: 200, Message: "OK", User: native}))
	require.Equal(t, rpcbench.Response{Code: 200}, toResponse(&userv1.CreateUserResponse{Code: 200}), "no user")
}

// The same answer as the service of the plain struct.
func TestService(t *testing.T) {
	create := pb.API().NewService()
	u := full()
	reply, err := create(context.Background(), fromUser(u))
	require.NoError(t, err)
	require.Equal(t, *rpcbench.Answer(&u), toResponse(reply))
	reply, err = create(context.Background(), new(userv1.User))
	require.Nil(t, reply)
	require.Equal(t, rpcbench.NewValidator[rpcbench.User]()(new(rpcbench.User)), err)
}

// A field that is added to the messages is tested too.
func TestCheckComparesEveryField(t *testing.T) {
	asked := fromUser(corpus.Sample(0, 3))
	answer := func() *userv1.CreateUserResponse {
		r, err := pb.API().NewService()(context.Background(), proto.CloneOf(asked))
		require.NoError(t, err)
		return r
	}
	require.NoError(t, pb.API().Check(asked, answer()))

	differs := func(what string, r *userv1.CreateUserResponse) {
		t.Helper()
		require.Equal(t, rpcbench.Internal, rpcbench.CodeOf(pb.API().Check(asked, r)), what)
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

func TestFlexConversionsKeepEveryField(t *testing.T) {
	f := message.Complex()
	eachField(f, func(name string, v reflect.Value) { require.False(t, v.IsZero(), "%s would not be tested", name) })
	generated := binding.Convert[messagepb.Flex](f)
	eachField(generated, func(name string, v reflect.Value) { require.False(t, v.IsZero(), "%s is lost on the way", name) })
	require.Equal(t, f, binding.Convert[message.Flex](generated))
	require.InDelta(t, 110, proto.Size(generated), 30, "the size that the catalogue gives")
	require.True(t, pb.API().Equal(generated, proto.CloneOf(generated)))
	require.Zero(t, proto.Size(binding.Convert[messagepb.Flex](new(message.Flex))), "empty is nothing on the wire")
}

func TestErrorConversionsKeepEveryField(t *testing.T) {
	e := &rpcbench.Error{Code: rpcbench.Invalid, Message: "m", Violations: []rpcbench.Violation{{Field: "email", Rule: "required"}}}
	require.Equal(t, e, pb.API().ToError(pb.API().FromError(e)))
}
