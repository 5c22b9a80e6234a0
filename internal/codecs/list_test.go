package codecs_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/internal/codecs"
)

func TestList(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range codecs.All() {
		require.Regexp(t, regexp.MustCompile(`^[a-z0-9]+(\.[a-z0-9]+)*$`), r.Name)
		require.False(t, seen[r.Name], "%s is there twice", r.Name)
		seen[r.Name] = true
		require.NotNil(t, r.Form, r.Name)

		_, appends := r.Codec.(codec.Appender)
		_, releases := r.Codec.(codec.Releaser)
		_, streams := r.Codec.(codec.Stream)
		want := map[bool]string{true: "buffer"}[appends || streams]
		if releases {
			want = "buffer, values"
		}
		if r.Codec.Traits().Reuses != "compressors" {
			require.Equal(t, want, r.Codec.Traits().Reuses, "%s declares what the harness has it reuse", r.Name)
		}
	}
	main := codecs.Main()
	require.Contains(t, []int{6, 7}, len(main), "six in a build without goccy")
	require.Equal(t, seen["goccy"], len(main) == 7)
}

func TestFind(t *testing.T) {
	found, err := codecs.Find("xml", "protobuf.vt")
	require.NoError(t, err)
	require.Equal(t, "xml", found[0].Name)
	require.Equal(t, "protobuf.vt", found[1].Name)
	_, err = codecs.Find("protobuff")
	require.ErrorContains(t, err, `unknown codec "protobuff", did you mean "protobuf"? The codecs are protobuf, `)

	messages, err := codecs.FindMessages("user")
	require.NoError(t, err)
	require.Equal(t, "user", messages[0].Name)
	_, err = codecs.FindMessages("usr")
	require.ErrorContains(t, err, `unknown message "usr", did you mean "user"? The messages are `)
}
