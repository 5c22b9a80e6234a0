// Package latency makes calls at the same time, in a closed loop or at planned starts, and gives the percentiles of
// their latencies. A percentile with fewer than ten samples beyond it is absent: the next run would give another.
package latency

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Max is the longest duration that is kept.
const Max = time.Hour

// Recorder records durations from a nanosecond to Max, to 3 significant digits. One goroutine at a time may use it.
type Recorder struct{ hist *hdrhistogram.Histogram }

// New returns an empty Recorder, which has allocated all it ever will: 264 KiB.
func New() *Recorder { return &Recorder{hdrhistogram.New(1, int64(Max), 3)} }

// Record adds one sample. One longer than Max counts as Max, so that a stall stays in the tail; a negative one is 0.
func (r *Recorder) Record(d time.Duration) {
	_ = r.hist.RecordValue(int64(min(max(d, 0), Max))) // fails only out of range
}

// Count returns how many samples are recorded.
func (r *Recorder) Count() int64 { return r.hist.TotalCount() }

// Quantile returns the duration that a fraction q of the samples, such as 0.99, does not exceed: that of a sample to
// within 0.1 %, rounded up. It is false where fewer than ten samples are expected beyond it, as for 0.99 of 999.
func (r *Recorder) Quantile(q float64) (time.Duration, bool) {
	const (
		beyond   = 10   // samples, for a percentile to be had
		rounding = 1e-8 // of 1-q: 100 * (1-0.9) is a little less than 10
	)
	if n := float64(r.Count()); !(n*(1-q)+rounding >= beyond) {
		return 0, false
	}
	return min(time.Duration(r.hist.ValueAtQuantile(q*100)), Max), true
}
