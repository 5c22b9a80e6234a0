package protobufvt_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/codec/protobufvt"
	"github.com/rpcbench/rpcbench/internal/codecs/codectest"
	"github.com/rpcbench/rpcbench/internal/pbnative"
	"github.com/rpcbench/rpcbench/message"
	"github.com/rpcbench/rpcbench/message/messagepb"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

var (
	_ codec.Described = protobufvt.Codec{}
	_ codec.Described = protobufvt.Pooled{}
	_ codec.Appender  = protobufvt.Pooled{}
	_ codec.Releaser  = protobufvt.Pooled{}
)

func TestRoundTrip(t *testing.T) {
	api := pbnative.API()
	for _, c := range []codec.Codec{protobufvt.Codec{}, protobufvt.Pooled{}} {
		require.Equal(t, "application/protobuf", c.ContentType())
		for _, f := range codectest.Flexes(t) {
			v := api.FromFlex(f)
			want, err := v.MarshalVT()
			require.NoError(t, err)
			got, err := c.Marshal(v)
			require.NoError(t, err)
			require.Equal(t, want, got, "the bytes of the documented call")
			back, theirs := new(messagepb.Flex), new(messagepb.Flex)
			require.NoError(t, c.Unmarshal(got, back))
			require.NoError(t, proto.Unmarshal(got, theirs))
			require.True(t, api.ToFlex(theirs).Equal(api.ToFlex(back)), "what the library of the format reads")
			if want := *f; !f.Equal(api.ToFlex(back)) { // a negative zero is taken for a zero
				want.Double, want.Float = want.Double+0, want.Float+0
				require.True(t, want.Equal(api.ToFlex(back)), "%+v came back as %+v", f, back)
			}
		}
	}
	whole, err := protobufvt.Codec{}.Marshal(&userv1.User{Email: "in\xffvalid"})
	require.NoError(t, err)
	back := new(userv1.User)
	require.NoError(t, protobufvt.Codec{}.Unmarshal(whole, back))
	require.Equal(t, "in\xffvalid", back.Email)
	require.Error(t, protobufvt.Codec{}.Unmarshal(append(whole, 'x'), new(userv1.User)), "garbage after it")
	require.Error(t, protobufvt.Codec{}.Unmarshal(whole[:3], new(userv1.User)), "truncated")
}

// Why a destination must be fresh.
func TestUnmarshalMerges(t *testing.T) {
	data, err := protobufvt.Codec{}.Marshal(pbnative.API().FromFlex(message.Complex()))
	require.NoError(t, err)
	f := new(messagepb.Flex)
	for range 2 {
		require.NoError(t, protobufvt.Codec{}.Unmarshal(data, f))
	}
	require.Len(t, f.First, 2*len(message.Complex().First))
}

// The caller's buffer: what is there stays, and room that is there is used.
func TestAppend(t *testing.T) {
	c, v := protobufvt.Pooled{}, pbnative.API().FromFlex(message.Complex())
	want, err := v.MarshalVT()
	require.NoError(t, err)
	for _, room := range []int{0, 1, len(want) - 1, len(want), 2 * len(want)} {
		dst := append(make([]byte, 0, 6+room), "before"...)
		got, err := c.Append(dst, v)
		require.NoError(t, err)
		require.Equal(t, "before"+string(want), string(got))
		require.Equal(t, room >= len(want), &got[0] == &dst[0], "room for %d of %d bytes", room, len(want))
	}
	dst := []byte("before")
	got, err := c.Append(dst, new(userv1.User))
	require.NoError(t, err)
	require.Equal(t, dst, got, "no fields, no bytes")
}

// pooled is a message that was generated with a pool.
type pooled struct {
	*userv1.User
	returned int
}

func (p *pooled) ReturnToVTPool() { p.returned++ }

func TestRelease(t *testing.T) {
	v := &pooled{User: new(userv1.User)}
	protobufvt.Pooled{}.Release(v)
	require.Equal(t, 1, v.returned)
	require.Panics(t, func() { protobufvt.Pooled{}.Release(new(rpcbench.User)) }, "a type without a pool")
}

func TestOtherTypes(t *testing.T) {
	for _, v := range []any{nil, new(rpcbench.User), "text"} {
		want := fmt.Sprintf("protobufvt: %T has no vtprotobuf methods", v)
		_, err := protobufvt.Codec{}.Marshal(v)
		require.EqualError(t, err, want)
		require.EqualError(t, protobufvt.Codec{}.Unmarshal(nil, v), want)
		dst, err := protobufvt.Pooled{}.Append([]byte("before"), v)
		require.EqualError(t, err, want)
		require.Equal(t, "before", string(dst))
	}
}
