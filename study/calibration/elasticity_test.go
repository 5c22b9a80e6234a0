package calibration

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/aclements/go-moremath/stats"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/versus"
)

// TestElasticity makes the table of how far the ratio of gRPC to JSON follows the machine's speed: the slope of the
// processes' log ratios over the log of the copy's time, which no ratio contains, with its standard error. The rule
// takes a tenth.
func TestElasticity(t *testing.T) {
	table := "| records | processes | slowest to fastest | elasticity ± standard error |\n|---|---:|---:|---:|\n"
	rows := 0
	for _, f := range thawed(t) {
		if f.experiment != "replication" || len(f.processes) < 64 {
			continue
		}
		var x, y, times []float64
		for _, p := range f.processes {
			x, y, times = append(x, math.Log(p.Ns[1])), append(y, math.Log(p.Ratio)), append(times, p.Ns[1])
		}
		slope, se := regression(x, y)
		rows++
		table += fmt.Sprintf("| %s | %d | ×%.2f | %.3f ± %.3f |\n",
			strings.TrimSuffix(f.hour, "/calibration"), len(x),
			stats.Sample{Xs: times}.Quantile(0.9)/stats.Sample{Xs: times}.Quantile(0.1), slope, se)
		require.Less(t, slope, versus.Follows, f.hour)
	}
	require.Greater(t, rows, 4)
	written(t, "elasticity", table)
}

// regression returns the slope of y over x by least squares, and its standard error.
func regression(x, y []float64) (slope, se float64) {
	mx, my, n := stats.Mean(x), stats.Mean(y), float64(len(x))
	var xx, xy, rest float64
	for i := range x {
		xx, xy = xx+(x[i]-mx)*(x[i]-mx), xy+(x[i]-mx)*(y[i]-my)
	}
	slope = xy / xx
	for i := range x {
		d := y[i] - my - slope*(x[i]-mx)
		rest += d * d
	}
	return slope, math.Sqrt(rest / (n - 2) / xx)
}
