package verdict

import (
	"cmp"
	"math"

	"github.com/aclements/go-moremath/mathx"
)

// FewestRuns is how many runs a mean takes at least. Two say whether they differ, and no more.
const FewestRuns = 3

// exact is the least standard error of an estimate. Calls and clocks tell a ratio no better.
const exact = 1e-4

// Estimate is what a run found of a ratio, as a logarithm.
type Estimate struct {
	Ln, SE  float64 // the mean over processes, and its standard error
	Freedom int     // of SE, in degrees: processes minus 1; 0 if SE is known
	Layout  float64 // half the width that one layout adds to the interval, the same error in each run of the source
	Floor   float64 // noise floor, as a ratio minus 1
	Margin  float64 // of Same
}

// Pooled is what several runs found of a ratio. With two of them it tells whether they differ, and all else is 0.
type Pooled struct {
	Runs   int     `json:"runs"`
	PValue float64 `json:"p_value"` // of Welch's test that they all have one ratio
	Differ bool    `json:"differ"`  // they differ by more than their intervals: PValue is below 1 minus Level
	Level  float64 `json:"level"`   // of both intervals

	Verdict    Verdict `json:"verdict,omitzero"`
	Ratio      float64 `json:"ratio,omitzero"` // mean over runs
	Lo         float64 `json:"lo,omitzero"`    // its confidence interval
	Hi         float64 `json:"hi,omitzero"`
	NextLo     float64 `json:"next_lo,omitzero"` // where the ratio of another run lies: the prediction interval
	NextHi     float64 `json:"next_hi,omitzero"`
	Tau        float64 `json:"tau,omitzero"` // standard deviation between runs of the true ratio's logarithm
	I2         float64 `json:"i2,omitzero"`  // its share of the variance of what a run finds
	NoiseFloor float64 `json:"noise_floor,omitzero"`
	Margin     float64 `json:"margin,omitzero"` // of Same
}

// Estimate is what a figure of so many processes says of its ratio, or false if it has none that a mean may rest on.
func (f Figure) Estimate(processes int, oneLayout bool) (Estimate, bool) {
	if !(0 < f.Lo && f.Lo <= f.Ratio && f.Ratio <= f.Hi && f.Hi <= math.MaxFloat64) || processes < 2 || f.Refused() {
		return Estimate{}, false
	}
	e := Estimate{Ln: math.Log(f.Ratio), Freedom: processes - 1, Floor: f.NoiseFloor,
		Margin: cmp.Or(f.Margin, Margin)}
	half := (math.Log(f.Hi) - math.Log(f.Lo)) / 2
	if oneLayout {
		e.Layout = min(half, layoutHalf())
	}
	e.SE = math.Sqrt(half*half-e.Layout*e.Layout) / quantile(e.Freedom)
	return e, true
}

// Refused tells whether the figure could have no verdict, whatever its interval says.
func (f Figure) Refused() bool {
	switch f.Reason.Kind {
	case NotCompleted, Disturbed, Crowded, TooFew:
		return true
	}
	return false
}

// Pool makes one answer of what runs found of one ratio: a random-effects mean of its logarithm, as of a meta-analysis.
//
// The variance between runs is Paule and Mandel's. Hartung and Knapp's interval has Student's t, and a factor that this
// variance makes 1. Without a variance between runs the factor is less, and 1 here too, so that no interval is narrower
// than one of runs that don't differ.
//
// The prediction interval is for the ratio that another run will find, so it has the error of that run too. What a
// layout adds, and the noise floor, have the mean that the ratios have: runs share such errors, and more runs of the
// same program don't make them less.
func Pool(runs []Estimate) Pooled {
	p := Pooled{Runs: len(runs), Level: level}
	if len(runs) < 2 {
		return p
	}
	p.PValue = welch(runs)
	p.Differ = p.PValue < 1-level
	if len(runs) < FewestRuns {
		return p
	}
	tau2 := between(runs)
	m, freedom := weigh(runs, tau2), float64(len(runs)-1)
	own, layout, floor := 0.0, 0.0, 0.0
	for i, r := range runs {
		own += r.variance() / float64(len(runs))
		layout += m.weights[i] / m.sum * r.Layout
		floor += m.weights[i] / m.sum * math.Log1p(r.Floor)
		p.Margin = min(r.Margin, cmp.Or(p.Margin, r.Margin))
	}
	t := quantile(len(runs) - 1)
	half := math.Hypot(t*math.Sqrt(1/m.sum), layout)
	next := math.Hypot(t*math.Sqrt(1/m.sum+tau2+own), layout)
	p.Ratio, p.Lo, p.Hi = bounded(m.mean), bounded(m.mean-half), bounded(m.mean+half)
	p.NextLo, p.NextHi = bounded(m.mean-next), bounded(m.mean+next)
	fixed := weigh(runs, 0)
	typical := freedom * fixed.sum / (fixed.sum*fixed.sum - fixed.squares)
	p.Tau, p.I2 = math.Sqrt(tau2), tau2/(tau2+typical)
	p.NoiseFloor = math.Expm1(floor)
	p.Verdict = Interval{p.Lo, p.Hi, p.NoiseFloor}.Verdict(p.Margin)
	return p
}

// bounded is a ratio that JSON can hold.
func bounded(ln float64) float64 { return math.Exp(max(-700, min(ln, 700))) }

// variance is that of the estimate.
func (e Estimate) variance() float64 { return math.Pow(max(e.SE, exact), 2) }

// weighed is a mean with inverse variances as weights.
type weighed struct {
	weights      []float64
	sum, squares float64 // of the weights
	mean, q      float64 // and the weighted squares of how far runs are from it: Cochran's Q
}

// weigh makes the mean of runs between which the variance is tau2.
func weigh(runs []Estimate, tau2 float64) (m weighed) {
	for _, r := range runs {
		w := 1 / (r.variance() + tau2)
		m.weights, m.sum, m.squares, m.mean = append(m.weights, w), m.sum+w, m.squares+w*w, m.mean+w*r.Ln
	}
	m.mean /= m.sum
	for i, r := range runs {
		m.q += m.weights[i] * (r.Ln - m.mean) * (r.Ln - m.mean)
	}
	return m
}

// between is the variance between runs, by Paule and Mandel (1982): the one with which Cochran's Q is what is expected
// of it, or 0 if Q is less than that without any. Q falls as the variance grows.
func between(runs []Estimate) float64 {
	expected, squares, mean := float64(len(runs)-1), 0.0, 0.0
	if weigh(runs, 0).q <= expected {
		return 0
	}
	for _, r := range runs {
		mean += r.Ln / float64(len(runs))
	}
	for _, r := range runs {
		squares += (r.Ln - mean) * (r.Ln - mean)
	}
	lo, hi := 0.0, squares/expected // of which Q is less: no weight is more than 1/hi, and no mean is nearer
	for range 100 {
		if middle := (lo + hi) / 2; weigh(runs, middle).q > expected {
			lo = middle
		} else {
			hi = middle
		}
	}
	return hi
}

// welch is the p-value of Welch's test (1951) that the means of runs are one. It is Cochran's Q, for standard errors
// that a few processes tell: by Q alone, runs that don't differ would be called different twice as often.
func welch(runs []Estimate) float64 {
	m, k, lack := weigh(runs, 0), float64(len(runs)), 0.0
	for i, r := range runs {
		if r.Freedom > 0 {
			lack += math.Pow(1-m.weights[i]/m.sum, 2) / float64(r.Freedom)
		}
	}
	if lack == 0 { // the standard errors are known
		return mathx.GammaIncComp((k-1)/2, m.q/2)
	}
	f := m.q / (k - 1) / (1 + 2*(k-2)/(k*k-1)*lack)
	freedom := (k*k - 1) / (3 * lack)
	return mathx.BetaInc(freedom/(freedom+(k-1)*f), freedom/2, (k-1)/2)
}
