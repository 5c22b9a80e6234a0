package timing

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
)

// ErrTooFew is returned when the blocks hold no interval of the level asked for.
var ErrTooFew = errors.New("too few blocks")

// Interval is how many times as long one arm takes as another: 1.05 is 5 % longer.
type Interval struct {
	Median, Lo, Hi float64
	Level          float64 // confidence of [Lo, Hi]: at least what was asked for
	Blocks         int
}

// Ratio compares an arm with a base, both indices into Arms: the median over blocks of the ratio of their times per
// operation, and the narrowest symmetric interval of order statistics that covers the true median with at least the
// given level. That takes the blocks as independent. It is [ErrTooFew] when there are too few of them: 6 at 0.95.
func (r Record) Ratio(arm, base int, level float64) (Interval, error) {
	switch {
	case arm == base:
		return Interval{}, fmt.Errorf("timing: arm %d is its own base, give its Op two names and compare those", arm)
	case min(arm, base) < 0 || max(arm, base) >= len(r.Arms):
		return Interval{}, fmt.Errorf("timing: arm %d and base %d have to be among the %d recorded", arm, base, len(r.Arms))
	case !(level > 0 && level < 1):
		return Interval{}, fmt.Errorf("timing: level %v has to lie between 0 and 1, such as 0.95", level)
	}
	ratios := make([]float64, len(r.Blocks))
	for i, block := range r.Blocks {
		if len(block) != len(r.Arms) {
			return Interval{}, fmt.Errorf("timing: block %d has %d slices for %d arms, leave it out", i, len(block), len(r.Arms))
		}
		a, b := block[arm], block[base]
		if min(a.Ops, b.Ops) <= 0 || min(a.Wall, b.Wall) <= 0 {
			return Interval{}, fmt.Errorf("timing: block %d has a slice without operations or time, leave it out", i)
		}
		ratios[i] = a.nsPerOp() / b.nsPerOp()
	}
	n := len(ratios)
	k, coverage := rank(n, level)
	if k == 0 {
		need := math.Ceil(1 - math.Log2(1-level)) // all n lie on one side of the median once in 2^(n-1) times
		return Interval{}, fmt.Errorf("timing: level %v needs %v blocks, got %d: %w", level, need, n, ErrTooFew)
	}
	slices.Sort(ratios)
	return Interval{Median: median(ratios), Lo: ratios[k-1], Hi: ratios[n-k], Level: coverage, Blocks: n}, nil
}

// NsPerOp is the median over blocks of one arm's nanoseconds per operation, NaN without blocks. It is for the reader's
// sense of size; arms are compared by Ratio, which the machine's drift does not touch.
func (r Record) NsPerOp(arm int) float64 { return r.median(arm, Slice.nsPerOp) }

// CPUNsPerOp is the same of the process's CPU time, 0 where the system doesn't tell.
func (r Record) CPUNsPerOp(arm int) float64 {
	return r.median(arm, func(s Slice) float64 { return float64(s.CPU) / float64(s.Ops) })
}

func (r Record) median(arm int, value func(Slice) float64) float64 {
	values := make([]float64, len(r.Blocks))
	for i, block := range r.Blocks {
		values[i] = value(block[arm])
	}
	slices.Sort(values)
	return median(values)
}

func (s Slice) nsPerOp() float64 { return float64(s.Wall) / float64(s.Ops) }

func median(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// rank returns the greatest k for which the k-th smallest and the k-th greatest of n values enclose their median with
// at least the given level, and the level they reach; 0 if not even the outermost do. The number B of values below the
// median is binomial(n, 1/2), and the interval misses if B < k or B > n-k: H. A. David and H. N. Nagaraja, Order
// Statistics, 3rd ed., section 7.1.
func rank(n int, level float64) (k int, coverage float64) {
	p := new(big.Float).SetMantExp(big.NewFloat(1), -n) // P(B = 0), for which a float64 is too small above 1074 blocks
	below := new(big.Float)
	for {
		below.Add(below, p) // P(B <= k)
		miss, _ := below.Float64()
		if 1-2*miss < level {
			return k, coverage
		}
		k, coverage = k+1, 1-2*miss
		p.Mul(p, big.NewFloat(float64(n-k+1)))
		p.Quo(p, big.NewFloat(float64(k)))
	}
}
