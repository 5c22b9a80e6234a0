package timing

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
)

// ErrTooFew says that there are too few blocks for an interval of the wanted level.
var ErrTooFew = errors.New("too few blocks")

// Interval is how many times as long one arm takes as another: 1.05 is 5 % longer.
type Interval struct {
	Median, Lo, Hi float64
	Level          float64 // confidence of [Lo, Hi]: at least what was asked for
	Blocks         int
}

// Ratio compares an arm with a base, both given by their index in Arms. The estimate is the median over blocks of the
// ratio of their times per operation. The interval is the narrowest symmetric one of order statistics that covers the
// true median with at least the given level, for independent blocks. The error is [ErrTooFew] with too few blocks: a
// level of 0.95 needs 6.
func (r Record) Ratio(arm, base int, level float64) (Interval, error) {
	if arm == base || max(arm, base) >= len(r.Arms) {
		return Interval{}, fmt.Errorf("timing: arm %d and base %d have to be two of the %d recorded", arm, base, len(r.Arms))
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

// NsPerOp returns the median over blocks of an arm's nanoseconds per operation, NaN without blocks. It gives a sense of
// size. Compare arms by Ratio, which the machine's drift does not touch.
func (r Record) NsPerOp(arm int) float64 { return r.median(arm, Slice.nsPerOp) }

// CPUNsPerOp is NsPerOp for the CPU time of the process. It returns 0 if the system does not tell.
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

// rank returns the greatest k for which the k-th smallest and the k-th greatest of n values enclose the median with at
// least the given level, and the level that they reach. k is 0 if not even the outermost values do.
//
// The number B of values below the median is binomial(n, 1/2), and the interval misses if B < k or B > n-k: H. A. David
// and H. N. Nagaraja, Order Statistics, 3rd ed., section 7.1.
func rank(n int, level float64) (k int, coverage float64) {
	p := new(big.Float).SetMantExp(big.NewFloat(1), -n) // P(B = 0); above 1074 blocks a float64 would be 0
	below := new(big.Float)
	for {
		below.Add(below, p) // P(B <= k)
		miss, _ := below.Float64()
		if !(1-2*miss >= level) { // also if level is NaN
			return k, coverage
		}
		k, coverage = k+1, 1-2*miss
		p.Mul(p, big.NewFloat(float64(n-k+1)))
		p.Quo(p, big.NewFloat(float64(k)))
	}
}

// Verdict is the result of a comparison in a word.
type Verdict string

const (
	Faster    Verdict = "faster"    // the arm takes less time than the base
	Slower    Verdict = "slower"    // the arm takes more time than the base
	Equal     Verdict = "equal"     // arm and base differ by less than the margin
	Undecided Verdict = "undecided" // the interval allows more than one of the others
)

// Verdict decides by the interval alone:
//   - Faster or Slower, if the whole interval lies on one side of 1 and outside the noise floor. The difference may be
//     smaller than the margin.
//   - else Equal, if the whole interval and the noise floor lie within the margin
//   - else Undecided
//
// floor and margin are fractions: 0.02 reaches from 1/1.02 to 1.02. Exchanging arm and base thus exchanges Faster and
// Slower, and changes nothing else.
func (i Interval) Verdict(floor, margin float64) Verdict {
	switch {
	case i.Hi < 1/(1+floor):
		return Faster
	case i.Lo > 1+floor:
		return Slower
	case floor <= margin && i.Lo >= 1/(1+margin) && i.Hi <= 1+margin:
		return Equal
	}
	return Undecided
}

// Floor returns how far the interval reaches from 1, as a fraction: 0.005 for an interval from 0.998 to 1.005. For a
// base compared with its own copy that is the noise floor. Ignore smaller differences.
func (i Interval) Floor() float64 { return max(i.Hi, 1/i.Lo) - 1 }
