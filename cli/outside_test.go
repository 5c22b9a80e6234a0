package cli

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// knownLog in the environment names a file. The test's program then has two stacks whose calls take a known time by what
// they carry. They tell in that file what they were asked for.
const knownLog = "RPCBENCH_TEST_KNOWN"

// What a call of the base takes, and how many times as long one of the contestant does. No two workloads are alike.
const (
	smallTakes, smallRatio = 200 * time.Microsecond, 2.0
	bytesTakes, bytesRatio = 800 * time.Microsecond, 0.25
)

func knownStacks() []rpcbench.Stack { return []rpcbench.Stack{waiting("base", 0), waiting("other", 1)} }

// waiting is rawtcp, whose calls work first. They leave garbage, so that slices end.
func waiting(name string, contestant float64) rpcbench.Stack {
	s := rawtcp.New()
	s.Name = name
	dial := s.Dial
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		c, err := dial(config)
		return knownClient{c.(rpcbench.Users), name, contestant}, err
	}
	return s
}

type knownClient struct {
	rpcbench.Users
	name       string
	contestant float64 // 1, or 0 for the base
}

func (c knownClient) call(what string, takes time.Duration, ratio float64, real rpcbench.Call, err error) (rpcbench.Call, error) {
	file, openErr := os.OpenFile(os.Getenv(knownLog), os.O_APPEND|os.O_WRONLY, 0)
	if openErr != nil {
		return nil, openErr
	}
	_, _ = fmt.Fprintf(file, "%s %s GOMAXPROCS=%d\n", c.name, what, runtime.GOMAXPROCS(0))
	takes = time.Duration(float64(takes) * math.Pow(ratio, c.contestant))
	return func(ctx context.Context) error {
		garbage := make([]byte, 1<<18)
		for began := time.Now(); time.Since(began) < takes; { // a timer would be late by more than the sides differ
		}
		runtime.KeepAlive(garbage)
		return real(ctx)
	}, cmp.Or(err, file.Close())
}

func (c knownClient) Prepare(i, payload int) (rpcbench.Call, error) {
	return c.PrepareUser(rpcbench.Sample(i, payload))
}

func (c knownClient) PrepareUser(u rpcbench.User) (rpcbench.Call, error) {
	real, err := c.Users.PrepareUser(u)
	switch {
	case len(u.Name) == len("Anna1000"): // of the start
		return real, err
	case len(u.Avatar) > 0:
		return c.call(fmt.Sprintf("user+%d", len(u.Avatar)), bytesTakes, bytesRatio, real, err)
	}
	return c.call("user", smallTakes, smallRatio, real, err)
}

// outside starts the command as a process of its own, with the known stacks.
func outside(t *testing.T, args ...string) (cmd *exec.Cmd, log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(log, nil, 0o600))
	path, err := os.Executable()
	require.NoError(t, err)
	cmd = exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), asMain+"=1", knownLog+"="+log)
	in, err := cmd.StdinPipe() // which the command would end with
	require.NoError(t, err)
	t.Cleanup(func() { _ = in.Close() })
	return cmd, log
}

// TestRunFromOutside: what run measures, and where its figures come out, with stacks whose calls take a known time.
func TestRunFromOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("twelve processes")
	}
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	cmd, log := outside(t, "run", "-quick", "-workloads", "small,bytes-10kB,small-1-caller", "-seed", "5", "-out", out, "other")
	said, err := cmd.Output()
	require.NoError(t, err)
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	asked := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		asked[strings.TrimSpace(line)] = true
	}
	all := runtime.NumCPU()
	want := map[string]bool{}
	for _, stack := range []string{"base", "other"} {
		for _, what := range []string{"user GOMAXPROCS=1", "user+10000 GOMAXPROCS=1", fmt.Sprintf("user GOMAXPROCS=%d", all)} {
			want[stack+" "+what] = true
		}
	}
	require.Equal(t, want, asked, "each workload at its GOMAXPROCS, and nothing else")

	rows, ratios := map[string][]*benchfmt.Result{}, map[string][]float64{}
	file, err := os.Open(filepath.Join(out, "bench.txt"))
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	for r := benchfmt.NewReader(file, "bench.txt"); r.Scan(); {
		row, ok := r.Result().(*benchfmt.Result)
		require.True(t, ok, "%v", r.Result())
		m := regexp.MustCompile(`^Run/workload=([^/]+)/against=other/stack=([^/]+?)(-\d+)?$`).FindStringSubmatch(string(row.Name))
		require.NotNil(t, m, "%s", row.Name)
		rows[m[1]+" "+m[2]] = append(rows[m[1]+" "+m[2]], row.Clone())
		if m[2] == "other" {
			ratio, ok := row.Value("base-ratio")
			require.True(t, ok)
			ratios[m[1]] = append(ratios[m[1]], ratio)
		}
	}
	s, err := report.Read(out)
	require.NoError(t, err)
	require.Equal(t, "base", s.Base)
	require.Len(t, s.Answers, 3)
	pages := map[string]string{}
	for _, page := range []string{"report.md", "report.html"} {
		text, err := os.ReadFile(filepath.Join(out, page))
		require.NoError(t, err)
		pages[page] = string(text)
	}
	for i, want := range []struct {
		workload string
		takes    time.Duration
		ratio    float64
		procs    int
	}{{"small", smallTakes, smallRatio, 1}, {"bytes-10kB", bytesTakes, bytesRatio, 1}, {"small-1-caller", smallTakes, smallRatio, all}} {
		a := s.Answers[i]
		require.Equal(t, want.workload, a.Workload)
		require.Equal(t, "other", a.Stack)
		require.Equal(t, want.procs, a.GOMAXPROCS)
		require.Equal(t, 4, a.Processes)
		// A call is never shorter than asked for.
		require.GreaterOrEqual(t, a.BaseNs, float64(want.takes), want.workload)
		require.GreaterOrEqual(t, a.Ns, float64(want.takes)*want.ratio, want.workload)
		require.GreaterOrEqual(t, a.P50.Base, float64(want.takes))
		require.GreaterOrEqual(t, a.P50.Ns, float64(want.takes)*want.ratio)
		require.Equal(t, want.ratio > 1, a.Ratio > 1, "%s: the sides: %v", want.workload, a.Ratio)
		require.Equal(t, want.ratio > 1, a.P50.Ratio > 1, want.workload)
		require.Equal(t, want.ratio > 1, a.Ns > a.BaseNs, want.workload)
		require.InDelta(t, 1, a.Calls, 0.2, "one caller")
		for stack, ns := range map[string]float64{"base": a.BaseNs, "other": a.Ns} {
			sum := 0.0
			require.Len(t, rows[want.workload+" "+stack], 4)
			for _, row := range rows[want.workload+" "+stack] {
				v, _ := row.Value("sec/op")
				sum += v * 1e9 / 4
			}
			require.InEpsilon(t, ns, sum, 1e-3, "%s of %s in bench.txt", stack, want.workload)
		}
		require.Len(t, rows[want.workload+" base.again"], 4)
		// By hand: Student's interval of four processes of one build, at 98 %, where R's qt(0.99, 3) is 4.540703.
		var mean, squares float64
		for _, ratio := range ratios[want.workload] {
			mean += math.Log(ratio) / 4
		}
		for _, ratio := range ratios[want.workload] {
			squares += (math.Log(ratio) - mean) * (math.Log(ratio) - mean)
		}
		half := 4.540703 * math.Sqrt(squares/3) / 2
		require.InDelta(t, mean, math.Log(a.Ratio), 1e-4)
		require.InDelta(t, mean-half, math.Log(a.Lo), 1e-3)
		require.InDelta(t, mean+half, math.Log(a.Hi), 1e-3)
		require.InDelta(t, 0.95, a.Level, 1e-12)

		columns := []string{a.Does, strconv.Itoa(a.GOMAXPROCS), fmt.Sprintf("%.1f", a.BaseNs/1000), "other", fmt.Sprintf("%.1f", a.BaseNs*a.Ratio/1000),
			fmt.Sprintf("%.2f", a.Ratio), fmt.Sprintf("%.2f–%.2f", a.Lo, a.Hi), string(a.Verdict)}
		for i := range columns {
			columns[i] = regexp.QuoteMeta(columns[i])
		}
		require.Regexp(t, "(?m)^"+strings.Join(columns, " +"), string(said))
		require.Contains(t, pages["report.md"], fmt.Sprintf("| %s | other | %.2f | %.2f–%.2f | %s", a.Does, a.Ratio, a.Lo, a.Hi, a.Verdict))
		require.Contains(t, pages["report.html"], fmt.Sprintf("<td>%s<td class=\"l\">other<td>%.2f<td>%.2f–%.2f<td", a.Does, a.Ratio, a.Lo, a.Hi))
	}
}

// TestEndedFromOutside: a run keeps what was measured, however it ends.
func TestEndedFromOutside(t *testing.T) {
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("it waits for processes that measure")
	}
	t.Parallel()
	for _, c := range []struct {
		why    string
		signal syscall.Signal
		status int
	}{{"interrupted", syscall.SIGINT, 1}, {"told to end", syscall.SIGTERM, 1}, {"killed", syscall.SIGKILL, -1}} {
		t.Run(c.why, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			cmd, _ := outside(t, "run", "-quick", "-workloads", "small", "-out", out, "other")
			require.NoError(t, cmd.Start())
			require.Eventually(t, func() bool {
				text, _ := os.ReadFile(filepath.Join(out, "summary.json"))
				return strings.Contains(string(text), `"processes": 1`)
			}, time.Minute, 20*time.Millisecond, "the first process")
			require.NoError(t, cmd.Process.Signal(c.signal))
			require.Error(t, cmd.Wait())
			require.Equal(t, c.status, cmd.ProcessState.ExitCode())
			if c.status < 0 {
				stdout, _, err := typed(t, "report", out)
				require.NoError(t, err, stdout)
			}
			require.FileExists(t, filepath.Join(out, "report.html"))
			s, err := report.Read(out)
			require.NoError(t, err)
			a := s.Answers[0]
			require.Positive(t, a.Processes)
			require.GreaterOrEqual(t, a.BaseNs, float64(smallTakes))
			require.Equal(t, versus.Undecided, a.Verdict)
			require.Contains(t, s.Raw, "/stack=other")
		})
	}
	t.Run("before anything was measured", func(t *testing.T) {
		out := filepath.Join(t.TempDir(), "out")
		cmd, _ := outside(t, "run", "-quick", "-out", out, "other")
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool { _, err := os.Stat(out); return err == nil }, time.Minute, time.Millisecond)
		require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		require.Error(t, cmd.Wait())
		require.NoDirExists(t, out, "so that the same command can be typed again")
	})
}

// The order of everything is random, and the seed decides it. Each layout has a seed of its own.
func TestSeed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the children are a shell script")
	}
	script := filepath.Join(t.TempDir(), "children")
	block := `{"arms":["a","b","c"],"blocks":[[[0,1,1000,1000,0,0],[0,1,1000,1000,0,0],[0,1,1000,1000,0,0]]]}`
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nread spec\nwhile read line; do echo '"+block+"'; done\n"), 0o700))
	order := func(seed uint64) (rounds []string) {
		c := comparison{base: "base", contestants: []string{"x", "y", "z"}, processes: 6, fewest: 6, time: time.Second, seed: seed,
			programs: map[string][]versus.Program{"": {{Path: script}}}}
		w, err := workload.Find("small")
		require.NoError(t, err)
		c.workloads = append(c.workloads, w)
		_, _, failed, err := c.measure(t.Context(), func(string, time.Duration, time.Duration) {}, func(_ []*group, g *group, _ timing.Record) error {
			rounds = append(rounds, g.arms[2])
			return nil
		})
		require.NoError(t, err)
		require.Empty(t, failed)
		return rounds
	}
	first := order(1)
	require.Equal(t, first, order(1))
	require.NotEqual(t, first, order(2))
	require.NotEqual(t, first[:3], first[3:6], "by this seed")
	for round := range 6 {
		require.ElementsMatch(t, []string{"x", "y", "z"}, first[3*round:3*round+3], "a process of each in turn")
	}
	c := comparison{layouts: 8, seed: 1}
	seeds := map[uint64]bool{}
	for _, s := range c.seeds() {
		require.NotZero(t, s)
		seeds[s] = true
	}
	require.Len(t, seeds, 8)
	require.Equal(t, []uint64{0}, (&comparison{}).seeds(), "the linker's own order")
}
