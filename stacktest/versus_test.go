package stacktest

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
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

// countFile names a file that gets a byte for each server that counting starts.
const countFile = "RPCBENCH_TEST_COUNT"

func counting(s rpcbench.Stack) rpcbench.Stack {
	server := s.Server
	s.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		if path := os.Getenv(countFile); path != "" {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return nil, err
			}
			_, _ = f.WriteString(".")
			_ = f.Close()
		}
		return server(config)
	}
	return s
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
	base, twice := counting(busy("base", 20*time.Microsecond)), busy("twice", 40*time.Microsecond)
	b.Run("case=well", func(b *testing.B) { BenchmarkVersus(b, base, twice) })
	b.Run("case=dying", func(b *testing.B) {
		BenchmarkVersus(b, base, twice, busy("b", 20*time.Microsecond), busy("c", 20*time.Microsecond), dying("dying"), busy("d", 20*time.Microsecond))
	})
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
	measured := filepath.Join(t.TempDir(), "measured")
	t.Setenv(countFile, measured)
	out, err := child(t, "-test.bench=^BenchmarkDuel$/^case=well$", "-test.benchtime=9x", "-test.cpu=1,2", "-test.count=2", "-test.benchmem")
	require.NoError(t, err, out)
	servers, err := os.ReadFile(measured)
	require.NoError(t, err)
	require.Equal(t, 4*9*2, len(servers), "the base's servers: two for each block of four runs, and none for a run that nobody asked for")
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
		if strings.Contains(name, "stack=base") {
			seeds[must("seed")] = true
			require.LessOrEqual(t, must("aa-ratio-lo"), must("aa-ratio"))
			require.LessOrEqual(t, must("aa-ratio"), must("aa-ratio-hi"))
			floor := 100 * (max(must("aa-ratio-hi"), 1/must("aa-ratio-lo")) - 1)
			require.InDelta(t, floor, must("noise-floor-%"), 0.0006*(100+floor), "both printed with four digits")
			require.GreaterOrEqual(t, must("ns/op"), 20_000.0)
			continue
		}
		require.Contains(t, name, "stack=twice")
		require.LessOrEqual(t, must("base-ratio-lo"), must("base-ratio"))
		require.LessOrEqual(t, must("base-ratio"), must("base-ratio-hi"))
		require.GreaterOrEqual(t, must("ns/op"), 40_000.0)
	}
	require.Len(t, seeds, 4, "each run has measured anew\n%s", out)
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

func TestVersusKeepsWhatItMeasured(t *testing.T) {
	out, err := child(t, "-test.bench=^BenchmarkDuel$/^case=dying$", "-test.benchtime=20x", "-test.cpu=2", "-test.benchmem")
	require.Error(t, err)
	require.Regexp(t, regexp.MustCompile(`(?m)^\s+versus_test\.go:\d+: timing: arm "dying", block 4: the server died$`), out)
	rows, _ := results(t, out)
	complete := map[string]bool{}
	for _, row := range rows {
		_, stack, _ := strings.Cut(strings.TrimSuffix(string(row.Name.Full()), "-2"), "stack=")
		_, incomplete := value(row, "incomplete")
		_, ratio := value(row, "base-ratio")
		complete[stack] = !incomplete
		allocated, ok := value(row, "B/op")
		require.True(t, ok && (allocated > 0 || stack == "dying"), "a false 0 in\n%s", out)
		if !incomplete && stack != "base" {
			require.True(t, ratio, out)
		}
	}
	require.Equal(t, map[string]bool{"base": false, "twice": true, "b": true, "c": true, "dying": false, "d": false}, complete, out)
}

func TestVersusHasNoRowOfWhatItNeverMeasured(t *testing.T) {
	out, err := child(t, "-test.bench=^BenchmarkDuel$/^case=dying$", "-test.benchtime=7x", "-test.count=2")
	require.Error(t, err)
	require.Contains(t, out, "not measured")
	require.NotContains(t, out, "NaN")
	require.NotRegexp(t, `\d base-ratio`, out, "seven blocks are enough for 95 %, and too few for each of five contestants")
}

func TestVersusRefuses(t *testing.T) {
	for name, want := range map[string]string{
		"alone": "rpcbench: versus: nothing to compare with base: name another stack",
		"panic": "rpcbench: panic: broken",
	} {
		t.Run(name, func(t *testing.T) {
			out, err := child(t, "-test.bench=^BenchmarkDuel$/^case="+name+"$", "-test.benchtime=10x")
			require.Error(t, err)
			require.Contains(t, out, want)
		})
	}
}
