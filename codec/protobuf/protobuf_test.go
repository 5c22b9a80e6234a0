package protobuf_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/codec/protobuf"
	"github.com/rpcbench/rpcbench/internal/pbnative"
	"github.com/rpcbench/rpcbench/internal/users"
	"github.com/rpcbench/rpcbench/message"
	"github.com/rpcbench/rpcbench/message/messagepb"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

var (
	_ codec.Described = protobuf.Codec{}
	_ codec.Described = protobuf.Append{}
	_ codec.Appender  = protobuf.Append{}
	_ codec.Described = protobuf.Delimited{}
	_ codec.Stream    = protobuf.Delimited{}
)

func TestRoundTrip(t *testing.T) {
	c, api := protobuf.Codec{}, pbnative.API()
	require.Equal(t, "application/protobuf", c.ContentType())
	u := users.Sample(0, 1000)
	flex := api.FromFlex(message.Complex())
	for _, v := range []struct{ from, into proto.Message }{
		{flex, new(messagepb.Flex)},
		{api.FromUser(&u), new(userv1.User)},
		{&userv1.CreateUserResponse{Code: -7, Message: "OK", User: api.FromUser(&u)}, new(userv1.CreateUserResponse)},
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
	_, err := c.Marshal(api.FromUser(&u))
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
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), "whatever a length says, only what is there costs memory")
			require.Equal(t, k.ok, err == nil, "%v", err)
			require.False(t, errors.Is(err, io.ErrUnexpectedEOF), "it would be taken for a connection that broke")
		})
	}
}

// The caller's buffer: what is there stays, and room that is there is used.
func TestAppend(t *testing.T) {
	c, v := protobuf.Append{}, pbnative.API().FromFlex(message.Complex())
	want, err := proto.Marshal(v)
	require.NoError(t, err)
	for _, room := range []int{0, 1, len(want) - 1, len(want), 2 * len(want)} {
		dst := append(make([]byte, 0, 6+room), "before"...)
		got, err := c.Append(dst, v)
		require.NoError(t, err)
		require.Equal(t, "before"+string(want), string(got))
		require.Equal(t, room >= len(want), &got[0] == &dst[0], "room for %d of %d bytes", room, len(want))
	}
	got, err := c.Append(nil, v)
	require.NoError(t, err)
	require.Equal(t, want, got)
	_, err = c.Append(nil, &userv1.User{Name: "in\xffvalid"})
	require.Error(t, err, "invalid UTF-8")
	require.Equal(t, "application/protobuf", c.ContentType())
}

func TestDelimited(t *testing.T) {
	c := protobuf.Delimited{}
	require.Equal(t, "application/octet-stream", c.ContentType())
	flex, user := pbnative.API().FromFlex(message.Complex()), &userv1.User{Email: "a@example.com"}
	sent := []proto.Message{flex, user, new(userv1.User), &userv1.User{Avatar: make([]byte, 1<<20)}}
	var want, got bytes.Buffer
	for _, m := range sent {
		_, err := protodelim.MarshalTo(&want, m)
		require.NoError(t, err)
		require.NoError(t, c.Encode(&got, m))
		one, err := c.Marshal(m)
		require.NoError(t, err)
		back := m.ProtoReflect().New().Interface()
		require.NoError(t, c.Unmarshal(one, back))
		require.True(t, proto.Equal(m, back))
	}
	require.Equal(t, want.Bytes(), got.Bytes(), "the bytes of the documented call")

	for why, r := range map[string]io.Reader{"bytes": bytes.NewReader(got.Bytes()), "a buffered stream": bufio.NewReader(onlyRead{bytes.NewReader(got.Bytes())})} {
		for _, m := range sent {
			back := m.ProtoReflect().New().Interface()
			require.NoError(t, c.Decode(r, back), why)
			require.True(t, proto.Equal(m, back), "%s: each message ends where the next begins", why)
		}
		require.Equal(t, io.EOF, c.Decode(r, new(userv1.User)), "%s: the end", why)
	}
	back := new(messagepb.Flex)
	require.NoError(t, c.Decode(onlyRead{bytes.NewReader(got.Bytes())}, back), "a reader of no single bytes")
	require.True(t, proto.Equal(flex, back))
}

// onlyRead hides what else a reader can do.
type onlyRead struct{ io.Reader }

func TestDelimitedUnmarshal(t *testing.T) {
	whole, err := protobuf.Delimited{}.Marshal(&userv1.User{Email: "a@example.com"})
	require.NoError(t, err)
	for _, k := range []struct {
		why  string
		data []byte
		ok   bool
	}{
		{"nothing is wrong", whole, true},
		{"a message without fields", []byte{0}, true},
		{"nothing", nil, false},
		{"a byte after it", append(bytes.Clone(whole), 0), false},
		{"another after it", append(bytes.Clone(whole), whole...), false},
		{"truncated", whole[:len(whole)-1], false},
		{"truncated in the length", []byte{0x80}, false},
		{"a length of too many bytes", bytes.Repeat([]byte{0x80}, 11), false},
		{"a length beyond the limit", []byte{0xff, 0xff, 0xff, 0xff, 0x0f}, false},
		{"no message behind the length", []byte{2, 0xff, 0xff}, false},
	} {
		t.Run(k.why, func(t *testing.T) {
			err := protobuf.Delimited{}.Unmarshal(k.data, new(userv1.User))
			require.Equal(t, k.ok, err == nil, "%v", err)
		})
	}
}

func TestOtherTypes(t *testing.T) {
	for _, v := range []any{nil, new(rpcbench.User), "text"} {
		want := fmt.Sprintf("protobuf: %T is no proto.Message", v)
		for _, c := range []codec.Codec{protobuf.Codec{}, protobuf.Append{}, protobuf.Delimited{}} {
			_, err := c.Marshal(v)
			require.EqualError(t, err, want, "%T", c)
			require.EqualError(t, c.Unmarshal(nil, v), want, "%T", c)
		}
		dst, err := protobuf.Append{}.Append([]byte("before"), v)
		require.EqualError(t, err, want)
		require.Equal(t, "before", string(dst))
		require.EqualError(t, protobuf.Delimited{}.Encode(io.Discard, v), want)
		require.EqualError(t, protobuf.Delimited{}.Decode(new(bytes.Buffer), v), want)
	}
}
