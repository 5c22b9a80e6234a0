package stacktest

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
)

// busy is a stack whose calls take a time each and leave garbage, so that slices end soon.
func busy(name string, takes time.Duration) rpcbench.Stack {
	return stubNamed(name, func(int64) error {
		work(takes, 64<<10)
		return nil
	})
}

// dying is a stack whose calls take a millisecond, and fail in the fifth block.
func dying(name string) rpcbench.Stack {
	const cheap = 100 // calls: the warm-up
	var fixtures atomic.Int64
	return stubNamed(name, func(n int64) error {
		if n == 1 {
			fixtures.Add(1)
		}
		if n <= cheap {
			return nil
		}
		if fixtures.Load() >= 5 {
			return errors.New("the server died")
		}
		work(time.Millisecond, 1<<20)
		return nil
	})
}

func stubNamed(name string, call func(n int64) error) rpcbench.Stack {
	s := stub(call)
	s.Name = name
	return s
}

func work(takes time.Duration, garbage int) {
	b := make([]byte, garbage)
	for start := time.Now(); time.Since(start) < takes; {
		b[0]++
	}
	runtime.KeepAlive(b)
}

// BenchmarkDuel is for the tests below, which run it in child processes.
func BenchmarkDuel(b *testing.B) {
	if os.Getenv(inChild) == "" {
		b.Skip("run by the tests of BenchmarkVersus")
	}
	base, twice := busy("base", 20*time.Microsecond), busy("twice", 40*time.Microsecond)
	b.Run("case=well", func(b *testing.B) { BenchmarkVersus(b, base, twice) })
	b.Run("case=dying", func(b *testing.B) { BenchmarkVersus(b, base, twice, dying("dying")) })
	b.Run("case=alone", func(b *testing.B) { BenchmarkVersus(b, base) })
	b.Run("case=panic", func(b *testing.B) {
		BenchmarkVersus(b, base, stubNamed("panics", func(n int64) error {
			if n > 2000 {
				panic("broken")
			}
			return nil
		}))
	})
}

func TestVersusRows(t *testing.T) {
	out, err := child(t, "-test.bench=^BenchmarkDuel$/^case=well$", "-test.benchtime=9x", "-test.cpu=1,2", "-test.count=2", "-test.benchmem")
	require.NoError(t, err, out)
	rows, units := results(t, out)
	require.Len(t, rows, 8, "two stacks, measured twice for each of two GOMAXPROCS\n%s", out)
	seeds := map[float64]bool{}
	for _, row := range rows {
		must := func(unit string) float64 {
			v, ok := value(row, unit)
			require.True(t, ok, "%s is missing in\n%s", unit, out)
			return v
		}
		name := string(row.Name.Full())
		for _, v := range row.Values {
			custom := !strings.Contains("sec/op B/op allocs/op", v.Unit)
			require.Equal(t, custom, units[v.OrigUnit] || units[v.Unit], "a Unit line for %q, exactly if testing doesn't know it", v.Unit)
		}
		require.GreaterOrEqual(t, must("B/op"), float64(64<<10), "not the false 0 of a row that only reports")
		require.Positive(t, must("allocs/op"))
		require.Positive(t, must("cpu-ns/op"))
		seeds[must("seed")] = true
		if strings.Contains(name, "stack=base") {
			require.LessOrEqual(t, must("aa-ratio-lo"), must("aa-ratio"))
			require.LessOrEqual(t, must("aa-ratio"), must("aa-ratio-hi"))
			floor := 100 * (max(must("aa-ratio-hi"), 1/must("aa-ratio-lo")) - 1)
			require.InDelta(t, floor, must("noise-floor-%"), 0.0006*(100+floor), "both printed with four digits")
			require.GreaterOrEqual(t, must("ns/op"), 20_000.0)
			continue
		}
		require.Contains(t, name, "stack=twice")
		require.Positive(t, must("noise-floor-%"))
		require.LessOrEqual(t, must("base-ratio-lo"), must("base-ratio"))
		require.LessOrEqual(t, must("base-ratio"), must("base-ratio-hi"))
		require.GreaterOrEqual(t, must("ns/op"), 40_000.0)
	}
	require.Greater(t, len(seeds), 6, "each row has measured anew\n%s", out)
}

func TestVersusHasNoRatioWithoutAnInterval(t *testing.T) {
	out, err := child(t, "-test.bench=^BenchmarkDuel$/^case=well$", "-test.benchtime=1x")
	require.NoError(t, err, out)
	rows, _ := results(t, out)
	require.Len(t, rows, 2)
	for _, row := range rows {
		_, ok := value(row, "ns/op")
		require.True(t, ok)
		for _, unit := range []string{"base-ratio", "aa-ratio", "noise-floor-%"} {
			_, ok := value(row, unit)
			require.False(t, ok, "%s of one block in\n%s", unit, out)
		}
	}
}

// TestVersusWaitsForAnInterval: a time too short for an interval is exceeded.
func TestVersusWaitsForAnInterval(t *testing.T) {
	out, err := child(t, "-test.bench=^BenchmarkDuel$/^case=well$/^stack=twice$", "-test.benchtime=1ms")
	require.NoError(t, err, out)
	rows, _ := results(t, out)
	require.Len(t, rows, 1)
	_, ok := value(rows[0], "base-ratio-lo")
	require.True(t, ok, out)
}

func TestVersusKeepsWhatItMeasured(t *testing.T) {
	out, err := child(t, "-test.bench=^BenchmarkDuel$/^case=dying$", "-test.benchtime=9x", "-test.cpu=2")
	require.Error(t, err)
	require.Contains(t, out, `timing: arm "dying", block 4: the server died`)
	rows, _ := results(t, out)
	require.Len(t, rows, 2, "those before it\n%s", out)
}

func TestVersusRefuses(t *testing.T) {
	for name, want := range map[string]string{
		"alone": "rpcbench: versus: nothing to compare with base: name another stack",
		"panic": "rpcbench: panics: panic: broken",
	} {
		t.Run(name, func(t *testing.T) {
			out, err := child(t, "-test.bench=^BenchmarkDuel$/^case="+name+"$", "-test.benchtime=10x")
			require.Error(t, err)
			require.Contains(t, out, want)
		})
	}
}
