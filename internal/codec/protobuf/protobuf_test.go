package protobuf_test

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/codec"
	"github.com/rpcbench/rpcbench/internal/codec/protobuf"
	"github.com/rpcbench/rpcbench/internal/message"
	messagepb "github.com/rpcbench/rpcbench/proto/message/v1"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

var _ codec.Codec = protobuf.Codec{}

func TestRoundTrip(t *testing.T) {
	c := protobuf.Codec{}
	require.Equal(t, "application/protobuf", c.ContentType())
	u := rpcbench.Sample(0, 1000)
	flex := binding.Convert[messagepb.Flex](message.Complex())
	for _, v := range []struct{ from, into proto.Message }{
		{flex, new(messagepb.Flex)},
		{binding.Convert[userv1.User](&u), new(userv1.User)},
		{&userv1.CreateUserResponse{Code: -7, Message: "OK", User: binding.Convert[userv1.User](&u)},
			new(userv1.CreateUserResponse)},
	} {
		want, err := proto.Marshal(v.from)
		require.NoError(t, err)
		got, err := c.Marshal(v.from)
		require.NoError(t, err)
		require.Equal(t, want, got, "the bytes of proto.Marshal")
		require.NoError(t, c.Unmarshal(got, v.into))
		require.True(t, proto.Equal(v.from, v.into))
	}
	u.Name = "in\xffvalid"
	_, err := c.Marshal(binding.Convert[userv1.User](&u))
	require.Error(t, err, "invalid UTF-8")
}

func TestUnmarshal(t *testing.T) {
	c := protobuf.Codec{}
	whole, err := c.Marshal(&userv1.User{Email: "a@example.com"})
	require.NoError(t, err)
	unknown := []byte{0x7b} // field 15, the start of a group
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0x0f}
	for _, k := range []struct {
		why  string
		data []byte
		into proto.Message
		ok   bool
	}{
		{"nothing is wrong", whole, new(userv1.User), true},
		{"nothing: a message without fields", nil, new(userv1.User), true},
		{"another after it: the same field again", append(bytes.Clone(whole), whole...), new(userv1.User), true},
		{"an unknown field after it", append(bytes.Clone(whole), 0x78, 1), new(userv1.User), true},
		{"a number for a string: an unknown field", []byte{0x10, 1}, new(userv1.User), true},

		{"garbage after it", append(bytes.Clone(whole), 'x'), new(userv1.User), false},
		{"truncated", whole[:len(whole)-1], new(userv1.User), false},
		{"truncated before a length", whole[:1], new(userv1.User), false},
		{"field zero", []byte{0x02, 0}, new(userv1.User), false},
		{"invalid UTF-8", []byte{0x12, 1, 0xff}, new(userv1.User), false},
		{"JSON", []byte(`{"email":"a@example.com"}`), new(userv1.User), false},
		{"a string that is said to be huge", append([]byte{0x12}, huge...), new(userv1.User), false},
		{"bytes that are said to be huge", append([]byte{0x2a}, huge...), new(userv1.User), false},
		{"an unknown field that is said to be huge", append([]byte{0x7a}, huge...), new(userv1.User), false},
		{"unknown groups within each other", bytes.Repeat(unknown, rpcbench.MaxBody), new(userv1.User), false},
	} {
		t.Run(k.why, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := c.Unmarshal(k.data, k.into)
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20),
				"whatever a length says, only what is there costs memory")
			require.Equal(t, k.ok, err == nil, "%v", err)
			require.False(t, errors.Is(err, io.ErrUnexpectedEOF), "it would be taken for a connection that broke")
		})
	}
}

func TestOtherTypes(t *testing.T) {
	require.Panics(t, func() { _, _ = protobuf.Codec{}.Marshal(nil) }, "no message without fields")
	require.Panics(t, func() { _ = protobuf.Codec{}.Unmarshal(nil, new(rpcbench.User)) })
}
