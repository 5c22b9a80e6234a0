// Package latency records durations and gives back their percentiles. It is HdrHistogram with one rule added: a
// percentile with fewer than ten samples beyond it is absent, because the next run would give another.
package latency

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Durations from Min to Max are kept to 3 significant digits, which takes 33 Ki counters of 8 bytes: 264 KiB, allocated
// once. A narrower range would save little: up to a minute takes 216 KiB.
const (
	Min = time.Nanosecond
	Max = time.Hour
)

const (
	digits = 3
	beyond = 10 // samples, for a percentile to be had
)

// Recorder records durations. One goroutine at a time may use it.
//
// The zero value works, and allocates when it first records. In front of a loop whose allocations count, use [New].
type Recorder struct{ hist *hdrhistogram.Histogram }

// New returns a Recorder that has allocated all it ever will.
func New() *Recorder { return &Recorder{newHist()} }

func newHist() *hdrhistogram.Histogram { return hdrhistogram.New(int64(Min), int64(Max), digits) }

// Record adds one sample. What is longer than Max counts as Max, so that a stall stays in the tail where it belongs;
// what is negative counts as 0.
func (r *Recorder) Record(d time.Duration) {
	if r.hist == nil {
		r.hist = newHist()
	}
	_ = r.hist.RecordValue(int64(min(max(d, 0), Max))) // fails only out of range
}

// Count returns how many samples are recorded.
func (r *Recorder) Count() int64 {
	if r.hist == nil {
		return 0
	}
	return r.hist.TotalCount()
}

// Quantile returns the duration that a fraction q of the samples, such as 0.99, does not exceed: a sample's own to within
// 0.1 %, rounded up. It is false where fewer than ten samples are expected beyond it, as for 0.99 of 999 samples.
func (r *Recorder) Quantile(q float64) (time.Duration, bool) {
	const rounding = 1e-8 // of 1-q: 100 * (1-0.9) is a little less than 10
	if n := float64(r.Count()); !(n*(1-q)+rounding >= beyond) {
		return 0, false
	}
	return min(time.Duration(r.hist.ValueAtQuantile(q*100)), Max), true
}
