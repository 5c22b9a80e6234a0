package codecs_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/internal/codecs"
)

func TestRoundTrip(t *testing.T) {
	eachMessage(t, func(t *testing.T, o *ops, form codecs.Form) {
		want := o.encoded(t, form.Value)
		v := o.decoded(t, want, form)
		o.requireEqual(t, form.Value, v)
		require.Equal(t, want, o.encoded(t, v), "encoded again")
		o.release(v)

		body, err := o.Codec.Marshal(form.Value)
		require.NoError(t, err)
		v = form.Fresh()
		require.NoError(t, o.Codec.Unmarshal(body, v), "whole bodies, which stacks send")
		o.requireEqual(t, form.Value, v)
		o.release(v)
	})
}

// A row that times its library's call makes what the codec makes.
func TestCallsAreTheCodecs(t *testing.T) {
	through := []string{"protobuf.delimited", "protobuf.vtpool", "json.stream", "json.gzip"}
	eachMessage(t, func(t *testing.T, o *ops, form codecs.Form) {
		require.Equal(t, slices.Contains(through, o.Name), form.Marshal == nil && form.Unmarshal == nil, "by which way")
		if form.Marshal == nil {
			return
		}
		want := o.encoded(t, form.Value)
		var dst []byte
		if _, ok := o.Codec.(codec.Appender); ok {
			dst = []byte("before")
		}
		got, err := form.Marshal(dst)
		require.NoError(t, err)
		require.Equal(t, string(dst)+string(want), string(got))
		v, err := form.Unmarshal(want)
		require.NoError(t, err)
		again, err := form.Unmarshal(want)
		require.NoError(t, err)
		require.NotSame(t, v, again, "a fresh value each time")
		o.requireEqual(t, form.Value, v)
		_, err = form.Unmarshal([]byte("\xff"))
		require.Error(t, err)
	})
}

// What an op writes and reads does not depend on how many were before it: a destination that isn't fresh, an old value
// that a decoder adds to and a buffer that is not cut back would show.
func TestOpsAreEqual(t *testing.T) {
	const few = 5
	eachRow(t, func(t *testing.T, o *ops) {
		for _, name := range []string{"user", "small.25B", "flex.complex", "addressbook", "newsfeed", "tree.dense.1kB", "article.50"} {
			e := entry(t, name)
			if testing.Short() && e.Size > 20_000 {
				continue
			}
			form := o.Form(e)
			want := o.encoded(t, form.Value)
			for op := range 10 * few {
				got, err := o.encode(form.Value)
				require.NoError(t, err)
				require.Equal(t, len(want), len(got), "%s: bytes of op %d", name, op)
				v := o.decoded(t, want, form)
				if op == few || op == 10*few-1 {
					require.Equal(t, want, got)
					o.requireEqual(t, form.Value, v)
				}
				o.release(v)
			}
		}
	})
}
