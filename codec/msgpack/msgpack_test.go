package msgpack_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lib "github.com/vmihailenco/msgpack/v5"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/codec/msgpack"
	"github.com/rpcbench/rpcbench/internal/codecs/codectest"
	"github.com/rpcbench/rpcbench/internal/users"
	"github.com/rpcbench/rpcbench/message"
)

var _ codec.Described = msgpack.Codec{}

// A field without the tag would have its Go name, and be there when it is zero.
func TestNames(t *testing.T) {
	codectest.Names(t, "msgpack", reflect.TypeFor[rpcbench.User]())
	for _, e := range message.Catalogue() {
		codectest.Names(t, "msgpack", reflect.TypeOf(e.New()))
	}
	data, err := msgpack.Codec{}.Marshal(new(message.Flex))
	require.NoError(t, err)
	require.Equal(t, []byte{0x80}, data, "zero fields are left out: an empty map")
}

func TestRoundTrip(t *testing.T) {
	c := msgpack.Codec{}
	require.Equal(t, "application/vnd.msgpack", c.ContentType())
	for _, f := range codectest.Flexes(t) {
		want, err := lib.Marshal(f)
		require.NoError(t, err)
		got, err := c.Marshal(f)
		require.NoError(t, err)
		require.Equal(t, want, got, "the bytes of the documented call")
		back, theirs := new(message.Flex), new(message.Flex)
		require.NoError(t, c.Unmarshal(got, back))
		require.NoError(t, lib.Unmarshal(got, theirs))
		require.True(t, theirs.Equal(back), "what the documented call reads")
		negativeZero := f.Double == 0 && math.Signbit(f.Double) || f.Float == 0 && math.Signbit(float64(f.Float))
		require.Equal(t, !negativeZero, f.Equal(back), "%+v came back as %+v", f, back)
	}
	u := users.Sample(0, 1000)
	for _, name := range []string{u.Name, "", "\x00\r\n\x7f", "\ufeff\uffff", "in\xffvalid", strings.Repeat("n", 1<<16)} {
		u.Name = name
		data, err := c.Marshal(&u)
		require.NoError(t, err)
		var back rpcbench.User
		require.NoError(t, c.Unmarshal(data, &back))
		require.Equal(t, u, back)
	}
}

func TestMalformed(t *testing.T) {
	c := msgpack.Codec{}
	whole, err := c.Marshal(message.Complex())
	require.NoError(t, err)
	email := append([]byte{0x81, 0xa5}, "email"...)
	huge := func(kind byte) []byte {
		return binary.BigEndian.AppendUint32(append(bytes.Clone(email), kind), math.MaxInt32)
	}
	for _, k := range []struct {
		why  string
		data []byte
		into any
	}{
		{"nothing", nil, new(rpcbench.User)},
		{"a string for a user", []byte{0xa1, 'a'}, new(rpcbench.User)},
		{"JSON", []byte(`{"email":"anna@example.com"}`), new(rpcbench.User)},
		{"a type that the format reserves", []byte{0xc1}, new(rpcbench.User)},
		{"a number for a string", append(bytes.Clone(email), 7), new(rpcbench.User)},
		{"a number for a name of a field", []byte{0x81, 7, 7}, new(rpcbench.User)},
		{"garbage after it", append(bytes.Clone(whole), 'x'), new(message.Flex)},
		{"another after it", append(bytes.Clone(whole), whole...), new(message.Flex)},
		{"a map that is said to be huge", binary.BigEndian.AppendUint32([]byte{0xdf}, math.MaxInt32), new(rpcbench.User)},
		{"a string that is said to be huge", huge(0xdb), new(rpcbench.User)},
		{"no pointer", whole, message.Flex{}},
		{"nil", whole, nil},
		{"a pointer to nothing", whole, (*message.Flex)(nil)},
	} {
		t.Run(k.why, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := c.Unmarshal(k.data, k.into)
			runtime.ReadMemStats(&after)
			require.Error(t, err)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20), "whatever a length says, only what is there costs memory")
		})
	}
	for n := range whole {
		require.Error(t, c.Unmarshal(whole[:n], new(message.Flex)), "the first %d of %d bytes", n, len(whole))
	}
	back := new(message.Flex)
	require.NoError(t, c.Unmarshal(whole, back), "a decoder is as good as new after an error")
	require.True(t, message.Complex().Equal(back))
}

// Looking at what follows the value costs no object more than msgpack.Unmarshal.
func TestAllocationsAsUnmarshal(t *testing.T) {
	data, err := msgpack.Codec{}.Marshal(message.Complex())
	require.NoError(t, err)
	least := func(unmarshal func([]byte, any) error) float64 { // decoders are pooled, and a collection empties the pool
		n := math.Inf(1)
		for range 100 {
			n = min(n, testing.AllocsPerRun(1, func() { require.NoError(t, unmarshal(data, new(message.Flex))) }))
		}
		return n
	}
	require.Equal(t, least(lib.Unmarshal), least(msgpack.Codec{}.Unmarshal))
}

func TestUnsupported(t *testing.T) {
	_, err := msgpack.Codec{}.Marshal(struct{ C chan int }{})
	require.Error(t, err)
}
