package timing

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
	each, err := r.Ratios(1, 0)
	require.NoError(t, err)
	require.Equal(t, []float64{6, 8, 0.5, 3, 4, 5, 1, 40, 9, 2}, each, "in the order of the blocks")
	got, err := r.Ratio(1, 0)
	require.NoError(t, err)
	require.Equal(t, 4.5, got)
	require.Equal(t, 27.5, r.NsPerOp(0))
	require.Equal(t, 100.0, r.NsPerOp(1))

	turned, err := r.Ratio(0, 1)
	require.NoError(t, err)
	require.InDelta(t, (1./4+1./5)/2, turned, 1e-12, "exchanging arm and base turns the ratios round")

	r.Blocks = r.Blocks[:9]
	got, err = r.Ratio(1, 0)
	require.NoError(t, err)
	require.Equal(t, 5.0, got, "an odd count of blocks has its median in the middle")
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
		want      string
	}{
		{"an arm against itself is 1 by construction", six(func(*Record) {}), 1, 1,
			"timing: arm 1 and base 1 have to be two of the 2 recorded"},
		{"no such arm", six(func(*Record) {}), 2, 0,
			"timing: arm 2 and base 0 have to be two of the 2 recorded"},
		{"a slice is missing", six(func(r *Record) { r.Blocks[2] = r.Blocks[2][:1] }), 1, 0,
			"timing: block 2 has 1 slices for 2 arms, leave it out"},
		{"a slice without operations", six(func(r *Record) { r.Blocks[3][1].Ops = 0 }), 1, 0,
			"timing: block 3 has a slice without operations or time, leave it out"},
		{"a slice without time", six(func(r *Record) { r.Blocks[3][0].Wall = 0 }), 1, 0,
			"timing: block 3 has a slice without operations or time, leave it out"},
		{"no block", six(func(r *Record) { r.Blocks = nil }), 1, 0, "timing: no block was recorded"},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			got, err := test.record.Ratio(test.arm, test.base)
			require.EqualError(t, err, test.want)
			require.True(t, math.IsNaN(got), "no ratio comes with an error")
		})
	}
	_, err := six(func(*Record) {}).Ratio(1, 0)
	require.NoError(t, err, "the record the rows start from is good")
	require.True(t, math.IsNaN(Record{Arms: []string{"a", "b"}}.NsPerOp(0)), "no blocks have no median")
}
