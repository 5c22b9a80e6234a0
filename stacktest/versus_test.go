package stacktest

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/odd"
)

// busy is a stack whose calls take a time each and leave garbage, so that slices end soon.
func busy(name string, takes time.Duration) rpcbench.Stack {
	return named(name, stub(func(int64) error {
		garbage := bytes.Repeat([]byte{1}, 64<<10)
		for start := time.Now(); time.Since(start) < takes; {
			garbage[0]++
		}
		runtime.KeepAlive(garbage)
		return nil
	}))
}

// TestVersusRows: each row measures anew, and has no ratio without an interval.
func TestVersusRows(t *testing.T) {
	t.Parallel() // children measure
	rows, names := figures(t, "-test.bench=^BenchmarkApart$/^stack=(base|other)$", "-test.benchtime=1x",
		"-test.cpu=1", "-test.benchmem", "-processes=1")
	require.Len(t, rows, 2, names)
	seeds := map[float64]bool{}
	for _, row := range rows {
		require.GreaterOrEqual(t, row["B/op"], float64(64<<10), "not the false 0 of a row that only reports")
		require.Positive(t, row["allocs/op"])
		require.Positive(t, row["cpu-ns/op"])
		require.GreaterOrEqual(t, row["ns/op"], 100_000.0)
		require.Equal(t, 1.0, row["processes"])
		for _, unit := range []string{"base-ratio", "aa-ratio", "noise-floor-%"} {
			require.NotContains(t, row, unit, "of one process")
		}
		seeds[row["seed"]] = true
	}
	require.Len(t, seeds, 2)
}

// TestVersusIsAskedFor: where -bench asks for everything, rows of several processes are left out, and a line says so.
func TestVersusIsAskedFor(t *testing.T) {
	out, err := child(t, "-test.bench=^BenchmarkApart$|^x", "-test.benchtime=1x")
	require.NoError(t, err, out)
	require.Contains(t, out, "# rpcbench: Apart takes several processes for each row: name it, as in -bench Apart\n")
	rows, _ := odd.Rows(t, out)
	require.Empty(t, rows)
}

func TestVersusKeepsWhatItMeasured(t *testing.T) {
	t.Setenv(odd.Variable, odd.Children(t, 0))
	out, err := child(t, "-test.bench=^BenchmarkApart$/^stack=(base|dies)$", "-test.benchtime=1x", "-processes=1")
	require.Error(t, err)
	require.Contains(t, out, "it died")
	rows, _ := odd.Rows(t, out)
	require.Len(t, rows, 1, "that before it\n%s", out)
}
