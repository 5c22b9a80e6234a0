package latency_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/latency"
)

func TestTick(t *testing.T) {
	for _, c := range []struct {
		why        string
		read, step time.Duration // what a reading takes, in steps of which the clock advances
		want       time.Duration
	}{
		{"a clock that is finer than its readings", 40, 1, 0},
		{"a clock that steps by as much as a reading takes", 40, 40, 0},
		{"Windows", 40, 500 * time.Microsecond, 500 * time.Microsecond},
		{"Windows with its coarsest timer", 40, 15_625 * time.Microsecond, 15_625 * time.Microsecond},
		{"a clock of 100 ns", 20, 100, 100},
	} {
		now := time.Duration(0)
		got := latency.Tick(func() time.Duration {
			now += c.read
			return now / c.step * c.step
		})
		require.Equal(t, c.want, got, c.why)
	}
}
