package codecs_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/study/codecs"
)

// rows are all codecs of this build.
func rows() []codecs.Row { return slices.Concat(codecs.All(), codecs.More()) }

func TestList(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows() {
		require.Regexp(t, regexp.MustCompile(`^[a-z0-9]+(\.[a-z0-9]+)*$`), r.Name)
		require.False(t, seen[r.Name], "%s is there twice", r.Name)
		seen[r.Name] = true
		require.NotNil(t, r.Form, r.Name)
		require.NotNil(t, r.New, r.Name)
	}
	main := codecs.Main()
	require.Contains(t, []int{6, 7}, len(main), "six in a build without goccy")
	require.Equal(t, seen["goccy"], len(main) == 7)
}
