package stacktest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
)

const pidsFile = "RPCBENCH_TEST_PIDS" // names the file to which a child that measures adds its process id

// apartStacks are known to TestMain, and so to the children that measure.
func apartStacks() []rpcbench.Stack {
	child := os.Getenv(versus.Variable) != ""
	if file, err := os.OpenFile(os.Getenv(pidsFile), os.O_APPEND|os.O_WRONLY, 0); child && err == nil {
		fmt.Fprintln(file, os.Getpid())
		_ = file.Close()
	}
	inChild := func(name string, do func() error) rpcbench.Stack {
		return stubNamed(name, func(int64) error {
			if child {
				return do()
			}
			return nil
		})
	}
	return []rpcbench.Stack{
		busy("base", 100*time.Microsecond),
		busy("other", 100*time.Microsecond),
		inChild("tells", func() error { return fmt.Errorf("this process has %d Ps", runtime.GOMAXPROCS(0)) }),
		inChild("dies", func() error { os.Exit(3); return nil }),
		inChild("panics", func() error { panic("broken") }),
	}
}

// BenchmarkApart is for the tests below, which run it in child processes.
func BenchmarkApart(b *testing.B) {
	forChildren(b)
	all := apartStacks()
	BenchmarkVersus(b, rpcbench.Workload{}, all[0], append(all[1:], stubNamed("unnamed", func(int64) error {
		return nil
	}))...)
}

// madeUp in the environment has a number and a folder. So many children that measure answer with figures that are
// known.
const madeUp = "RPCBENCH_TEST_MADE_UP"

// madeUpChild is all that such a child does. Any later one measures.
func madeUpChild() bool {
	var most, n int
	var dir string
	_, _ = fmt.Sscan(os.Getenv(madeUp), &most, &dir)
	for n < most && os.Mkdir(filepath.Join(dir, strconv.Itoa(n)), 0o700) != nil {
		n++
	}
	var spec versus.Spec
	in := bufio.NewScanner(os.Stdin)
	if n == most || !in.Scan() || json.Unmarshal(in.Bytes(), &spec) != nil {
		return false
	}
	last := len(spec.Arms) - 1
	orExit(1, map[string]error{"dies": errors.New("rpcbench: it died")}[spec.Arms[last]])
	base, alternates := float64(time.Second), []float64{1, -1}[n%2]
	if n%8 == 2 { // in one process of eight the machine is slower
		base *= map[string]float64{"base": 1.04, "other": 1.04, "tells": 1.5}[spec.Arms[last]]
	}
	block := []timing.Slice{{Wall: time.Duration(base)}, {Wall: time.Duration(base * math.Exp(0.003+0.001*alternates))}}
	if last > 1 {
		block = append(block, timing.Slice{Wall: time.Duration(base * 2 * math.Exp(0.01*alternates))})
	}
	for i := range block {
		block[i].Turn, block[i].Ops, block[i].CPU = i, 1, block[i].Wall/4
	}
	for in.Scan() {
		orExit(1, json.NewEncoder(os.Stdout).Encode(timing.Record{Arms: spec.Arms, Blocks: [][]timing.Slice{block}}))
	}
	return true
}

// makeUp is for the next so many processes.
func makeUp(t *testing.T, processes int) { t.Setenv(madeUp, fmt.Sprint(processes, " ", t.TempDir())) }

// TestVersusFigures: what a row prints of eight processes whose figures are known. Ratios alternate between 1 % more
// and 1 % less than 2, those of the copy between 0.4 % and 0.2 % more than 1. The intervals of five contestants hold
// together at 95 %: of one build, each has R's qt(1-0.02/5/2, 7), which is 4.207125, times 0.01/sqrt(7).
func TestVersusFigures(t *testing.T) {
	makeUp(t, 24)
	out, err := child(t, "-test.bench=^BenchmarkApart$/^stack=(base|other|tells)$", "-test.benchtime=1x",
		"-test.cpu=1", "-test.benchmem", "-processes=8")
	require.NoError(t, err, out)
	rows, names := figuresIn(t, out)
	require.Equal(t, []string{"Apart/stack=base", "Apart/stack=other", "Apart/stack=tells"}, names)
	for i, want := range []map[string]float64{
		{"aa-ratio": 1.0030, "aa-ratio-lo": 1.0014, "aa-ratio-hi": 1.0046, "noise-floor-%": 0.4601, "base-moved-%": 4,
			"ns/op": 1.0080e9},
		{"base-ratio": 2, "base-ratio-lo": 1.9684, "base-ratio-hi": 2.0321, "noise-floor-%": 0.4601,
			"base-moved-%": 4, "ns/op": 2.0102e9},
		// Of what the base moved, a tenth counts: 1.5 to the power of 0.1.
		{"base-ratio": 2, "base-ratio-lo": 1.9684, "base-ratio-hi": 2.0321, "noise-floor-%": 4.1380,
			"base-moved-%": 50, "ns/op": 2.1264e9},
	} {
		want["cpu-ns/op"], want["processes"] = want["ns/op"]/4, 8
		for unit, value := range want {
			require.Contains(t, rows[i], unit)
			require.InEpsilon(t, value, rows[i][unit], 4e-4, "%s of %s", unit, names[i])
		}
		require.GreaterOrEqual(t, rows[i]["B/op"], map[bool]float64{true: 64 << 10, false: 0}[i < 2],
			"the calls', not this process's")
		require.Equal(t, i == 0, rows[i]["base-ratio"] == 0, "the base has a ratio to its copy")
		require.Equal(t, i == 0, rows[i]["aa-ratio"] > 0)
	}
	require.Contains(t, out,
		"in 8 processes other took 2.0000 times as long as base, 99.0 % interval 1.9684–2.0321: slower\n")
}

func TestProcessesThatFail(t *testing.T) {
	for _, test := range []struct{ why, stack, cpu, want string }{
		{"the Ps of the label", "tells", "1", "this process has 1 Ps"},
		{"the Ps of another label", "tells", "3", "this process has 3 Ps"},
		{"a child that dies", "dies", "1", "exit status 3"},
		{"a child that panics, whose trace would fill pages", "panics", "1", "rpcbench: versus: panic: broken; goroutine "},
		{"a stack that Main was not given", "unnamed", "1",
			`rpcbench: versus: TestMain does not name the stack "unnamed": stacktest.Main takes stacks`},
	} {
		t.Run(test.why, func(t *testing.T) {
			t.Parallel()
			bench := "-test.bench=^BenchmarkApart$/^stack=" + test.stack + "$"
			out, err := child(t, bench, "-test.benchtime=1x", "-test.cpu="+test.cpu, "-processes=8")
			require.Error(t, err, out)
			require.Contains(t, out, test.want)
			require.NotRegexp(t, `rpcbench: .*: rpcbench: `, out)
			require.Less(t, strings.Count(out, "\n"), 20, out)
			rows, _ := results(t, out)
			require.Empty(t, rows, out)
		})
	}
}

func TestWrongProcesses(t *testing.T) {
	out, err := child(t, "-test.bench=.", "-processes=-3")
	require.EqualError(t, err, "exit status 2")
	require.Equal(t, "rpcbench: -processes -3: give 8 or more\n", out)
}

// TestNoProcessIsLeft: whatever ends the parent ends its children, and a signal that it can catch loses nothing.
func TestNoProcessIsLeft(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no signals")
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pids")
			require.NoError(t, os.WriteFile(file, nil, 0o600))
			makeUp(t, 1)
			args := []string{"-test.run=^$", "-test.bench=^BenchmarkApart$", "-test.cpu=1", "-processes=8"}
			cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
			cmd.Env = append(os.Environ(), inChild+"=1", pidsFile+"="+file)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			require.NoError(t, cmd.Start())
			var pids []string
			require.Eventually(t, func() bool {
				data, err := os.ReadFile(file)
				pids = strings.Fields(string(data))
				return err == nil && len(pids) >= 1
			}, time.Minute, 10*time.Millisecond, "the second process, which is the first that measures")
			require.NoError(t, cmd.Process.Signal(signal))
			require.Error(t, cmd.Wait())
			if signal != syscall.SIGKILL {
				require.Regexp(t, `rpcbench: versus: in (1 process|[2-8] processes) base: undecided: \d of 8 processes count, and a verdict needs 6.*; `+
					`then: versus: interrupted\n`, out.String())
			}
			for _, pid := range pids {
				n, err := strconv.Atoi(pid)
				require.NoError(t, err)
				p, err := os.FindProcess(n)
				require.NoError(t, err)
				ended := func() bool { return p.Signal(syscall.Signal(0)) != nil }
				require.Eventually(t, ended, 30*time.Second, 10*time.Millisecond, "process %d goes on", n)
			}
		})
	}
}
