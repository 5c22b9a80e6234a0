package gzipped_test

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
	"github.com/rpcbench/rpcbench/internal/transport/codec/gzipped"
	"github.com/rpcbench/rpcbench/internal/transport/codec/jsonstd"
)

var _ codec.Codec = (*gzipped.Codec)(nil)

func newCodec() *gzipped.Codec { return gzipped.New(jsonstd.Codec{}, rpcbench.MaxBody) }

// compress is what a user of compress/gzip writes without pools.
func compress(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestRoundTrip(t *testing.T) {
	c := newCodec()
	require.Equal(t, "application/json", c.ContentType())
	for i, payload := range []int{100_000, 0, 1000} { // a smaller one after a larger one has nothing of it
		u := rpcbench.SampleUser(i, payload)
		plain, err := jsonstd.Codec{}.Marshal(u)
		require.NoError(t, err)
		got, err := c.Marshal(u)
		require.NoError(t, err)
		require.Equal(t, compress(t, plain), got, "the bytes of the documented call")
		var back rpcbench.User
		require.NoError(t, c.Unmarshal(got, &back))
		require.Equal(t, u, back)
	}
}

func TestMalformed(t *testing.T) {
	c, u := newCodec(), rpcbench.SampleUser(0, 1000)
	good, err := c.Marshal(u)
	require.NoError(t, err)
	for _, k := range []struct {
		why  string
		data []byte
	}{
		{"not compressed", []byte("{}")},
		{"truncated", good[:len(good)-1]},
		{"no JSON within", compress(t, []byte("anna"))},
	} {
		t.Run(k.why, func(t *testing.T) {
			require.Error(t, c.Unmarshal(k.data, new(rpcbench.User)))
			var back rpcbench.User
			require.NoError(t, c.Unmarshal(good, &back), "a reader is as good as new after an error")
			require.Equal(t, u, back)
		})
	}
	_, err = c.Marshal(func() {})
	require.Error(t, err)
	again, err := c.Marshal(u)
	require.NoError(t, err)
	require.Equal(t, good, again)
}

func TestLimit(t *testing.T) {
	const limit = 1000
	c := gzipped.New(jsonstd.Codec{}, limit)
	padded := func(n int) []byte { return compress(t, []byte(strings.Repeat(" ", n-2)+"{}")) }
	require.NoError(t, c.Unmarshal(padded(limit), new(rpcbench.User)))
	require.ErrorIs(t, c.Unmarshal(padded(limit+1), new(rpcbench.User)), gzipped.ErrTooLarge)

	bomb := padded(16 << 20)
	require.Less(t, len(bomb), 16<<20/100, "a small body of large content; how small is up to compress/gzip")
	require.Less(t, testkit.Allocated(func() {
		require.ErrorIs(t, c.Unmarshal(bomb, new(rpcbench.User)), gzipped.ErrTooLarge)
	}), uint64(1<<20), "it ends where the limit is reached")
}

// A new writer costs 800 kB, a new reader 40 kB. The race detector drops a quarter of what goes into a pool.
func TestCompressorsArePooled(t *testing.T) {
	c, u := newCodec(), rpcbench.SampleUser(0, 0)
	small, err := c.Marshal(u)
	require.NoError(t, err)
	perOp := func(fn func()) uint64 {
		const ops = 100
		return testkit.Allocated(func() {
			for range ops {
				fn()
			}
		}) / ops
	}
	require.Less(t, perOp(func() { _, _ = c.Marshal(u) }), uint64(400_000))
	require.Less(t, perOp(func() { _ = c.Unmarshal(small, new(rpcbench.User)) }), uint64(20_000))
	broken := small[:len(small)-1]
	require.Less(t, perOp(func() { _ = c.Unmarshal(broken, new(rpcbench.User)) }), uint64(20_000), "after an error too")
}
