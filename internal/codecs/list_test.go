package codecs_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/codecs"
)

func TestList(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range codecs.All() {
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
