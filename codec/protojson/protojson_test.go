package protojson_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	lib "google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/codec/protojson"
	"github.com/rpcbench/rpcbench/internal/codecs/codectest"
	"github.com/rpcbench/rpcbench/internal/pbnative"
	"github.com/rpcbench/rpcbench/internal/users"
	"github.com/rpcbench/rpcbench/message/messagepb"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

var _ codec.Described = protojson.Codec{}

func TestRoundTrip(t *testing.T) {
	c, api := protojson.Codec{}, pbnative.API()
	require.Equal(t, "application/json", c.ContentType())
	for _, f := range codectest.Flexes(t) {
		want, err := lib.Marshal(api.FromFlex(f))
		require.NoError(t, err)
		got, err := c.Marshal(api.FromFlex(f))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "the bytes of the documented call")
		back := new(messagepb.Flex)
		require.NoError(t, c.Unmarshal(got, back))
		require.True(t, f.Equal(api.ToFlex(back)), "%+v came back as %+v", f, back)
	}
	u := users.Sample(0, 1000)
	u.Name = "in\xffvalid"
	_, err := c.Marshal(api.FromUser(&u))
	require.Error(t, err, "invalid UTF-8")
}

func TestUnmarshal(t *testing.T) {
	for _, k := range []struct {
		why, data string
		want      *userv1.User // nil for an error
	}{
		{"nothing is wrong", `{"email":"a@example.com"}`, &userv1.User{Email: "a@example.com"}},
		{"no fields", ` {} `, &userv1.User{}},
		{"nothing", "", nil},
		{"null", "null", nil},
		{"an unknown field", `{"x":1}`, nil},
		{"a field twice", `{"email":"a","email":"b"}`, nil},
		{"garbage after it", `{}x`, nil},
		{"another after it", `{}{}`, nil},
		{"cut off", `{"email":"a`, nil},
		{"a number for a string", `{"email":7}`, nil},
		{"invalid UTF-8", "{\"email\":\"\xff\"}", nil},
	} {
		t.Run(k.why, func(t *testing.T) {
			into := &userv1.User{Name: "before"}
			err := protojson.Codec{}.Unmarshal([]byte(k.data), into)
			require.Equal(t, k.want == nil, err != nil, "%v", err)
			if k.want != nil {
				require.True(t, proto.Equal(k.want, into), "%v", into)
			}
		})
	}
}

func TestOtherTypes(t *testing.T) {
	for _, v := range []any{nil, new(rpcbench.User), "text"} {
		_, err := protojson.Codec{}.Marshal(v)
		require.EqualError(t, err, fmt.Sprintf("protojson: %T is no proto.Message", v))
		require.EqualError(t, protojson.Codec{}.Unmarshal(nil, v), fmt.Sprintf("protojson: %T is no proto.Message", v))
	}
}
