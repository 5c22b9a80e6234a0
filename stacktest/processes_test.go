package stacktest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
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
	"github.com/rpcbench/rpcbench/internal/versus"
)

const pidsFile = "RPCBENCH_TEST_PIDS" // names the file to which a child that measures adds its process id

// apartStacks are known to TestMain, and so to the children that measure.
func apartStacks() []rpcbench.Stack {
	child := os.Getenv(versus.Variable) != ""
	luck := time.Duration(rand.Float64() * float64(100*time.Microsecond)) // of this process
	if !child {
		luck = 0
	} else if file, err := os.OpenFile(os.Getenv(pidsFile), os.O_APPEND|os.O_WRONLY, 0); err == nil {
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
		busy("luck", 100*time.Microsecond+luck),
		inChild("tells", func() error { return fmt.Errorf("this process has %d Ps", runtime.GOMAXPROCS(0)) }),
		inChild("dies", func() error { os.Exit(3); return nil }),
		inChild("panics", func() error { panic("broken") }),
	}
}

// BenchmarkApart is for the tests below, which run it in child processes.
func BenchmarkApart(b *testing.B) {
	forChildren(b)
	all := apartStacks()
	BenchmarkVersus(b, rpcbench.Workload{}, all[0], append(all[1:], stubNamed("unnamed", func(int64) error { return nil }))...)
}

// TestProcesses: what differs between processes is in the interval.
func TestProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("eight processes")
	}
	args := []string{"-test.bench=^BenchmarkApart$/^stack=luck$", "-test.benchtime=1x", "-test.cpu=1", "-processes=8"}
	row := figuresOf(t, append(args, "-test.benchmem")...)
	require.Contains(t, row, "base-moved-%")
	require.Contains(t, row, "noise-floor-%")
	require.Equal(t, 8.0, row["processes"])
	require.GreaterOrEqual(t, row["B/op"], float64(64<<10), "the calls', not this process's")
	require.GreaterOrEqual(t, row["ns/op"], 100_000.0)
	require.Greater(t, row["base-ratio"], 1.05, "from children: in this process it is 1")
	require.Greater(t, row["base-ratio-hi"]/row["base-ratio-lo"], 1.1, "the blocks of one process differ by little")
	out, err := child(t, args...)
	require.NoError(t, err, out)
	require.Regexp(t, `in 8 processes luck took \d\.\d+ times as long as base, `+
		`99\.0 % interval \d\.\d+–\d\.\d+: (slower\n|undecided: \w+)`, out)
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
	require.ErrorContains(t, (&placement{processes: 16}).open(nil),
		"TestMain does not name the stacks that -server and -processes need")
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
				return err == nil && len(pids) >= 2
			}, time.Minute, 10*time.Millisecond, "the second child")
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
