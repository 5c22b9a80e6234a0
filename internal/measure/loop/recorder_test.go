package loop_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/measure/loop"
)

// recorder has recorded n samples of 1 µs, 2 µs, 3 µs ...
func recorder(n int) *loop.Recorder {
	r := loop.NewRecorder()
	for i := range n {
		r.Record(time.Duration(i+1) * time.Microsecond)
	}
	return r
}

func TestQuantileOfExactSamples(t *testing.T) {
	const n = 100_000
	rnd := rand.New(rand.NewPCG(1, 2))
	shapes := map[string]func() float64{
		"exponential": func() float64 { return 50e3 * rnd.ExpFloat64() },
		"lognormal":   func() float64 { return 40e3 * math.Exp(rnd.NormFloat64()) },
		"uniform":     func() float64 { return 1e9 * rnd.Float64() },
		"wide":        func() float64 { return math.Exp(rnd.Float64() * math.Log(float64(loop.Max))) },
		"equal":       func() float64 { return 37_123 },
	}
	for name, sample := range shapes {
		t.Run(name, func(t *testing.T) {
			r := loop.NewRecorder()
			samples := make([]time.Duration, n)
			for i := range samples {
				samples[i] = time.Duration(sample())
				r.Record(samples[i])
			}
			slices.Sort(samples)
			require.Equal(t, int64(n), r.Count())
			for _, q := range []float64{0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999} {
				want := samples[int(math.Round(q*n))-1]
				got, ok := r.Quantile(q)
				require.True(t, ok)
				assert.GreaterOrEqual(t, got, want, "q=%v is rounded up", q)
				assert.LessOrEqual(t, float64(got-want), 0.001*float64(want), "q=%v: %v, exactly %v", q, got, want)
			}
		})
	}
}

func TestTenSamplesBeyond(t *testing.T) {
	for _, c := range []struct {
		q      float64
		enough int
	}{
		{0.5, 20}, {0.75, 40}, {0.8, 50}, {0.9, 100}, {0.95, 200}, {0.98, 500}, {0.99, 1000}, {0.995, 2000}, {0.999, 10_000},
		{0.9999, 100_000}, {0.99999, 1_000_000},
	} {
		t.Run(fmt.Sprint(c.q), func(t *testing.T) {
			r := recorder(c.enough - 1)
			got, ok := r.Quantile(c.q)
			assert.False(t, ok, "%d samples are one too few", c.enough-1)
			assert.Zero(t, got)
			r.Record(time.Second)
			_, ok = r.Quantile(c.q)
			assert.True(t, ok, "%d samples are enough", c.enough)
		})
	}
}

func TestOutOfRangeIsClamped(t *testing.T) {
	r := loop.NewRecorder()
	for range 50 {
		r.Record(-time.Second)
		r.Record(loop.Max)
		r.Record(loop.Max + 1)
		r.Record(math.MaxInt64)
	}
	assert.Equal(t, int64(200), r.Count(), "none is lost")
	low, ok := r.Quantile(0.25)
	require.True(t, ok)
	assert.Zero(t, low)
	high, ok := r.Quantile(0.26)
	require.True(t, ok)
	assert.Equal(t, loop.Max, high)
	high, ok = r.Quantile(0.95)
	require.True(t, ok)
	assert.Equal(t, loop.Max, high)
}
