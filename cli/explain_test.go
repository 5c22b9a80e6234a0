package cli

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
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
	require.Regexp(t, `(?m)^# .*\n# grpcservehttp: workload=small GOMAXPROCS=1 turns=2\n# rawtcp: `, out)
	require.Regexp(t, `(?m)^grpcservehttp: [\d.]+ µs of CPU per call, by \d+ samples of \d+ calls; without the profiler [\d.]+ µs \(`, out)
	require.Regexp(t, `(?m)^grpcservehttp less rawtcp$`, out)
	require.Regexp(t, `(?m)^The difference is \+[\d.]+ µs \(.* to .*\) by the profiles and \+[\d.]+ µs`, out)
	drawn, err := os.ReadFile(svg)
	require.NoError(t, err)
	for d := xml.NewDecoder(strings.NewReader(string(drawn))); err == nil; {
		_, err = d.Token()
	}
	require.ErrorIs(t, err, io.EOF, "the picture is XML")
	require.Contains(t, string(drawn), "grpcservehttp")
}

// known is an explanation of two turns, whose figures are seen at a glance: 10 µs of CPU per sample and call. The second
// turn has two samples more of every part.
func known(name string, samples map[layers.Part]int64) *explanation {
	e := &explanation{Name: name}
	for turn := range int64(2) {
		s := layers.Split{Row: name, Calls: 1000}
		for p, n := range samples {
			p.Samples, p.CPU = n+2*turn, time.Duration(n+2*turn)*10*time.Millisecond
			s.Parts = append(s.Parts, p)
		}
		e.turns = append(e.turns, s)
	}
	return e
}

func TestExplainAddsUp(t *testing.T) {
	a := known("a", map[layers.Part]int64{
		{Layer: "serialisation", Side: "client", Function: "encoding/json.Marshal"}:               99,
		{Layer: "serialisation", Side: "server", Function: "encoding/json.Unmarshal"}:             49,
		{Layer: "networking (syscalls)", Side: "server", Function: "syscall.write"}:               29,
		{Layer: "scheduling and wake-ups", Side: layers.Unlabelled, Function: "runtime.schedule"}: 19,
	})
	b := known("b", map[layers.Part]int64{
		{Layer: "serialisation", Side: "client", Function: "encoding/json.Marshal"}: 89,
		{Layer: "networking (syscalls)", Side: "client", Function: "syscall.read"}:  129,
	})
	a.plain, b.plain = []float64{2000, 2010, 2000}, []float64{1900, 1911} // an interrupted run leaves one more
	var out strings.Builder
	a.print(&out)
	printDifference(&out, a, b)
	require.Equal(t, `
a: 2000.0 µs of CPU per call, by 400 samples of 2000 calls; without the profiler 2003.3 µs (1989.0 to 2017.7)
layer | client, µs | server, µs | unlabelled, µs | all, µs | share
serialisation | 1000.0 | 500.0 | 0.0 | 1500.0 | 75.0 %
networking (syscalls) | 0.0 | 300.0 | 0.0 | 300.0 | 15.0 %
scheduling and wake-ups | 0.0 | 0.0 | 200.0 | 200.0 | 10.0 %
sum | 1000.0 | 800.0 | 200.0 | 2000.0 | 100.0 %

a less b
layer | client, µs | server, µs | unlabelled, µs | all, µs | ± (95 %) | functions that carry it
networking (syscalls) | -1300.0 | +300.0 | +0.0 | -1000.0 | 0.0 | syscall.read -1300.0, syscall.write +300.0
serialisation | +100.0 | +500.0 | +0.0 | +600.0 | 127.1 | json.Unmarshal +500.0, json.Marshal +100.0
scheduling and wake-ups | +0.0 | +0.0 | +200.0 | +200.0 | 127.1 | runtime.schedule +200.0
sum | -1200.0 | +800.0 | +200.0 | -200.0 | 254.1 | 

The difference is -200.0 µs (-454.1 to +54.1) by the profiles and +99.5 µs (+93.1 to +105.9) without the profiler.
`, strings.ReplaceAll(out.String(), "\t", " | "))
}

func TestExplainReadsProfiles(t *testing.T) {
	const dir = "../internal/layers/testdata/BenchmarkCreateUser_stack="
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
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
	defer cancel()
	var out strings.Builder
	err := ours().run(ctx, []string{"explain", "-time", "1h", "rawtcp", "httpjson"}, &out, io.Discard)
	require.ErrorIs(t, err, errInterrupted)
	require.Contains(t, out.String(), "rawtcp less httpjson")
	early, stop := context.WithCancel(t.Context())
	stop()
	out.Reset()
	err = ours().run(early, []string{"explain", "rawtcp"}, &out, io.Discard)
	require.Error(t, err)
	require.Empty(t, out.String())
	require.False(t, errors.As(err, new(wrongUse)))
}
