package msgp_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	lib "github.com/tinylib/msgp/msgp"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
	"github.com/rpcbench/rpcbench/internal/transport/codec/msgp"
	"github.com/rpcbench/rpcbench/internal/transport/message"
)

var _ codec.Codec = msgp.Codec{}

func TestRoundTrip(t *testing.T) {
	data, err := msgp.Codec{}.Marshal(new(msgp.Flex))
	require.NoError(t, err)
	require.Equal(t, []byte{0x80}, data, "zero fields are left out: an empty map")
}

func TestMalformed(t *testing.T) {
	c := msgp.Codec{}
	// Of 32 bits each: where an int has no more, the library takes a larger length for a negative one and panics.
	const most = uint32(min(math.MaxUint32, math.MaxInt))
	length := func(data []byte, kind byte) []byte { return binary.BigEndian.AppendUint32(append(data, kind), most) }
	key := func(name string) []byte { return lib.AppendString(lib.AppendMapHeader(nil, 1), name) }
	whole, err := c.Marshal(binding.Convert[msgp.Flex](message.Complex()))
	require.NoError(t, err)
	for _, c := range []struct {
		why  string
		data []byte
		into any
	}{
		{"nothing", nil, new(msgp.User)},
		{"garbage after it", append(bytes.Clone(whole), 'x'), new(msgp.Flex)},
		{"another after it", append(bytes.Clone(whole), whole...), new(msgp.Flex)},

		{"a map that is said to be huge", lib.AppendMapHeader(nil, most), new(msgp.User)},
		{"a string that is said to be huge", length(key("email"), 0xdb), new(msgp.User)},
		{"bytes that are said to be huge", lib.AppendBytesHeader(key("avatar"), most), new(msgp.User)},
		{"an array that is said to be huge", lib.AppendArrayHeader(key("first"), most), new(msgp.Flex)},
		{"an array that is said to be as large as may be", lib.AppendArrayHeader(key("second"), 1<<16), new(msgp.Flex)},
		{"violations that are said to be huge", lib.AppendArrayHeader(key("violations"), most), new(msgp.Error)},
		{"violations that are said to be as many as may be", lib.AppendArrayHeader(key("violations"), 1<<16),
			new(msgp.Error)},
		{"an unknown array that is said to be huge", lib.AppendArrayHeader(key("unknown"), most), new(msgp.User)},
		{"an unknown map that is said to be huge", lib.AppendMapHeader(key("unknown"), most), new(msgp.User)},
		{"an unknown extension that is said to be huge", length(key("unknown"), 0xc9), new(msgp.User)},
		{"arrays within each other", append(key("unknown"), bytes.Repeat([]byte{0x91}, rpcbench.MaxBody)...), new(msgp.User)},
		{"maps within each other", append(key("unknown"), bytes.Repeat([]byte{0x81, 0xa0}, rpcbench.MaxBody/2)...),
			new(msgp.User)},
	} {
		t.Run(c.why, func(t *testing.T) {
			var err error
			bytes := testkit.Allocated(func() { err = msgp.Codec{}.Unmarshal(c.data, c.into) })
			require.Error(t, err)
			require.Less(t, bytes, uint64(4<<20), "whatever a length says, only what is there costs memory")
		})
	}
	for n := range whole {
		require.Error(t, c.Unmarshal(whole[:n], new(msgp.Flex)), "the first %d of %d bytes", n, len(whole))
	}
}

func TestArraysUpToTheLimit(t *testing.T) {
	c := msgp.Codec{}
	f := &msgp.Flex{First: make([]*msgp.Pair, 1<<16)}
	data, err := c.Marshal(f)
	require.NoError(t, err)
	require.NoError(t, c.Unmarshal(data, new(msgp.Flex)))
	f.First = append(f.First, new(msgp.Pair))
	data, err = c.Marshal(f)
	require.NoError(t, err)
	require.ErrorIs(t, c.Unmarshal(data, new(msgp.Flex)), lib.ErrLimitExceeded)
}
