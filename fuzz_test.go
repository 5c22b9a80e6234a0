package rpcbench_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/workload"
)

// A size is what a user may carry, and is written in one way only, since rows are named after it.
func FuzzParseSize(f *testing.F) {
	for _, seed := range []string{"", "B", "1B", "0B", "100B", "1kB", "1MB", "2MB", "01kB", "+1B", "1e3B", "1.5kB", "1 kB", "1KB", "4294967296B", "99999999999999999999kB", "-1B", "1BB"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		size, err := workload.Size(s)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		require.Positive(t, size)
		require.LessOrEqual(t, size, rpcbench.MaxAvatar)
		digits := strings.TrimRight(s, "kMB")
		unit, known := map[string]int{"B": 1, "kB": 1000, "MB": 1_000_000}[s[len(digits):]]
		require.True(t, known)
		require.Equal(t, s, strconv.Itoa(size/unit)+s[len(digits):])
		require.Zero(t, size%unit)
	})
}
