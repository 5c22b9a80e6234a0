package lib

import bench "testing"

func loop(b *bench.B) {
	for i := 0; i < b.N; i++ { // want
	}
	for range b.N { // want
	}
	b.Run("x", func(inner *bench.B) {
		_ = make([]int, inner.N) // want
		func(n int) {
			_ = b.N + n // want
		}(1)
	})
}
