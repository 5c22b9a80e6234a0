package verdict_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aclements/go-moremath/stats"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/testkit/frozen"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

var update = flag.Bool("update", false, "write the tables in testdata that docs/method.md cites")

func thawed(t *testing.T) []frozen.Comparison {
	t.Helper()
	all, err := frozen.Read("testdata/processes.txt")
	require.NoError(t, err)
	return all
}

// TestRuleOnFrozenRecords makes the rule's table from what was recorded in ten hours on two machines. The table guards
// against slips, and serves whoever tries another rule. It is no evidence for the rule, whose numbers were chosen on
// these records: that takes a later hour.
func TestRuleOnFrozenRecords(t *testing.T) {
	type counts struct { // of repeats
		all, decided   int // of gRPC to JSON; decided are less or more
		wrong          int // of them, less or the same: gRPC took longer in every hour
		falsely        int // of them, less or more if each hour's ratios are shifted so that their mean is 1
		more2, more4   int // of them, more if the mean is exp(0.02), exp(0.04)
		copies, called int // of a third copy of JSON, and those called different
	}
	all := thawed(t)
	made := func(processes int) (c counts) {
		for _, f := range all {
			var logs []float64
			for _, p := range f.Processes {
				logs = append(logs, math.Log(p.Time.Estimate()))
			}
			mean := math.Exp(stats.Mean(logs))
			for _, repeat := range f.Repeats(processes) {
				count := func(n *int, times float64, counted ...verdict.Verdict) {
					shifted := slices.Clone(repeat)
					for i := range shifted {
						shifted[i].Time.Ratio, shifted[i].Time.ToCopy = times*shifted[i].Time.Ratio, times*shifted[i].Time.ToCopy
					}
					if slices.Contains(counted, verdict.Decide(f.Plan(), shifted).Time.Verdict) {
						*n++
					}
				}
				switch f.Experiment {
				case "replication", "defaultprocs":
					c.all++
					count(&c.decided, 1, verdict.Less, verdict.More)
					count(&c.wrong, 1, verdict.Less, verdict.Same)
					count(&c.falsely, 1/mean, verdict.Less, verdict.More)
					count(&c.more2, math.Exp(0.02)/mean, verdict.More)
					count(&c.more4, math.Exp(0.04)/mean, verdict.More)
				case "same":
					c.copies++
					count(&c.called, 1, verdict.Less, verdict.More)
				}
			}
		}
		return c
	}
	c, half := made(frozen.PerRepeat), made(frozen.PerRepeat/2)
	require.Equal(t, 279, c.all)
	require.GreaterOrEqual(t, c.decided, 234)
	require.Zero(t, c.wrong, "decided, but not as the whole hour")
	require.LessOrEqual(t, c.falsely, 4)
	require.Zero(t, c.called, "copies called different")
	table := "| decided | false positives (true ratio 1.00) | detected (true ratio 1.02) | detected (true ratio 1.04) | " +
		"copies called different |\n|---:|---:|---:|---:|---:|\n"
	written(t, "rule", table+fmt.Sprintf("| %d of %d (%d of %d) | %d (%d) | %d (%d) | %d (%d) | %d of %d (%d of %d) |\n",
		c.decided, c.all, half.decided, half.all, c.falsely, half.falsely, c.more2, half.more2, c.more4, half.more4,
		c.called, c.copies, half.called, half.copies))
}

// TestElasticity makes the table of how far the ratio of gRPC to JSON follows the machine's speed: the slope of the
// processes' log ratios over the log of the copy's time, which no ratio contains, with its standard error. The rule
// takes a tenth.
func TestElasticity(t *testing.T) {
	table := "| records | processes | slowest to fastest | elasticity ± standard error |\n|---|---:|---:|---:|\n"
	rows := 0
	for _, f := range thawed(t) {
		if f.Experiment != "replication" || len(f.Processes) < 64 {
			continue
		}
		var x, y, times []float64
		for _, p := range f.Processes {
			x, y, times = append(x, math.Log(p.Ns[1])), append(y, math.Log(p.Time.Ratio)), append(times, p.Ns[1])
		}
		slope, se := regression(x, y)
		rows++
		table += fmt.Sprintf("| %s | %d | ×%.2f | %.3f ± %.3f |\n",
			strings.TrimSuffix(f.Hour, "/calibration"), len(x),
			stats.Sample{Xs: times}.Quantile(0.9)/stats.Sample{Xs: times}.Quantile(0.1), slope, se)
		require.Less(t, slope, verdict.Follows, f.Hour)
	}
	require.Greater(t, rows, 4)
	written(t, "elasticity", table)
}

// TestEstimate makes the table of what a process's ratio gains by the copy: the standard deviation of the log ratios to
// the base, of those to the base and to its copy, and how the mean moves.
func TestEstimate(t *testing.T) {
	table := "| records | GOMAXPROCS | processes | SD of ratios to the base | to base and copy | the mean moves by |\n" +
		"|---|---|---:|---:|---:|---:|\n"
	logs := 0.0
	rows := 0
	for _, f := range thawed(t) {
		if f.Experiment != "replication" && f.Experiment != "defaultprocs" || len(f.Processes) < 64 {
			continue
		}
		var one, both []float64
		for _, p := range f.Processes {
			one, both = append(one, math.Log(p.Time.Ratio)), append(both, math.Log(p.Time.Estimate()))
		}
		rows++
		logs += math.Log(stats.StdDev(both) / stats.StdDev(one))
		table += fmt.Sprintf("| %s | %s | %d | %.2f %% | %.2f %% | %+.2f %% |\n", strings.TrimSuffix(f.Hour, "/calibration"),
			map[bool]string{true: "default", false: "1"}[f.Plan().NeedsCores], len(one), 100*stats.StdDev(one),
			100*stats.StdDev(both), 100*(stats.Mean(both)-stats.Mean(one)))
		require.Less(t, stats.StdDev(both), stats.StdDev(one), f.Hour)
	}
	mean := math.Exp(logs / float64(rows))
	written(t, "estimate", table+fmt.Sprintf("\nOn average the second is %.2f times the first.\n", mean))
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

// written compares a table with the file of that name in testdata, which docs/method.md cites.
func written(t *testing.T, name, table string) {
	t.Helper()
	file := "testdata/" + name + ".md"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(table), 0o644))
		return
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, table, string(text), "%s: if the new one is meant, go test ./internal/verdict -update "+
		"writes it, and go -C study generate ./... writes the pages", file)
}
