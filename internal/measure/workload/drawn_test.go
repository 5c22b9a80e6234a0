package workload_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/measure/workload"
)

// The sizes that are drawn have the median and the 99th percentile of those that were published, as far as their number
// tells, and a mean that docs/running.md names.
func TestDrawnSizes(t *testing.T) {
	sizes, cut := workload.DrawnSizes()
	sum, different := 0, map[int]bool{}
	for _, size := range sizes {
		sum, different[size] = sum+size, true
	}
	sorted := slices.Sorted(slices.Values(sizes))
	n := len(sorted)
	require.Greater(t, len(slices.Collect(maps.Keys(different))), 1000, "different sizes")
	require.InEpsilon(t, 1500, sorted[n/2], 0.15, "median")
	require.InEpsilon(t, 196_000, sorted[n-n/100], 0.4, "99th percentile")
	require.LessOrEqual(t, sorted[n-1], 500_000)
	require.InDelta(t, 0.0028, cut, 0.002, "share of draws beyond the largest")
	page, err := os.ReadFile("../../../docs/running.md")
	require.NoError(t, err)
	said := strings.Join(strings.Fields(string(page)), " ")
	require.Contains(t, said, fmt.Sprintf("redrew the %.2f%% above 500 kB. The mean is %.1f kB, the largest %.0f kB.",
		100*cut, float64(sum)/float64(n)/1000, float64(sorted[n-1])/1000))
}
