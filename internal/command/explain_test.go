package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/explain/calls"
	"github.com/rpcbench/rpcbench/internal/explain/layers"
	"github.com/rpcbench/rpcbench/internal/shell"
	"github.com/rpcbench/rpcbench/internal/testkit"
)

// knownExplained is what a child says of each stack: 10 ms of CPU time in each of 100 samples of 1000 calls by round,
// and of every later stack in 50 samples more.
func knownExplained(arms []string, rounds int64) (all []calls.Process) {
	for i, arm := range arms {
		samples := 100 + 50*int64(i)
		part := layers.Part{Layer: layers.Other, Side: "client", Function: "shop." + arm, Samples: samples * rounds,
			CPU: time.Duration(samples*rounds) * 10 * time.Millisecond}
		all = append(all, calls.Process{Profile: layers.Split{Row: arm, Calls: 1000 * rounds, Parts: []layers.Part{part}},
			Procs: runtime.GOMAXPROCS(0), Calls: 100 * rounds, Wall: time.Duration(rounds) * time.Second,
			CPU:        time.Duration(rounds) * time.Second / 2,
			Recordings: slices.Repeat([][]byte{sampled("client", map[string]int64{part.Function: samples})}, int(rounds))})
	}
	return all
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
		e.processes = append(e.processes, calls.Process{Profile: s})
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
		a.processes[i].Calls, a.processes[i].CPU, a.processes[i].Wall = 100, cpu*100*time.Microsecond,
			3*cpu*100*time.Microsecond
		b.processes[i].Calls, b.processes[i].CPU, b.processes[i].Wall = 100, 2200*100*time.Microsecond,
			2300*100*time.Microsecond
	}
	var out strings.Builder
	require.NoError(t, errors.Join(a.print(&out), printDifference(&out, a, b)))
	require.Equal(t, `
a: 2000.0 µs of CPU per call, by 400 samples of 2000 calls
Without the profiler a call takes 6301.5 µs (4376.5 to 8226.5), and 2100.5 µs (1458.8 to 2742.2) of
 | CPU: means of 200 calls.
The profiles differ from that CPU time by -100.5 µs (-106.9 to -94.1), because they miss some
 | samples and take time themselves.
layer | client, µs | server, µs | unlabelled, µs | all, µs | share
serialisation | 1000.0 | 500.0 | 0.0 | 1500.0 | 75.0 %
networking (syscalls) | 0.0 | 300.0 | 0.0 | 300.0 | 15.0 %
scheduling and wake-ups | 0.0 | 0.0 | 200.0 | 200.0 | 10.0 %
sum | 1000.0 | 800.0 | 200.0 | 2000.0 | 100.0 %

a minus b
layer | client, µs | server, µs | unlabelled, µs | all, µs | ± (95 %)
 | functions that differ most
networking (syscalls) | -1300.0 | +300.0 | +0.0 | -1000.0 | 127.1
 | syscall.read -1300.0 (SE 10.0), syscall.write +290.0 (SE 10.0)
serialisation | +100.0 | +500.0 | +0.0 | +600.0 | 127.1
 | json.Unmarshal +500.0 (SE 10.0), json.Marshal +100.0 (SE 0.0)
scheduling and wake-ups | +0.0 | +0.0 | +200.0 | +200.0 | 127.1
 | runtime.schedule +200.0 (SE 10.0)
sum | -1200.0 | +800.0 | +200.0 | -200.0 | 381.2

The difference in CPU is -200.0 µs (-581.2 to +181.2) by the profiles, and -99.5 µs (-741.2 to
 | +542.2) without the profiler.
Without the profiler, what a caller waits differs by +4001.5 µs (+2076.5 to +5926.5).
`, regexp.MustCompile(" {2,}").ReplaceAllString(out.String(), " | "))

	a.processes[0].Procs = 2
	out.Reset()
	require.NoError(t, printDifference(&out, a, b))
	require.Regexp(t, `to \+5926\.5\)\. Layers do not\n  sum to that, because cores work side by side\.\n$`, out.String())
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

// What was measured until a signal is printed.
func TestExplainIsInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out, errs strings.Builder
	require.Equal(t, shell.ErrInterrupted, ours().run(ctx, []string{"explain", "rawtcp"}, &out, io.Discard))
	require.Empty(t, out.String())
	if runtime.GOOS == "windows" {
		t.Skip("has no signals")
	}
	cmd, _ := outside(t, "explain", "-time", "1h", "base", "other")
	children := strings.TrimPrefix(cmd.Env[len(cmd.Env)-1], testkit.Variable+"=")
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return len(testkit.Asked[question](children)) == 2 }, time.Minute,
		10*time.Millisecond, "the second process")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.Error(t, cmd.Wait())
	require.Equal(t, "rpcbench: interrupted\n", errs.String())
	require.Contains(t, out.String(), "base minus other")
	require.Contains(t, out.String(), "# base: workload=small callers=1 conns=1 GOMAXPROCS=1 processes=1\n")
}

// sampled is a CPU profile with as many samples of each stack as given. A stack is "function<caller<caller".
func sampled(side string, stacks map[string]int64) []byte {
	var samples []string
	for stack, n := range stacks {
		samples = append(samples, slices.Repeat([]string{side + " " + stack}, int(n))...)
	}
	var b bytes.Buffer
	_ = testkit.Profile(nil, samples...).Write(&b) // to memory
	return b.Bytes()
}

const aService = "../explain/layers/testdata/services/etcd.pprof"

// A server gives its profile, or there is one line that says why it did not.
func TestExplainFetches(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile(aService)
	require.NoError(t, err)
	mux := http.NewServeMux()
	for path, body := range map[string][]byte{"/good": good, "/page": []byte("<html><title>a page</title></html>")} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
	}
	mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/stalls", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(good[:len(good)/2])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	want, _, err := typed(t, "explain", aService)
	require.NoError(t, err)
	out, _, err := typed(t, "explain", server.URL+"/good")
	require.NoError(t, err)
	require.Equal(t, want, strings.Replace(out, "good: ", "etcd.pprof: ", 1), "of the server and of a file")

	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for url, want := range map[string]string{
		server.URL + "/page":                     "/page is no whole profile, as /debug/pprof/profile writes it: ",
		server.URL + "/missing":                  "/missing answers 404 Not Found: is it /debug/pprof/profile?",
		server.URL + "/silent":                   "no whole profile came within 300ms: ask for fewer seconds",
		server.URL + "/stalls":                   "no whole profile came within 300ms: ",
		"http://" + closed.Addr().String() + "/": "connection refused",
		"http://[::1":                            "explain: parse ",
	} {
		var out strings.Builder
		bound := "300ms"
		if !strings.Contains(want, bound) {
			bound = "1m"
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // of a bound that does not hold
		err := ours().run(ctx, []string{"explain", "-timeout", bound, url}, &out, io.Discard)
		cancel()
		require.ErrorContains(t, err, want, url)
		require.NotContains(t, err.Error(), "\n")
		require.Empty(t, out.String())
	}
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	require.Equal(t, shell.ErrInterrupted, ours().run(ctx, []string{"explain", server.URL + "/silent"}, io.Discard,
		io.Discard))
}

// A profile that never comes through a pipe is waited for until a signal.
func TestExplainOfAPipeIsInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	from, to := io.Pipe()
	_, err := piped(ctx, from)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, to.Close())
}

// TestServicesPage: docs/service.md has the sentences of the profiles, and how to check them by hand.
func TestServicesPage(t *testing.T) {
	const dir = "../explain/layers/testdata/services/"
	page := read(t, "../../docs/service.md")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 3)
	for _, file := range files {
		name := strings.TrimSuffix(file.Name(), ".pprof")
		out, _, err := typed(t, "explain", dir+file.Name())
		require.NoError(t, err)
		_, said, _ := strings.Cut(out, "\n\n")
		said, _, _ = strings.Cut(said, "\n\n")
		_, rest, found := strings.Cut(page, "<!-- "+name+" -->\n")
		require.True(t, found, "the page has no place for %s", name)
		shown, _, _ := strings.Cut(rest, "\n<!-- /"+name+" -->")
		require.Equal(t, strings.ReplaceAll(strings.ReplaceAll(said, "\n  ", " "), ". ", ".\n"), shown, "the "+
			"sentences of %s", name)

		zipped, err := os.ReadFile(dir + file.Name())
		require.NoError(t, err)
		p, err := profile.ParseData(zipped)
		require.NoError(t, err)
		cumulative, all := map[string]int64{}, int64(0)
		for _, sample := range p.Sample {
			all += sample.Value[1]
			in := map[string]int64{}
			for _, l := range sample.Location {
				for _, line := range l.Line {
					in[line.Function.Name] = sample.Value[1]
				}
			}
			for name, cpu := range in {
				cumulative[name] += cpu
			}
		}
		byHand, rows := 0.0, regexp.MustCompile("(?m)^\\| "+name+" \\| ([+−]) \\| `(.*)` \\| (.*) s \\|$")
		for _, m := range rows.FindAllStringSubmatch(page, -1) {
			cpu := float64(cumulative[m[2]]) / 1e9
			require.Equal(t, fmt.Sprintf("%.2f", cpu), m[3], "%s of %s", m[2], name)
			byHand += map[string]float64{"+": cpu, "−": -cpu}[m[1]]
		}
		m := regexp.MustCompile(`RPCs takes ([\d.]+) % of`).FindStringSubmatch(said)
		require.NotNil(t, m, said)
		share, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		require.InEpsilon(t, share, 100e9*byHand/float64(all), 0.02, "RPCs of %s, by hand", name)
	}
}
