package codecs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/study/codecs"
)

func TestRoundTrip(t *testing.T) {
	eachMessage(t, func(t *testing.T, o *ops, form codecs.Form) {
		want := o.encoded(t, form.Value)
		v := o.decoded(t, want, form)
		o.requireEqual(t, form.Value, v)
		require.Equal(t, want, o.encoded(t, v), "encoded again")
		require.Equal(t, o.Reuses == "buffer", keepsBuffer(t, o, form), "keeps a buffer, as Reuses says")
		require.Error(t, o.Codec.Unmarshal([]byte("\xff"), zero(form)), "a body that is no message is refused")
	})
}

// keepsBuffer says whether the second body is where the first was; of a body without bytes, what is declared.
func keepsBuffer(t *testing.T, o *ops, form codecs.Form) bool {
	t.Helper()
	first, err := o.Codec.Marshal(form.Value)
	require.NoError(t, err)
	second, err := o.Codec.Marshal(form.Value)
	require.NoError(t, err)
	if len(first) == 0 {
		return o.Reuses == "buffer"
	}
	return &first[0] == &second[0]
}

// What an op writes and reads does not depend on how many were before it: a destination that isn't fresh, an old value
// that a decoder adds to and a buffer that is not cut back would show.
func TestOpsAreEqual(t *testing.T) {
	const few = 5
	eachRow(t, func(t *testing.T, o *ops) {
		for _, name := range []string{"user", "small.25B", "flex.complex", "addressbook", "newsfeed", "tree.dense.1kB",
			"article.50"} {
			e := entry(t, name)
			if testing.Short() && e.Size > 20_000 {
				continue
			}
			form := o.Form(e)
			want := o.encoded(t, form.Value)
			times := 10
			if e.Size > 20_000 {
				times = 2
			}
			for op := range times * few {
				got, err := o.Codec.Marshal(form.Value)
				require.NoError(t, err)
				require.Equal(t, len(want), len(got), "%s: bytes of op %d", name, op)
				v := form.Fresh()
				require.NoError(t, o.Codec.Unmarshal(want, v))
				if op == few || op == times*few-1 {
					require.Equal(t, want, got)
					o.requireEqual(t, form.Value, v)
				}
			}
		}
	})
}
