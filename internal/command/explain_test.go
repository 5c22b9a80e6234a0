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
	"path/filepath"
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

	"github.com/rpcbench/rpcbench/internal/layers"
	"github.com/rpcbench/rpcbench/internal/odd"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
)

// knownExplained is what a child says of each stack: 10 ms of CPU time in each of 100 samples of 1000 calls by round.
func knownExplained(spec versus.Spec, rounds int64) (all []versus.Explained) {
	for _, arm := range spec.Arms {
		part := layers.Part{Layer: layers.Other, Side: "client", Function: "shop." + arm, Samples: 100 * rounds,
			CPU: time.Duration(rounds) * time.Second}
		all = append(all, versus.Explained{Profile: layers.Split{Row: arm, Calls: 1000 * rounds, Parts: []layers.Part{part}},
			Procs: runtime.GOMAXPROCS(0), Calls: 100 * rounds, Wall: time.Duration(rounds) * time.Second,
			CPU:        time.Duration(rounds) * time.Second / 2,
			Recordings: slices.Repeat([][]byte{sampled("client", map[string]int64{part.Function: 100})}, int(rounds))})
	}
	return all
}

// What is explained is the workload, the callers and the GOMAXPROCS that are named, of both stacks in each process. The
// profiles that are kept have the samples and the calls of all processes.
func TestExplainOfKnownFigures(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new")
	out, log, err := knownRun(t, "explain", "-time", "6s", "-workload", "small-apart", "-callers", "6", "-conns", "3",
		"-gomaxprocs", "0", "-keep", folder, "base", "other")
	require.NoError(t, err)
	w, err := workload.Find("small-apart")
	require.NoError(t, err)
	w.Callers, w.Conns = 6, 3
	require.Equal(t, slices.Repeat([]string{asked(w, runtime.NumCPU(), turn, "base", "other")}, 3),
		log, "2 s of each for each process")
	require.True(t, strings.HasPrefix(out, "# small-apart: explained in one process: "), out)
	for _, stack := range []string{"base", "other"} {
		require.Contains(t, out, fmt.Sprintf("# %s: workload=small-apart callers=6 conns=3 GOMAXPROCS=%d processes=3\n",
			stack, runtime.NumCPU()))
		require.Contains(t, out,
			stack+": 1000.0 µs of CPU per call, by 600 samples of 6000 calls; without the profiler 10000.0 µs "+
				"(10000.0 to 10000.0) of wall time, 5000.0 µs (5000.0 to 5000.0) of CPU, by 600 calls\n")
		kept, err := layers.ReadFile(filepath.Join(folder, stack+".pprof"))
		require.NoError(t, err)
		require.Equal(t, layers.Split{Row: stack, Calls: 6000, Parts: []layers.Part{{Layer: layers.Other, Side: "client",
			Function: "shop." + stack, Samples: 600, CPU: 6 * time.Second}}}, kept)
	}
	require.Contains(t, out, "\nbase less other\n")
	require.Contains(t, out,
		"The difference is +0.0 µs (+0.0 to +0.0) by the profiles and +0.0 µs (+0.0 to +0.0) without the profiler")

	rated, _, err := knownRun(t, "explain", "-time", "4s", "-workload", "small-1000-per-second", "base")
	require.NoError(t, err)
	require.Contains(t, rated, "# small-1000-per-second: explained without its rate: 100 callers call again as soon as")
	require.Contains(t, rated, "workload=small-1000-per-second callers=100 ")

	out, log, err = knownRun(t, "explain", "-workload", "small-apart", filepath.Join(folder, "other.pprof"),
		filepath.Join(folder, "base.pprof"))
	require.NoError(t, err)
	require.Empty(t, log, "nothing is measured")
	require.Contains(t, out, "\nother: 1000.0 µs of CPU per call, by 600 samples of 6000 calls\n")
	require.Contains(t, out, "\nother less base\n")
	require.NotContains(t, out, "without the profiler")
	require.NotContains(t, out, "in one process")

	_, log, err = knownRun(t, "explain", "-time", "4s", "base")
	require.NoError(t, err)
	small, err := workload.Find(workload.Small)
	require.NoError(t, err)
	require.Equal(t, slices.Repeat([]string{asked(small, 1, turn, "base")}, 2), log)
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
		a.processes[i].Calls, a.processes[i].CPU, a.processes[i].Wall = 100, cpu*100*time.Microsecond,
			3*cpu*100*time.Microsecond
		b.processes[i].Calls, b.processes[i].CPU, b.processes[i].Wall = 100, 2200*100*time.Microsecond,
			2300*100*time.Microsecond
	}
	var out strings.Builder
	require.NoError(t, errors.Join(a.print(&out), printDifference(&out, a, b)))
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
`, regexp.MustCompile(" {2,}").ReplaceAllString(out.String(), " | "))

	a.processes[0].Procs = 2
	out.Reset()
	require.NoError(t, printDifference(&out, a, b))
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

// What was measured until a signal is printed.
func TestExplainIsInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out, errs strings.Builder
	require.Equal(t, errInterrupted, ours().run(ctx, []string{"explain", "rawtcp"}, &out, io.Discard))
	require.Empty(t, out.String())
	if runtime.GOOS == "windows" {
		t.Skip("has no signals")
	}
	cmd := outside(t, "explain", "-time", "1h", "base", "other")
	children := strings.TrimPrefix(cmd.Env[len(cmd.Env)-1], odd.Variable+"=")
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return len(odd.Asked[versus.Spec](children)) == 2 }, time.Minute,
		10*time.Millisecond, "the second process")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.Error(t, cmd.Wait())
	require.Equal(t, "rpcbench: interrupted\n", errs.String())
	require.Contains(t, out.String(), "base less other")
	require.Contains(t, out.String(), "# base: workload=small callers=1 conns=1 GOMAXPROCS=1 processes=1\n")
}

// sampled is a CPU profile with as many samples of each stack as given. A stack is "function<caller<caller".
func sampled(side string, stacks map[string]int64) []byte {
	var samples []string
	for stack, n := range stacks {
		samples = append(samples, slices.Repeat([]string{side + " " + stack}, int(n))...)
	}
	var b bytes.Buffer
	_ = odd.Profile(nil, samples...).Write(&b) // to memory
	return b.Bytes()
}

// service writes the profile of somebody's service to a file.
func service(t *testing.T, stacks map[string]int64) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "cpu.pprof")
	require.NoError(t, os.WriteFile(path, sampled("", stacks), 0o600))
	return path
}

// shop is a service of a thousand samples, of which 140 are of RPCs, and 50 of those are encoding.
func shop() map[string]int64 {
	const grpc = "<google.golang.org/grpc.(*Server).handleStream"
	return map[string]int64{
		"syscall.write<net.(*conn).Write<google.golang.org/grpc/internal/transport.(*bufWriter).Flush": 60,
		"runtime.mallocgc" + grpc: 29,
		"mystery.work<google.golang.org/grpc/internal/transport.readFrame":                            1,
		"google.golang.org/protobuf/proto.Marshal<google.golang.org/grpc.encode" + grpc:               40,
		"runtime.mallocgc<google.golang.org/protobuf/proto.Marshal<google.golang.org/grpc.encode":     10,
		"encoding/json.Marshal<shop.(*Server).Buy" + grpc:                                             20,
		"runtime.memmove<shop.(*Server).Buy" + grpc:                                                   480,
		"syscall.read<net.(*conn).Read<github.com/redis/go-redis/v9.(*Client).Get<shop.(*Server).Buy": 100,
		"runtime.scanObject<runtime.gcBgMarkWorker":                                                   60,
		"sort.Slice<shop.nightly": 197,
		"shop.rare":               3,
	}
}

func TestExplainBoundsAService(t *testing.T) {
	out, _, err := typed(t, "explain", service(t, shop()))
	require.NoError(t, err)
	table := regexp.MustCompile(" {2,}").ReplaceAllString(out, " | ")
	require.Equal(t, `# cpu.pprof: 1000 samples

Serving and calling RPCs is 14.0 % of this service's CPU (12.0 to 16.3), of which encoding 5.0 %. A free stack would win 14.0 %.
The scheduler and the collector take 6.0 %, and no sample tells for whom. With all of that, a free stack would win 20.0 %.
The service's own code encodes for 2.0 %. That is not in the bound.

layer | encoding, % | the rest, % | all, % | samples | functions above two standard errors (SE)
serialisation | 4.0 | 0.0 | 4.0 | 40 | proto.Marshal 4.00 (SE 0.62)
networking (syscalls) | 0.0 | 6.0 | 6.0 | 60 | syscall.write 6.00 (SE 0.75)
allocation and GC | 1.0 | 2.9 | 3.9 | 39 | runtime.mallocgc 3.90 (SE 0.61)
other | 0.0 | 0.1 | 0.1 | 1 | RPCs | 5.0 | 9.0 | 14.0 | 140 | other sockets | 0.0 | 10.0 | 10.0 | 100 | v9.(*Client).Get 10.00 (SE 0.95)
your handlers | 2.0 | 48.0 | 50.0 | 500 | shop.(*Server).Buy 50.00 (SE 1.58)
scheduler and collector | 0.0 | 6.0 | 6.0 | 60 | runtime.scanObject 6.00 (SE 0.75)
everything else | 0.0 | 20.0 | 20.0 | 200 | shop.nightly 19.70 (SE 1.26)
sum | 7.0 | 93.0 | 100.0 | 1000 | `, strings.ReplaceAll(strings.TrimSuffix(table, "\n"), " | \n", " | "))
}

const (
	aProfile = "../layers/testdata/BenchmarkCreateUser_stack=httpjson.pprof"
	aService = "../layers/testdata/services/etcd.pprof"
)

// What measured ratios win of a service is its share of RPCs, times what they take less.
func TestExplainWithRatios(t *testing.T) {
	answer := func(stack, workload string, procs int, ratio float64, v versus.Verdict) report.Answer {
		return report.Answer{Stack: stack, Workload: workload, GOMAXPROCS: procs, Result: versus.Result{
			Planned: 6, Processes: 6, OnOneSide: 6, Ratio: ratio, Lo: ratio, Hi: ratio, Level: 0.95, BaseNs: 1000,
			Ns: 1000 * ratio, Verdict: v}}
	}
	dir := t.TempDir()
	require.NoError(t, report.Summary{Release: report.Release, Base: "mine", Answers: []report.Answer{
		answer("mixed", "small", 1, 0.5, versus.Faster), answer("mixed", "bytes", 1, 1.2, versus.Slower),
		answer("mixed", "even", 1, 1.01, versus.Equal), answer("mixed", "unsure", 1, 0.1, versus.Undecided),
		answer("mixed", "cores", 2, 0.1, versus.Faster),
		answer("quick", "small", 1, 0.5, versus.Faster), answer("quick", "bytes", 1, 0.25, versus.Faster),
		answer("slow", "small", 1, 1.5, versus.Slower), answer("slow", "bytes", 1, 2, versus.Slower),
		answer("alike", "small", 1, 0.9, versus.Faster),
		answer("unknown", "small", 1, 0.5, versus.Undecided),
	}}.Save(dir))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bench.txt"), nil, 0o644))
	file := service(t, shop())
	out, _, err := typed(t, "explain", "-ratios", dir, file)
	require.NoError(t, err)
	for line := range strings.Lines(`mixed in place of mine would win -2.8 % (bytes) to 7.0 % (small). Decided workloads on one core: 3.
quick in place of mine would win 7.0 % (small) to 10.5 % (bytes). Decided workloads on one core: 2.
slow in place of mine would cost 14.0 % (bytes) to 7.0 % (small). Decided workloads on one core: 2. Don't switch for CPU.
alike in place of mine would win 1.4 % (small) to 1.4 % (small). Decided workloads on one core: 1. Don't switch for CPU.
No workload on one core is decided for unknown in place of mine.
`) {
		require.Contains(t, out, line)
	}
	require.Equal(t, 2, strings.Count(out, "Don't switch for CPU."))
	_, _, err = typed(t, "explain", "-ratios", filepath.Join(dir, "missing"), file)
	require.ErrorContains(t, err, "missing has no summary.json: name a folder that rpcbench run made")
	_, _, err = typed(t, "explain", "-ratios", dir, aProfile)
	require.EqualError(t, err, "rpcbench: explain: -ratios is for the profile of a service, and "+
		"BenchmarkCreateUser/stack=httpjson is one of rpcbench")
}

func TestExplainAdvisesAgainst(t *testing.T) {
	const rpc, collector, own = "google.golang.org/grpc.encode<runtime.goexit", "runtime.gcBgMarkWorker", "shop.nightly"
	for why, test := range map[string]struct {
		rpc, collector, own int64
		want                string // up to the table
	}{
		"hardly any RPCs": {5, 5, 1990, "\nDon't switch for CPU.\n"},
		"hardly any RPCs, but a busy collector": {5, 500, 1495,
			"\nDon't switch for CPU, unless most of the scheduler's and the collector's work is for RPCs.\n"},
		"no RPCs": {0, 1, 499, "With all of that, a free stack would win 0.2 %.\nDon't switch for CPU.\n"},
		"nothing but RPCs": {500, 0, 0, "RPCs is 100.0 % of this service's CPU (99.2 to 100.0), of which encoding 0.0 %. A " +
			"free stack would win 100.0 %.\nThe scheduler and the collector take 0.0 %, and no sample tells for whom. With " +
			"all of that, a free stack would win 100.0 %.\n"},
		"too few samples": {100, 399, 0,
			"# cpu.pprof: 499 samples\n\n499 samples are too few for a bound: profile until there are 500.\n"},
		"the interval reaches above": {19, 1, 980, "would win 2.0 %.\n"},
	} {
		stacks := map[string]int64{rpc: test.rpc, collector: test.collector, own: test.own}
		out, _, err := typed(t, "explain", service(t, stacks))
		require.NoError(t, err, why)
		require.Contains(t, out, test.want+"\nlayer ", why)
	}
}

// A server gives its profile, or there is one line that says why it did not.
func TestExplainFetches(t *testing.T) {
	t.Parallel()
	good, mux := sampled("", shop()), http.NewServeMux()
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
	want, _, err := typed(t, "explain", service(t, shop()))
	require.NoError(t, err)
	out, _, err := typed(t, "explain", server.URL+"/good")
	require.NoError(t, err)
	require.Equal(t, want, strings.Replace(out, "# good: ", "# cpu.pprof: ", 1), "of the server and of a file")

	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for url, want := range map[string]string{
		server.URL + "/page":                     "/page is no whole profile, as /debug/pprof/profile writes it: ",
		server.URL + "/missing":                  "/missing answers 404 Not Found: is it /debug/pprof/profile?",
		server.URL + "/silent":                   "rpcbench: no whole profile came within 300ms: ask for fewer seconds",
		server.URL + "/stalls":                   "rpcbench: no whole profile came within 300ms: ",
		"http://" + closed.Addr().String() + "/": "connection refused",
		"http://[::1":                            "rpcbench: explain: parse ",
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
	require.Equal(t, errInterrupted, ours().run(ctx, []string{"explain", server.URL + "/silent"}, io.Discard, io.Discard))
}

// TestServicesPage: docs/service.md has the sentences of the profiles, and how to check them by hand.
func TestServicesPage(t *testing.T) {
	const page, dir = "../../docs/service.md", "../layers/testdata/services/"
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 3)
	for _, file := range files {
		name := strings.TrimSuffix(file.Name(), ".pprof")
		out, _, err := typed(t, "explain", dir+file.Name())
		require.NoError(t, err)
		_, said, _ := strings.Cut(out, "\n\n")
		said, _, _ = strings.Cut(said, "\n\n")
		_, rest, found := strings.Cut(string(data), "<!-- "+name+" -->\n")
		require.True(t, found, "%s has no place for %s", page, name)
		shown, rest, _ := strings.Cut(rest, "\n<!-- /"+name+" -->")
		require.Equal(t, strings.ReplaceAll(said, ". ", ".\n"), shown, "the sentences of %s in %s", name, page)

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
		table, _, _ := strings.Cut(rest, "```sh")
		byHand := 0.0
		for _, m := range regexp.MustCompile("(?m)^\\| ([+−]) \\| `(.*)` \\| (.*) s \\|$").FindAllStringSubmatch(table, -1) {
			cpu := float64(cumulative[m[2]]) / 1e9
			require.Equal(t, fmt.Sprintf("%.2f", cpu), m[3], "%s of %s", m[2], name)
			byHand += map[string]float64{"+": cpu, "−": -cpu}[m[1]]
		}
		m := regexp.MustCompile(`RPCs is ([\d.]+) % of`).FindStringSubmatch(said)
		require.NotNil(t, m, said)
		share, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		require.InEpsilon(t, share, 100e9*byHand/float64(all), 0.02, "RPCs of %s, by hand", name)
	}
}
