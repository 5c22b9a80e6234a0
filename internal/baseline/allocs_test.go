//go:build !race

// The race detector allocates for itself, and the two sides of a call not equally.

package baseline

import (
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	allocCounts = 5
	allocCalls  = 500
	allocSlack  = 0.5  // allocations per call: less than one, which none of our layers can hide in
	byteSlack   = 1.01 // buffers that a library grows or pools differ a little
)

func TestAllocationsAtMostDirect(t *testing.T) {
	// A collection empties pools, and a second P has pools of its own.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			runtime.GC() // of what the tests before have left, as nothing else collects it
			direct := inTurn(t, f.direct(t, bare(), sample()))
			stack := inTurn(t, f.viaStack(t, nil, sample()))
			var directCounts, stackCounts counts
			for range allocCounts {
				directCounts.add(t, direct)
				stackCounts.add(t, stack)
			}
			directAllocs, stackAllocs := median(directCounts.allocs), median(stackCounts.allocs)
			directBytes, stackBytes := median(directCounts.bytes), median(stackCounts.bytes)
			t.Logf("direct %.2f allocs, %.1f B per call; %s %.2f allocs, %.1f B", directAllocs, directBytes, f.name, stackAllocs,
				stackBytes)
			assert.LessOrEqual(t, stackAllocs, directAllocs+allocSlack, "allocations per call, against the direct form's")
			assert.GreaterOrEqual(t, stackAllocs, directAllocs-allocSlack, "fewer would be tuning, which is a row of its own")
			assert.LessOrEqual(t, stackBytes, directBytes*byteSlack, "bytes allocated per call, against the direct form's")
		})
	}
}

// counts are per call, of the whole process: client and server.
type counts struct{ allocs, bytes []float64 }

func (c *counts) add(t *testing.T, op func() error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range allocCalls {
		if err := op(); err != nil {
			require.NoError(t, err)
		}
	}
	runtime.ReadMemStats(&after)
	c.allocs = append(c.allocs, float64(after.Mallocs-before.Mallocs)/allocCalls)
	c.bytes = append(c.bytes, float64(after.TotalAlloc-before.TotalAlloc)/allocCalls)
}

func median(odd []float64) float64 { return slices.Sorted(slices.Values(odd))[len(odd)/2] }
