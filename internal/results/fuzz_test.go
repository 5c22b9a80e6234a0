package results

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Any file is a table, or an error that says whose it is.
func FuzzWrite(f *testing.F) {
	f.Add(codecs)
	f.Add("BenchmarkCodec/codec=json 1\nBenchmarkCodec/codec=json x 2 ns/op\n")
	f.Add("Unit ns/op assume=nothing\nBenchmarkCodec/codec=/codec=-2 1 NaN ns/op +Inf ns/op\n")
	layout := Layout{Col: "codec", Table: "op", Units: []string{"size-B", "ns/op", "B/op"}}
	f.Fuzz(func(t *testing.T, file string) {
		if err := layout.Write(io.Discard, strings.NewReader(file), "bench.txt"); err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "rpcbench: "), err)
		}
	})
}
