package timing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/measure/timing"
)

func TestTick(t *testing.T) {
	for _, c := range []struct {
		why        string
		read, step time.Duration // what a reading takes, in steps of which the clock advances
		want       time.Duration
		coarse     bool
	}{
		{"a clock that is finer than its readings", 40, 1, 40, false},
		{"a clock that steps by as much as a reading takes", 40, 40, 40, false},
		{"Windows", 40, 500 * time.Microsecond, 500 * time.Microsecond, true},
		{"Windows with its coarsest timer", 40, 15_625 * time.Microsecond, 15_625 * time.Microsecond, true},
		{"a clock of 100 ns", 20, 100, 100, true},
	} {
		now := time.Duration(0)
		got, coarse := timing.Tick(func() time.Duration {
			now += c.read
			return now / c.step * c.step
		})
		require.Equal(t, c.want, got, c.why)
		require.Equal(t, c.coarse, coarse, c.why)
	}
}
