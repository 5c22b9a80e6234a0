package main

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/layers"
)

func TestExplainMeasures(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	svg := filepath.Join(t.TempDir(), "bars.svg")
	out, _, err := typed(t, "explain", "-time", "2s", "-svg", svg, "grpcservehttp", "rawtcp")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^# .*\n# workload=small GOMAXPROCS=1$`, out)
	require.Regexp(t, `(?m)^grpcservehttp: [\d.]+ µs of CPU per call, by \d+ samples of \d+ calls; without the profiler [\d.]+ µs \(`, out)
	require.Regexp(t, `(?m)^grpcservehttp less rawtcp$`, out)
	require.Regexp(t, `(?m)^Turn by turn the difference is \+[\d.]+ µs \(.* to .*\) by the profiles and \+[\d.]+ µs`, out)
	drawn, err := os.ReadFile(svg)
	require.NoError(t, err)
	for d := xml.NewDecoder(strings.NewReader(string(drawn))); err == nil; {
		_, err = d.Token()
	}
	require.ErrorIs(t, err, io.EOF, "the picture is XML")
	require.Contains(t, string(drawn), "grpcservehttp")
}

// known is an explanation whose figures are seen at a glance: 10 µs of CPU per sample and call.
func known(name string, samples map[layers.Part]int64) *explanation {
	e := &explanation{Name: name, Split: layers.Split{Row: name, Calls: 1000}}
	for p, n := range samples {
		p.Samples, p.CPU = n, time.Duration(n)*10*time.Millisecond
		e.Parts = append(e.Parts, p)
	}
	return e
}

func TestExplainAddsUp(t *testing.T) {
	a := known("a", map[layers.Part]int64{
		{Layer: "serialisation", Side: "client", Function: "encoding/json.Marshal"}:               100,
		{Layer: "serialisation", Side: "server", Function: "encoding/json.Unmarshal"}:             50,
		{Layer: "networking (syscalls)", Side: "server", Function: "syscall.write"}:               30,
		{Layer: "scheduling and wake-ups", Side: layers.Unlabelled, Function: "runtime.schedule"}: 20,
	})
	b := known("b", map[layers.Part]int64{
		{Layer: "serialisation", Side: "client", Function: "encoding/json.Marshal"}: 90,
		{Layer: "networking (syscalls)", Side: "client", Function: "syscall.read"}:  130,
	})
	a.plain, a.profiled = []float64{2_000_000, 2_010_000}, []float64{2_000_000, 2_020_000}
	b.plain, b.profiled = []float64{1_900_000, 1_910_000}, []float64{1_900_000, 1_900_000}
	var out strings.Builder
	a.print(&out)
	printDifference(&out, a, b)
	got := regexp.MustCompile(`\t`).ReplaceAllString(out.String(), " | ")
	require.Equal(t, `
a: 2000.0 µs of CPU per call, by 200 samples of 1000 calls; without the profiler 2005.0 µs (1941.5 to 2068.5)
layer | client, µs | server, µs | unlabelled, µs | all, µs | share
serialisation | 1000.0 | 500.0 | 0.0 | 1500.0 | 75.0 %
networking (syscalls) | 0.0 | 300.0 | 0.0 | 300.0 | 15.0 %
scheduling and wake-ups | 0.0 | 0.0 | 200.0 | 200.0 | 10.0 %
sum | 1000.0 | 800.0 | 200.0 | 2000.0 | 100.0 %

a less b
layer | client, µs | server, µs | unlabelled, µs | all, µs | ± (sampling) | functions that carry it
networking (syscalls) | -1300.0 | +300.0 | +0.0 | -1000.0 | 247.9 | syscall.read -1300.0, syscall.write +300.0
serialisation | +100.0 | +500.0 | +0.0 | +600.0 | 303.6 | json.Unmarshal +500.0, json.Marshal +100.0
scheduling and wake-ups | +0.0 | +0.0 | +200.0 | +200.0 | 87.7 | runtime.schedule +200.0
sum | -1200.0 | +800.0 | +200.0 | -200.0 | 401.7 | 

Turn by turn the difference is +110.0 µs (-17.1 to +237.1) by the profiles and +100.0 µs (+100.0 to +100.0) without the profiler.
`, got)
}

func TestTurnsAddUp(t *testing.T) {
	e := new(explanation)
	e.add(layers.Split{Calls: 1000, Parts: []layers.Part{{Layer: "TLS", Samples: 3, CPU: 30 * time.Millisecond}}})
	e.add(layers.Split{Calls: 3000, Parts: []layers.Part{{Layer: "TLS", Samples: 5, CPU: 50 * time.Millisecond}}})
	micro, half := e.micro(everything)
	require.InDelta(t, 20, micro, 1e-9, "80 ms in 4000 calls")
	require.InDelta(t, 20*1.96/math.Sqrt(8), half, 1e-9)
	require.InDeltaSlice(t, []float64{30_000, 50_000. / 3}, e.profiled, 1e-9)
}

func TestExplainReadsProfiles(t *testing.T) {
	const dir = "../../internal/layers/testdata/BenchmarkCreateUser_stack="
	out, _, err := typed(t, "explain", dir+"httpjson.pprof", dir+"httpjson.h2c.pprof")
	require.NoError(t, err)
	require.NotContains(t, out, "without the profiler")
	require.Contains(t, out, "BenchmarkCreateUser/stack=httpjson less BenchmarkCreateUser/stack=httpjson.h2c\n")
	sums := regexp.MustCompile(`(?m)^sum +\S+ +\S+ +\S+ +(\S+)`).FindAllStringSubmatch(out, -1)
	require.Len(t, sums, 3)
	var micro [3]float64
	for i, sum := range sums {
		micro[i], err = strconv.ParseFloat(sum[1], 64)
		require.NoError(t, err)
	}
	require.InDelta(t, micro[2], micro[0]-micro[1], 0.11, "the difference is that of the sums")
	require.Negative(t, micro[2])
}

// What was measured until a signal is printed.
func TestExplainIsInterrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	var out strings.Builder
	err := run(ctx, []string{"explain", "-time", "1h", "rawtcp"}, &out, io.Discard)
	require.ErrorIs(t, err, errInterrupted)
	require.Contains(t, out.String(), "rawtcp: ")
	early, stop := context.WithCancel(t.Context())
	stop()
	out.Reset()
	err = run(early, []string{"explain", "rawtcp"}, &out, io.Discard)
	require.Error(t, err)
	require.Empty(t, out.String())
	require.False(t, errors.As(err, new(wrongUse)))
}
