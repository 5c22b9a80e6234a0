package protobuf_test

import (
	"io"
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

// A body that is cut off must not be taken for a connection that broke.
func TestTruncated(t *testing.T) {
	whole, err := proto.Marshal(&userv1.User{Email: "a@example.com"})
	require.NoError(t, err)
	for n := 1; n < len(whole); n++ {
		err := protobuf.Codec{}.Unmarshal(whole[:n], new(userv1.User))
		require.Error(t, err)
		require.NotErrorIs(t, err, io.ErrUnexpectedEOF)
	}
}

func TestOtherTypes(t *testing.T) {
	require.Panics(t, func() { _, _ = protobuf.Codec{}.Marshal(nil) }, "no message without fields")
	require.Panics(t, func() { _ = protobuf.Codec{}.Unmarshal(nil, new(rpcbench.User)) })
}
