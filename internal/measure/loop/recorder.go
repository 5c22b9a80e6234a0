package loop

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Max is the longest duration that a Recorder tells apart.
const Max = time.Hour

// Recorder records durations from a nanosecond to Max, to 3 significant digits. One goroutine at a time may use it.
type Recorder struct{ hist *hdrhistogram.Histogram }

// NewRecorder returns an empty Recorder. It allocates 264 KiB, and nothing later.
func NewRecorder() *Recorder { return &Recorder{hdrhistogram.New(1, int64(Max), 3)} }

// Record adds one sample. A longer one than Max counts as Max, so that a stall stays in the tail. A negative one counts
// as 0.
func (r *Recorder) Record(d time.Duration) {
	_ = r.hist.RecordValue(int64(min(max(d, 0), Max))) // fails only out of range
}

// Count returns how many samples are recorded.
func (r *Recorder) Count() int64 { return r.hist.TotalCount() }

// Sum returns the durations together, within 0.1 %.
func (r *Recorder) Sum() time.Duration { return time.Duration(r.hist.Mean() * float64(r.Count())) }

// Quantile returns the duration that a fraction q of the samples does not exceed, such as q = 0.99. The duration is
// rounded up by at most 0.1 %. Quantile returns false if fewer than ten samples are expected above, as for 0.99 of 999.
func (r *Recorder) Quantile(q float64) (time.Duration, bool) {
	const (
		beyond   = 10   // samples that a percentile needs above it
		rounding = 1e-8 // error of 1-q: 100 * (1-0.9) is a little less than 10
	)
	if n := float64(r.Count()); !(n*(1-q)+rounding >= beyond) {
		return 0, false
	}
	return min(time.Duration(r.hist.ValueAtQuantile(q*100)), Max), true
}
