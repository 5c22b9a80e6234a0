//go:build !race

// The race detector makes pools lose values.

package codecs_test

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// The loop makes each op: where all of them allocate, n times as many allocate n times as much, as they do through the codec.
func TestLoopsMakeEachOp(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which empties pools
	eachRow(t, func(t *testing.T, o *ops) {
		form := o.Form(entry(t, "addressbook"))
		data := o.encoded(t, form.Value)
		perOp := func(few, many func()) float64 {
			return (testing.AllocsPerRun(5, many) - testing.AllocsPerRun(5, few)) / 100
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
		got, want := perOp(loop(10), loop(110)), perOp(codec(10), codec(110))
		require.Greater(t, want, 10.0)
		require.InDelta(t, want, got, 0.5)
	})
}
