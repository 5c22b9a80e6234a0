package workload_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
)

// A long queue may take longer than any call is allowed to: calls that end keep the fixture open.
func TestWatchdogBitesWithoutProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done, closed atomic.Int64
		hung := errors.New("hung")
		dog := workload.Watch(time.Second, done.Load, func() error { closed.Add(1); return nil })
		for range 10 {
			<-time.After(900 * time.Millisecond)
			require.False(t, dog.Note(hung) != hung)
			done.Add(1)
		}
		require.Zero(t, closed.Load())
		<-time.After(2100 * time.Millisecond)
		require.True(t, dog.Note(hung) != hung)
		require.EqualValues(t, 1, closed.Load())
	})
}

// A start goes on for as long as something crosses its connections, but not for ever.
func TestPatience(t *testing.T) {
	for _, c := range []struct {
		reason string
		each   time.Duration // in which a byte crosses
		until  time.Duration // bytes cross
		ends   [2]time.Duration
		said   string
	}{
		{"nothing crosses", time.Hour, 0, [2]time.Duration{10 * time.Second, 20 * time.Second},
			"not ready: nothing has crossed its connections for 10s"},
		{"it stops", time.Second, 25 * time.Second, [2]time.Duration{35 * time.Second, 45 * time.Second},
			"nothing has crossed"},
		{"it never ends", time.Second, time.Hour, [2]time.Duration{time.Minute, time.Minute},
			"not ready after 1m0s, although it went on: quiet the machine, or take fewer connections or a smaller " +
				"message"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var bytes atomic.Int64
			began := time.Now()
			ctx, opened := workload.Patient(t.Context(), 10*time.Second, bytes.Load)
			defer opened()
			for ctx.Err() == nil {
				select {
				case <-time.After(c.each):
					if time.Since(began) <= c.until {
						bytes.Add(1)
					}
				case <-ctx.Done():
				}
			}
			require.GreaterOrEqual(t, time.Since(began), c.ends[0], c.reason)
			require.LessOrEqual(t, time.Since(began), c.ends[1], c.reason)
			require.ErrorContains(t, context.Cause(ctx), c.said, c.reason)
		})
	}
}

// A link takes its time until all connections are ready.
func TestStarting(t *testing.T) {
	w := workload.Workload{Callers: 100, TLS: true, Link: "100ms/100kbps"}
	require.Zero(t, workload.Workload{Callers: 100, TLS: true}.Starting(rpcbench.Traits{}))
	require.Greater(t, w.Starting(rpcbench.Traits{}), 30*time.Second, "a hundred handshakes")
	require.Less(t, w.Starting(rpcbench.Traits{Multiplexed: true}), 2*time.Second, "and one")
}
