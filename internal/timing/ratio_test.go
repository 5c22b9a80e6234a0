package timing

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRank(t *testing.T) {
	// Ranks and levels are as printed in M. F. Triola, Elementary Statistics, table A-7 (critical values of the sign
	// test, k-1), and in the tables of confidence intervals for a median, which give the level to a tenth of a percent.
	tests := []struct {
		why      string
		n        int
		level    float64
		k        int
		coverage float64 // percent
	}{
		{"nothing was recorded", 0, 0.95, 0, 0},
		{"one value is on either side of the median", 1, 0.01, 0, 0},
		{"the range of five falls short of 95 %", 5, 0.95, 0, 0},
		{"the range of five reaches 93.75 % exactly", 5, 0.9375, 1, 93.75},
		{"six are the fewest at 95 %", 6, 0.95, 1, 96.9},
		{"seven are too few for 99 %", 7, 0.99, 0, 0},
		{"eight are the fewest at 99 %", 8, 0.99, 1, 99.2},
		{"eight at 95 %: 2nd and 7th reach 93.0 only", 8, 0.95, 1, 99.2},
		{"nine at 95 %: 2nd and 8th", 9, 0.95, 2, 96.1},
		{"ten at 95 %: 2nd and 9th", 10, 0.95, 2, 97.9},
		{"ten at 89 %: 3rd and 8th", 10, 0.89, 3, 89.1},
		{"twelve at 95 %: 3rd and 10th", 12, 0.95, 3, 96.1},
		{"fifteen at 95 %: 4th and 12th", 15, 0.95, 4, 96.5},
		{"seventeen at 95 %: 5th and 13th", 17, 0.95, 5, 95.1},
		{"twenty at 95 %: 6th and 15th", 20, 0.95, 6, 95.9},
		{"twenty at 99 %: 4th and 17th", 20, 0.99, 4, 99.7},
		{"an even count at a low level stops at its two middle values", 2, 0.01, 1, 50},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			k, coverage := rank(test.n, test.level)
			require.Equal(t, test.k, k)
			require.InDelta(t, test.coverage, 100*coverage, 0.05+1e-9)
		})
	}
}

func TestRankOfManyBlocks(t *testing.T) {
	for _, n := range []int{1000, 1074, 1075, 5000} { // 2^-1075 is 0 in a float64
		k, coverage := rank(n, 0.95)
		normal := float64(n)/2 - 1.959964*math.Sqrt(float64(n))/2
		require.InDelta(t, normal, k, 1, "%d blocks: far from the normal approximation", n)
		require.InDelta(t, 0.955, coverage, 0.005, "%d blocks", n)
	}
	k, coverage := rank(1075, 0.95)
	require.Equal(t, 505, k, "by exact fractions")
	require.InDelta(t, 0.955933520620151, coverage, 1e-12)
}

// record has one block per pair of nanoseconds per operation, the base's and then the arm's.
func record(pairs ...[2]float64) Record {
	r := Record{Arms: []string{"base", "arm"}}
	for _, ns := range pairs {
		const ops = 1e6
		r.Blocks = append(r.Blocks, []Slice{
			{Ops: ops, Wall: time.Duration(ops * ns[0])},
			{Ops: ops / 2, Wall: time.Duration(ops / 2 * ns[1])}, // so that wall alone would be wrong
		})
	}
	return r
}

func TestRatioByHand(t *testing.T) {
	// In order, the arm's ratios to the base are 0.5, 1, 2, 3, 4, 5, 6, 8, 9, 40. The median of either arm lies in
	// other blocks than those of the median ratio: 105/27.5 would be the ratio of the medians.
	r := record(
		[2]float64{10, 60}, [2]float64{20, 160}, [2]float64{200, 100}, [2]float64{30, 90}, [2]float64{40, 160},
		[2]float64{50, 250}, [2]float64{100, 100}, [2]float64{5, 200}, [2]float64{10, 90}, [2]float64{25, 50})
	got, err := r.Ratio(1, 0, 0.95)
	require.NoError(t, err)
	require.Equal(t, Interval{Median: 4.5, Lo: 1, Hi: 9, Level: 1 - 22.0/1024, Blocks: 10}, got)
	require.Equal(t, 27.5, r.NsPerOp(0))
	require.Equal(t, 100.0, r.NsPerOp(1))

	turned, err := r.Ratio(0, 1, 0.95)
	require.NoError(t, err)
	require.Equal(t, 1.0/9, turned.Lo, "exchanging arm and base turns the interval round")
	require.Equal(t, 1.0, turned.Hi)

	r.Blocks = r.Blocks[:9]
	got, err = r.Ratio(1, 0, 0.95)
	require.NoError(t, err)
	require.Equal(t, 5.0, got.Median, "an odd count of blocks has its median in the middle")
	require.Equal(t, 30.0, r.NsPerOp(0))
}

func TestRatioRefuses(t *testing.T) {
	six := func(change func(*Record)) Record {
		r := record(slices.Repeat([][2]float64{{10, 20}}, 6)...)
		change(&r)
		return r
	}
	tests := []struct {
		why       string
		record    Record
		arm, base int
		level     float64
		want      string
	}{
		{"an arm against itself is 1 by construction", six(func(*Record) {}), 1, 1, 0.95,
			"timing: arm 1 and base 1 have to be two of the 2 recorded"},
		{"no such arm", six(func(*Record) {}), 2, 0, 0.95,
			"timing: arm 2 and base 0 have to be two of the 2 recorded"},
		{"a slice is missing", six(func(r *Record) { r.Blocks[2] = r.Blocks[2][:1] }), 1, 0, 0.95,
			"timing: block 2 has 1 slices for 2 arms, leave it out"},
		{"a slice without operations", six(func(r *Record) { r.Blocks[3][1].Ops = 0 }), 1, 0, 0.95,
			"timing: block 3 has a slice without operations or time, leave it out"},
		{"a slice without time", six(func(r *Record) { r.Blocks[3][0].Wall = 0 }), 1, 0, 0.95,
			"timing: block 3 has a slice without operations or time, leave it out"},
		{"no block", six(func(r *Record) { r.Blocks = nil }), 1, 0, 0.95,
			"timing: level 0.95 needs 6 blocks, got 0: too few blocks"},
		{"five blocks at 95 %", six(func(r *Record) { r.Blocks = r.Blocks[:5] }), 1, 0, 0.95,
			"timing: level 0.95 needs 6 blocks, got 5: too few blocks"},
		{"six blocks at 99 %", six(func(*Record) {}), 1, 0, 0.99,
			"timing: level 0.99 needs 8 blocks, got 6: too few blocks"},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			got, err := test.record.Ratio(test.arm, test.base, test.level)
			require.EqualError(t, err, test.want)
			require.Zero(t, got, "no interval comes with an error")
			if test.arm != test.base && len(test.record.Blocks) < 6 {
				require.ErrorIs(t, err, ErrTooFew)
			}
		})
	}
	_, err := six(func(*Record) {}).Ratio(1, 0, 0.95)
	require.NoError(t, err, "the record the rows start from is good")
	require.True(t, math.IsNaN(Record{Arms: []string{"a", "b"}}.NsPerOp(0)), "no blocks have no median")
}

// The machine gets slower and faster by a random walk of 3 % a block, a slice is off by about 1 %, and one in twenty is
// held up: the interval has to cover the true ratio as often as it says.
func TestRatioCoversUnderDrift(t *testing.T) {
	const seeds, blocks, truth = 1000, 40, 1.05
	covered, paired, unpaired := 0, make([]float64, seeds), make([]float64, seeds)
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 0))
		speed := 30_000.0
		slice := func(ns float64) float64 {
			ns *= 1 + 0.01*r.NormFloat64()
			if r.IntN(20) == 0 {
				ns *= 1 + r.Float64()
			}
			return ns
		}
		var pairs [][2]float64
		for range blocks {
			speed *= math.Exp(0.03 * r.NormFloat64())
			pairs = append(pairs, [2]float64{slice(speed), slice(speed * truth)})
		}
		rec := record(pairs...)
		got, err := rec.Ratio(1, 0, 0.95)
		require.NoError(t, err)
		if got.Lo <= truth && truth <= got.Hi {
			covered++
		}
		paired[seed] = math.Abs(got.Median - truth)

		// What separate runs would read: the base for half of the time, then the arm.
		first, second := rec, rec
		first.Blocks, second.Blocks = rec.Blocks[:blocks/2], rec.Blocks[blocks/2:]
		unpaired[seed] = math.Abs(second.NsPerOp(1)/first.NsPerOp(0) - truth)
	}
	require.GreaterOrEqual(t, covered, seeds*93/100)
	require.LessOrEqual(t, covered, seeds*99/100, "an interval that always covers is too wide")
	slices.Sort(paired)
	slices.Sort(unpaired)
	require.Less(t, 20*median(paired), median(unpaired), "typical error: pairing has to take the drift out")
}
