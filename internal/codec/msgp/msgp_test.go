package msgp_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lib "github.com/tinylib/msgp/msgp"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/codec"
	"github.com/rpcbench/rpcbench/internal/codec/msgp"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/message"
)

var _ codec.Codec = msgp.Codec{}

func TestRoundTrip(t *testing.T) {
	c := msgp.Codec{}
	require.Equal(t, "application/vnd.msgpack", c.ContentType())
	for _, h := range corpus.Flexes() {
		f := h.Flex
		data, err := c.Marshal(binding.Convert[msgp.Flex](f))
		require.NoError(t, err)
		back := new(msgp.Flex)
		require.NoError(t, c.Unmarshal(data, back))
		negativeZero := f.Double == 0 && math.Signbit(f.Double) || f.Float == 0 && math.Signbit(float64(f.Float))
		require.Equal(t, !negativeZero, f.Equal(binding.Convert[message.Flex](back)), "%+v came back as %+v", f, back)
	}
	u := rpcbench.Sample(0, 1000)
	for _, name := range []string{u.Name, "", "\x00\r\n\x7f", "\ufeff\uffff", "in\xffvalid", strings.Repeat("n", 1<<16)} {
		u.Name = name
		want := rpcbench.Response{Code: math.MinInt32, Message: "OK", User: &u}
		data, err := c.Marshal(&msgp.Response{Code: want.Code, Message: want.Message, User: binding.Convert[msgp.User](&u)})
		require.NoError(t, err)
		back := new(msgp.Response)
		require.NoError(t, c.Unmarshal(data, back))
		require.Equal(t, want, *binding.Convert[rpcbench.Response](back))
	}
	data, err := c.Marshal(new(msgp.Flex))
	require.NoError(t, err)
	require.Equal(t, []byte{0x80}, data, "zero fields are left out: an empty map")
}

// allocated returns how many bytes fn allocates.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
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
		{"nil for a user", lib.AppendNil(nil), new(msgp.User)},
		{"an array for a user", lib.AppendArrayHeader(nil, 0), new(msgp.User)},
		{"a string for a user", lib.AppendString(nil, "anna"), new(msgp.User)},
		{"JSON", []byte(`{"email":"anna@example.com"}`), new(msgp.User)},
		{"a type that the format reserves", []byte{0xc1}, new(msgp.User)},
		{"a number for a string", lib.AppendInt(key("email"), 7), new(msgp.User)},
		{"a number for a name of a field", lib.AppendInt(lib.AppendMapHeader(nil, 1), 7), new(msgp.User)},
		{"a number for bytes", lib.AppendInt(key("avatar"), 7), new(msgp.User)},
		{"a string for bytes", lib.AppendString(key("avatar"), "abc"), new(msgp.User)},
		{"bytes for a string", lib.AppendBytes(key("email"), []byte("abc")), new(msgp.User)},
		{"a string for a number", lib.AppendString(key("int32"), "7"), new(msgp.Flex)},
		{"a number too large", lib.AppendInt64(key("int32"), 1<<31), new(msgp.Flex)},
		{"a negative number for an unsigned one", lib.AppendInt64(key("uint64"), -1), new(msgp.Flex)},
		{"a map for an array", lib.AppendMapHeader(key("first"), 0), new(msgp.Flex)},
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
			bytes := allocated(func() { err = msgp.Codec{}.Unmarshal(c.data, c.into) })
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
