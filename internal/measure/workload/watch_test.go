package workload_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

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
