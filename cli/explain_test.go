package cli

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/layers"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
)

// explained is what explain printed of a stack that two processes measured. Times are µs per call.
type explained struct {
	procs, profiled, cpu float64
	wall, most, calls    float64 // without the profiler; most is the end of the interval
	client, server       float64
}

func explainedOf(t *testing.T, out, stack, workload string) (e explained) {
	t.Helper()
	read := func(pattern string, into ...*float64) {
		m := regexp.MustCompile(pattern).FindStringSubmatch(out)
		require.NotNil(t, m, "%s in\n%s", pattern, out)
		for i, text := range m[1:] {
			var err error
			*into[i], err = strconv.ParseFloat(text, 64)
			require.NoError(t, err)
		}
	}
	read(`(?m)^# `+stack+`: workload=`+workload+` GOMAXPROCS=(\d+) processes=2$`, &e.procs)
	read(`(?m)^`+stack+`: ([\d.]+) µs of CPU per call, by \d+ samples of \d+ calls; without the profiler ([\d.]+) µs \(\S+ to (\S+)\) of wall time, `+
		`([\d.]+) µs \(\S+ to \S+\) of CPU, by (\d+) calls$`, &e.profiled, &e.wall, &e.most, &e.cpu, &e.calls)
	_, out, _ = strings.Cut(out, "\n"+stack+": ")
	read(`(?m)^sum +(\S+) +(\S+) `, &e.client, &e.server)
	return e
}

// knownExplained is what a child says of each stack: 10 ms of CPU time in each of 100 samples of 1000 calls by round.
func knownExplained(spec versus.Spec, rounds int64) (all []versus.Explained) {
	for _, arm := range spec.Arms {
		part := layers.Part{Layer: "serialisation", Side: "client", Function: "json.Marshal", Samples: 100 * rounds,
			CPU: time.Duration(rounds) * time.Second}
		all = append(all, versus.Explained{Profile: layers.Split{Row: arm, Calls: 1000 * rounds, Parts: []layers.Part{part}},
			Procs: runtime.GOMAXPROCS(0), Calls: 100 * rounds, Wall: time.Duration(rounds) * time.Second,
			CPU: time.Duration(rounds) * time.Second / 2})
	}
	return all
}

// What is explained is the workload and the GOMAXPROCS that are named, of both stacks in each process.
func TestExplainOfKnownFigures(t *testing.T) {
	out, log, err := knownRun(t, "explain", "-time", "6s", "-workload", "bytes-100kB", "-gomaxprocs", "0", "base", "other")
	require.NoError(t, err)
	w, err := workload.Find("bytes-100kB")
	require.NoError(t, err)
	require.Equal(t, append(slices.Repeat([]string{asked(w, runtime.NumCPU(), turn, "base", "other")}, 3), ""),
		log, "2 s of each for each process")
	for _, stack := range []string{"base", "other"} {
		require.Contains(t, out, fmt.Sprintf("# %s: workload=bytes-100kB GOMAXPROCS=%d processes=3\n", stack,
			runtime.NumCPU()))
		require.Contains(t, out,
			stack+": 1000.0 µs of CPU per call, by 600 samples of 6000 calls; without the profiler 10000.0 µs "+
				"(10000.0 to 10000.0) of wall time, 5000.0 µs (5000.0 to 5000.0) of CPU, by 600 calls\n")
	}
	require.Contains(t, out, "\nbase less other\n")
	require.Contains(t, out,
		"The difference is +0.0 µs (+0.0 to +0.0) by the profiles and +0.0 µs (+0.0 to +0.0) without the profiler")
	_, log, err = knownRun(t, "explain", "-time", "4s", "base")
	require.NoError(t, err)
	small, err := workload.Find(workload.Small)
	require.NoError(t, err)
	require.Equal(t, append(slices.Repeat([]string{asked(small, 1, turn, "base")}, 2), ""), log)
}

// Both sides are there, and the time without the profiler is that with it.
func TestExplainMeasures(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	if runtime.GOOS == "windows" {
		t.Skip("it does not tell the CPU time")
	}
	svg := filepath.Join(t.TempDir(), "bars.svg")
	out, _, err := typed(t, "explain", "-time", "4s", "-svg", svg, "rawtcp")
	require.NoError(t, err)
	e := explainedOf(t, out, "rawtcp", workload.Small)
	require.EqualValues(t, 1, e.procs, "GOMAXPROCS of the processes")
	require.Positive(t, e.client, "the client's side")
	require.Positive(t, e.server, "the server's side")
	require.InDelta(t, 1.1, e.cpu/e.profiled, 0.5, "CPU time without and with the profiler")
	const quantile = 12.706 // of Student's t of two processes: so the interval tells how far they are apart
	apart := (e.most - e.wall) / quantile
	calls := (rounds * turn).Seconds() * 1e6 * (1/(e.wall-apart) + 1/(e.wall+apart))
	require.InDelta(t, 1, e.calls/calls, 0.3, "calls without the profiler fill their turns")
	requireBars(t, svg, out)
}

// requireBars compares the figures of a picture with those of the tables.
func requireBars(t *testing.T, svg, out string) {
	t.Helper()
	drawn, err := os.ReadFile(svg)
	require.NoError(t, err)
	var said []string
	sums := regexp.MustCompile(`(?m)^(\S.*?)  +[\d.]+ +[\d.]+ +[\d.]+ +([\d.]+) +[\d.]+ %$`)
	for _, m := range sums.FindAllStringSubmatch(out, -1) {
		said = append(said, m[1]+": "+m[2]+" µs")
	}
	var shown []string
	var text string
	for d := xml.NewDecoder(bytes.NewReader(drawn)); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err, "the picture is XML")
		switch token := token.(type) {
		case xml.CharData:
			text = string(token)
		case xml.EndElement:
			_, err := strconv.ParseFloat(text, 64)
			if token.Name.Local == "title" {
				shown = append(shown, text)
			} else if token.Name.Local == "text" && err == nil && !strings.HasSuffix(shown[len(shown)-1], ": "+text+" µs") {
				shown = append(shown, "sum: "+text+" µs")
			}
		}
	}
	require.NotEmpty(t, said)
	require.Equal(t, said, shown)
	left, err := os.ReadDir(filepath.Dir(svg))
	require.NoError(t, err)
	require.Len(t, left, 1, "the picture alone")
}

// known is an explanation by two processes, whose figures are seen at a glance: 10 µs of CPU per sample and call. The
// second process has two samples more of every part.
func known(name string, samples map[layers.Part]int64, processes int64) *explanation {
	e := &explanation{Name: name}
	for i := range processes {
		s := layers.Split{Row: name, Calls: 1000}
		for p, n := range samples {
			p.Samples, p.CPU = n+2*i, time.Duration(n+2*i)*10*time.Millisecond
			s.Parts = append(s.Parts, p)
		}
		e.processes = append(e.processes, versus.Explained{Profile: s})
	}
	return e
}

func TestExplainAddsUp(t *testing.T) {
	a := known("a", map[layers.Part]int64{
		{Layer: "serialisation", Side: "client", Function: "encoding/json.Marshal"}:               99,
		{Layer: "serialisation", Side: "server", Function: "encoding/json.Unmarshal"}:             49,
		{Layer: "networking (syscalls)", Side: "server", Function: "syscall.write"}:               28,
		{Layer: "networking (syscalls)", Side: "server", Function: "syscall.noise"}:               0, // and 2: +10, SE 10
		{Layer: "scheduling and wake-ups", Side: layers.Unlabelled, Function: "runtime.schedule"}: 19,
	}, 2)
	b := known("b", map[layers.Part]int64{
		{Layer: "serialisation", Side: "client", Function: "encoding/json.Marshal"}: 89,
		{Layer: "networking (syscalls)", Side: "client", Function: "syscall.read"}:  129,
	}, 2)
	for i, cpu := range []time.Duration{2050, 2151} { // µs of 100 calls
		a.processes[i].Calls, a.processes[i].CPU, a.processes[i].Wall = 100, cpu*100*time.Microsecond, 3*cpu*100*time.Microsecond
		b.processes[i].Calls, b.processes[i].CPU, b.processes[i].Wall = 100, 2200*100*time.Microsecond, 2300*100*time.Microsecond
	}
	var out strings.Builder
	a.print(&out)
	printDifference(&out, a, b)
	require.Equal(t, `
a: 2000.0 µs of CPU per call, by 400 samples of 2000 calls; without the profiler 6301.5 µs (4376.5 to 8226.5) of wall time, 2100.5 µs (1458.8 to 2742.2) of CPU, by 200 calls
The profiles differ from that CPU time by -100.5 µs (-106.9 to -94.1): they miss some samples, and take time themselves.
layer | client, µs | server, µs | unlabelled, µs | all, µs | share
serialisation | 1000.0 | 500.0 | 0.0 | 1500.0 | 75.0 %
networking (syscalls) | 0.0 | 300.0 | 0.0 | 300.0 | 15.0 %
scheduling and wake-ups | 0.0 | 0.0 | 200.0 | 200.0 | 10.0 %
sum | 1000.0 | 800.0 | 200.0 | 2000.0 | 100.0 %

a less b
layer | client, µs | server, µs | unlabelled, µs | all, µs | ± (95 %) | functions that carry it
networking (syscalls) | -1300.0 | +300.0 | +0.0 | -1000.0 | 127.1 | syscall.read -1300.0 (SE 10.0), syscall.write +290.0 (SE 10.0)
serialisation | +100.0 | +500.0 | +0.0 | +600.0 | 127.1 | json.Unmarshal +500.0 (SE 10.0), json.Marshal +100.0 (SE 0.0)
scheduling and wake-ups | +0.0 | +0.0 | +200.0 | +200.0 | 127.1 | runtime.schedule +200.0 (SE 10.0)
sum | -1200.0 | +800.0 | +200.0 | -200.0 | 381.2 | 

The difference is -200.0 µs (-581.2 to +181.2) by the profiles and -99.5 µs (-741.2 to +542.2) without the profiler, both of CPU time.
Without the profiler it is +4001.5 µs (+2076.5 to +5926.5) of wall time.
`, strings.ReplaceAll(out.String(), "\t", " | "))

	a.processes[0].Procs = 2
	out.Reset()
	printDifference(&out, a, b)
	require.Regexp(t, `of wall time. That is what callers wait for, and not what layers sum to: cores work side by side.\n$`, out.String())
}

// Functions whose difference is not above two standard errors carry nothing.
func TestExplainNamesNoNoise(t *testing.T) {
	part := func(function string) layers.Part {
		return layers.Part{Layer: "serialisation", Side: "client", Function: function}
	}
	a := map[layers.Part]int64{part("json.equal"): 100, part("json.Marshal"): 100}
	b := map[layers.Part]int64{part("json.equal"): 90, part("json.Marshal"): 20}
	want := "json.Marshal +800.0 (SE 109.5)" // 80 samples, of which √(100 + 20) are luck
	require.Equal(t, want, carriers(known("a", a, 1), known("b", b, 1), "serialisation"))
	want = "json.Marshal +810.0 (SE 84.0)" // two processes beside a profile: 202 samples in 2000 calls, and 20 in 1000
	require.Equal(t, want, carriers(known("a", a, 2), known("b", b, 1), "serialisation"))
}

func TestExplainReadsProfiles(t *testing.T) {
	const dir = "../internal/layers/testdata/BenchmarkCreateUser_stack="
	svg := filepath.Join(t.TempDir(), "bars.svg")
	out, _, err := typed(t, "explain", "-svg", svg, dir+"httpjson.pprof", dir+"httpjson.h2c.pprof")
	require.NoError(t, err)
	requireBars(t, svg, out)
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
	if runtime.GOOS == "windows" {
		t.Skip("has no signals")
	}
	cmd := outside(t, "explain", "-time", "1h", "base", "other")
	log := strings.TrimPrefix(cmd.Env[len(cmd.Env)-1], knownLog+"=")
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(log)
		return strings.Count(string(text), "\n") == 2
	}, time.Minute, 10*time.Millisecond, "the second process")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.Error(t, cmd.Wait())
	require.Equal(t, "rpcbench: interrupted\n", errs.String())
	require.Contains(t, out.String(), "base less other")
	require.Contains(t, out.String(), "# base: workload=small GOMAXPROCS=1 processes=1\n")
}

func TestExplainLeavesNothing(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	dir := t.TempDir()
	var out strings.Builder
	err := ours().run(ctx, []string{"explain", "-svg", filepath.Join(dir, "bars.svg"), "rawtcp"}, &out, io.Discard)
	require.Equal(t, errInterrupted, err)
	require.Empty(t, out.String())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "no picture of nothing")
	_, _, err = typed(t, "explain", "")
	require.EqualError(t, err, `rpcbench: explain: "" is neither a profile nor a stack: rpcbench list names the stacks`)
}
