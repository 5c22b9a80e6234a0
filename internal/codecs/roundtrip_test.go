package codecs_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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

// The loop that a row times makes what the codec makes, each time anew, and has the traits that are tested of the codec.
func TestLoopsAreTheCodecs(t *testing.T) {
	eachMessage(t, func(t *testing.T, o *ops, form codecs.Form) {
		traits := o.Codec.Traits()
		want := o.encoded(t, form.Value)
		first, _, err := form.Marshal(1)
		require.NoError(t, err)
		require.Equal(t, string(want), string(first))
		var before any
		for _, n := range []int{1, 5, 50} {
			if n*len(want) > 1<<20 {
				break
			}
			got, total, err := form.Marshal(n)
			require.NoError(t, err)
			require.Equal(t, n*len(want), total)
			require.Equal(t, string(want), string(got))
			if len(got) > 0 {
				require.Equal(t, strings.HasPrefix(traits.Reuses, "buffer"), &first[0] == &got[0], "keeps a buffer")
			}

			in := bytes.Clone(want)
			v, err := form.Unmarshal(in, n)
			require.NoError(t, err)
			require.False(t, before == v, "a fresh value")
			for i := range in {
				in[i] = 'x'
			}
			if !traits.Aliases {
				o.requireEqual(t, form.Value, v)
			}
			before = v
		}
		o.release(before)
		_, err = form.Unmarshal([]byte("\xff"), 2)
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
