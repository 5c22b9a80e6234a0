//go:build !race

// The race detector makes pools lose values.

package codecs_test

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/codecs"
)

// The loop makes each op: where all of them allocate, n times as many allocate n times as much, as they do through the codec.
func TestLoopsMakeEachOp(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which empties pools
	eachMessage(t, func(t *testing.T, o *ops, form codecs.Form) {
		data := o.encoded(t, form.Value)
		few, many := 10, 110
		if len(data) > 5000 {
			few, many = 1, 11
		}
		perOp := func(fewOps, manyOps func()) float64 {
			return (testing.AllocsPerRun(5, manyOps) - testing.AllocsPerRun(5, fewOps)) / float64(many-few)
		}
		loop := func(n int) func() {
			return func() {
				v, err := form.Unmarshal(data, n)
				require.NoError(t, err)
				o.release(v)
			}
		}
		codec := func(n int) func() {
			return func() {
				for range n {
					o.release(o.decoded(t, data, form))
				}
			}
		}
		got, want := perOp(loop(few), loop(many)), perOp(codec(few), codec(many))
		require.InDelta(t, want, got, 0.5)
	})
}
