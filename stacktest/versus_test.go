package stacktest

import (
	"errors"
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
	forChildren(b)
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
	rows, names := figures(t, "-test.bench=^BenchmarkDuel$/^case=well$", "-test.benchtime=9x", "-test.cpu=1,2",
		"-test.count=2", "-test.benchmem")
	require.Len(t, rows, 8, "two stacks, measured twice for each of two GOMAXPROCS")
	seeds := map[float64]bool{}
	for i, row := range rows {
		require.GreaterOrEqual(t, row["B/op"], float64(64<<10), "not the false 0 of a row that only reports")
		require.Positive(t, row["allocs/op"])
		require.Positive(t, row["cpu-ns/op"])
		require.Contains(t, row, "seed")
		seeds[row["seed"]] = true
		unit, least := "base-ratio", 40_000.0
		if strings.Contains(names[i], "stack=base") {
			unit, least = "aa-ratio", 20_000.0
			floor := 100 * (max(row["aa-ratio-hi"], 1/row["aa-ratio-lo"]) - 1)
			require.InDelta(t, floor, row["noise-floor-%"], 0.0006*(100+floor), "both printed with four digits")
		}
		require.Positive(t, row["noise-floor-%"])
		require.Positive(t, row[unit+"-lo"])
		require.LessOrEqual(t, row[unit+"-lo"], row[unit])
		require.LessOrEqual(t, row[unit], row[unit+"-hi"])
		require.GreaterOrEqual(t, row["ns/op"], least)
	}
	require.Greater(t, len(seeds), 6, "each row has measured anew")
}

func TestVersusHasNoRatioWithoutAnInterval(t *testing.T) {
	rows, _ := figures(t, "-test.bench=^BenchmarkDuel$/^case=well$", "-test.benchtime=1x")
	require.Len(t, rows, 2)
	for _, row := range rows {
		require.Contains(t, row, "ns/op")
		for _, unit := range []string{"base-ratio", "aa-ratio", "noise-floor-%"} {
			require.NotContains(t, row, unit, "of one block")
		}
	}
}

// TestVersusWaitsForAnInterval: a time too short for an interval is exceeded.
func TestVersusWaitsForAnInterval(t *testing.T) {
	row := figuresOf(t, "-test.bench=^BenchmarkDuel$/^case=well$/^stack=twice$", "-test.benchtime=1ms")
	require.Contains(t, row, "base-ratio-lo")
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
