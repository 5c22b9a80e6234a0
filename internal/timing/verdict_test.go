package timing

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVerdict(t *testing.T) {
	const margin = 0.02
	for _, test := range []struct {
		why    string
		lo, hi float64
		floor  float64
		want   Verdict
	}{
		{"all below 1", 0.90, 0.95, 0, Faster},
		{"all above 1", 1.05, 1.10, 0, Slower},
		{"a difference smaller than the margin is one all the same", 1.005, 1.010, 0, Slower},
		{"round 1, within the margin", 0.985, 1.015, 0, Equal},
		{"up to the margin", 1 / 1.02, 1.02, 0, Equal},
		{"round 1, too wide above", 0.985, 1.025, 0, Undecided},
		{"round 1, too wide below", 0.975, 1.015, 0, Undecided},
		{"touches 1", 1, 1.10, 0, Undecided},
		{"outside the noise floor", 0.90, 0.95, 0.05, Faster},
		{"begins inside the noise floor", 1.04, 1.10, 0.05, Undecided},
		{"ends inside the noise floor", 0.90, 0.96, 0.05, Undecided},
		{"inside the noise floor, which is inside the margin", 1.005, 1.010, 0.012, Equal},
		{"equality needs a noise floor inside the margin", 0.995, 1.005, 0.03, Undecided},
	} {
		t.Run(test.why, func(t *testing.T) {
			require.Equal(t, test.want, Interval{Lo: test.lo, Hi: test.hi}.Verdict(test.floor, margin))
			turned := map[Verdict]Verdict{Faster: Slower, Slower: Faster, Equal: Equal, Undecided: Undecided}
			require.Equal(t, turned[test.want], Interval{Lo: 1 / test.hi, Hi: 1 / test.lo}.Verdict(test.floor, margin+1e-12),
				"exchanging arm and base exchanges faster and slower")
		})
	}
}

func TestFloor(t *testing.T) {
	require.InDelta(t, 0.005, Interval{Lo: 0.998, Hi: 1.005}.Floor(), 1e-12)
	require.InDelta(t, 1/0.99-1, Interval{Lo: 0.990, Hi: 1.005}.Floor(), 1e-12)
	require.InDelta(t, 0.005, Interval{Lo: 1.002, Hi: 1.005}.Floor(), 1e-12, "also where it does not hold 1")
}
