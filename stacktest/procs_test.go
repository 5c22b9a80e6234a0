package stacktest

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/testkit"
)

// BenchmarkPs has a row of each loop, over a stub that notes the GOMAXPROCS its calls see.
// TestRowsHaveThePsOfTheirLabel runs them in child processes.
func BenchmarkPs(b *testing.B) {
	forChildren(b)
	row := func(name string, loop func(b *testing.B, stack rpcbench.Stack)) {
		b.Run("case="+name, func(b *testing.B) {
			var seen sync.Map
			loop(b, stub(func(int64) error { seen.Store(runtime.GOMAXPROCS(0), true); return nil }))
			n := 0
			for procs := range seen.Range {
				b.ReportMetric(float64(procs.(int)), "seen-procs")
				n++
			}
			require.Equal(b, 1, n, "GOMAXPROCS that the calls of one run saw")
		})
	}
	row("serial", func(b *testing.B, s rpcbench.Stack) { Benchmark(b, s, rpcbench.Workload{}) })
	row("parallel", func(b *testing.B, s rpcbench.Stack) { Benchmark(b, s, rpcbench.Workload{Callers: 2, Conns: 1}) })
	row("own", func(b *testing.B, s rpcbench.Stack) {
		call, err := Start(b, s, rpcbench.Config{}).Client.Prepare(0)
		require.NoError(b, err)
		for b.Loop() {
			require.NoError(b, call(b.Context()))
		}
	})
	row("fixture", func(b *testing.B, s rpcbench.Stack) {
		f := Start(b, s, rpcbench.Config{})
		b.RunParallel(func(pb *testing.PB) {
			call, err := f.Client.Prepare(0)
			for err == nil && pb.Next() {
				err = call(b.Context())
			}
			assert.NoError(b, err)
		})
	})
}

func TestRowsHaveThePsOfTheirLabel(t *testing.T) {
	for _, c := range []struct{ why, list, count, plain string }{
		{"each twice", "2,1", "2", ""}, {"one after another", "1,2,1", "1", ""},
		{"more than many a machine has, each twice", "1,4", "2", ""},
		{"a plain benchmark without a TestMain", "2,1", "1", "1"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Setenv(withoutMain, c.plain)
			out, err := child(t, "-test.bench=^BenchmarkPs$", "-test.benchtime=20x", "-test.cpu="+c.list, "-test.count="+c.count)
			require.NoError(t, err, out)
			rows, _ := testkit.Rows(t, out)
			count, err := strconv.Atoi(c.count)
			require.NoError(t, err)
			require.Len(t, rows, 4*count*len(strings.Split(c.list, ",")), out)
			for _, row := range rows {
				_, label, found := strings.Cut(string(row.Name.Full()), "-")
				if !found {
					label = "1"
				}
				procs, err := strconv.ParseFloat(label, 64)
				require.NoError(t, err, out)
				seen, ok := row.Value("seen-procs")
				require.True(t, ok, out)
				require.Equal(t, procs, seen, fmt.Sprintf("%s ran with %v Ps\n%s", row.Name, seen, out))
			}
		})
	}
}
