package pages

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// Of each day's figure it's asked whether the intervals that the other days predict have it.
func TestOtherDays(t *testing.T) {
	recorded := func(ratios ...float64) *maker {
		m := &maker{kins: map[kind][]comparison{}}
		for i, r := range ratios {
			f := verdict.Figure{Ratio: r, Lo: r * 0.99, Hi: r * 1.01, BaseNs: 1000}
			c := comparison{Figure: f, Answer: report.Answer{GOMAXPROCS: 1, Answer: verdict.Answer{
				Processes: verdict.Counts{Counted: 8}, Time: f}}}
			c.of.Environment = []string{"date=2026-11-2" + string(rune('0'+i)), "cpu=A", "kernel=1"}
			c.of.Plan.Layouts = 8
			m.kins[kind{workload: "small"}] = append(m.kins[kind{workload: "small"}], c)
		}
		return m
	}
	for _, c := range []struct {
		reason   string
		ratios   []float64
		held, of int
	}{
		{"three days predict none: two would be left", []float64{1, 1.01, 1.02}, 0, 0},
		{"days that agree predict each other", []float64{1, 1.002, 0.998, 1.001}, 4, 4},
		{"one that is far off is not predicted, and widens the others", []float64{1, 1.002, 0.998, 3}, 3, 4},
	} {
		t.Run(c.reason, func(t *testing.T) {
			found := recorded(c.ratios...).otherDays()[oneCore]
			require.Equal(t, c.held, found.held)
			require.Equal(t, c.of, found.of)
			require.Len(t, found.halves, c.of)
		})
	}
	twice := recorded(1, 1.002, 0.998, 1.001)
	runs := twice.kins[kind{workload: "small"}]
	again := runs[0]
	again.Ratio = math.Pi
	twice.kins[kind{workload: "small"}] = append(runs, again)
	require.Equal(t, 4, twice.otherDays()[oneCore].of, "two runs of a day are one day")
}

// What today's records give: README's sentence on other days has these figures.
func TestDaysOfRecords(t *testing.T) {
	for calls, p := range in("../..").otherDays() {
		if p.of > 0 {
			t.Logf("%s: %d of %d figures lie in the interval that the other days predict, of half-width %.2f", calls, p.held,
				p.of, p.half())
		}
		require.LessOrEqual(t, p.held, p.of)
	}
}
