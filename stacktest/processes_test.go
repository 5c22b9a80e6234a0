package stacktest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/odd"
	"github.com/rpcbench/rpcbench/internal/timing"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// apartStacks are known to TestMain, and so to the children that measure.
func apartStacks() []rpcbench.Stack {
	inChild := func(name string, do func() error) rpcbench.Stack {
		return named(name, stub(func(int64) error {
			if odd.Measuring() {
				return do()
			}
			return nil
		}))
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
	BenchmarkVersus(b, rpcbench.Workload{}, all[0], append(all[1:], named("unnamed", stub(idle)))...)
}

// madeUp is what a child answers: figures that are known.
func madeUp(before []odd.Question[versus.Spec], spec versus.Spec, _ int) (any, error) {
	last := len(spec.Arms) - 1
	if spec.Arms[last] == "dies" {
		return nil, errors.New("rpcbench: it died")
	}
	n, base, alternates := len(before), float64(time.Second), []float64{1, -1}[len(before)%2]
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
	return timing.Record{Arms: spec.Arms, Blocks: [][]timing.Slice{block}}, nil
}

// TestVersusFigures: what a row prints of eight processes whose figures are known. Ratios alternate between 1 % more
// and 1 % less than 2, those of the copy between 0.4 % and 0.2 % more than 1. The intervals of five contestants hold
// together at 95 %: each has R's qt(1-0.05/5/2, 7), which is 3.499483, times 0.0095/sqrt(7), since both fixtures of the
// base count. What layouts make of a ratio is added in squares: qnorm(1-0.05/5/2), which is 2.575829, times 0.0065.
func TestVersusFigures(t *testing.T) {
	t.Setenv(odd.Variable, odd.Children(t, 0))
	out, err := child(t, "-test.bench=^BenchmarkApart$/^stack=(base|other|tells)$", "-test.benchtime=1x",
		"-test.cpu=1", "-test.benchmem", "-processes=8")
	require.NoError(t, err, out)
	rows, names := figuresIn(t, out)
	require.Equal(t, []string{"Apart/stack=base", "Apart/stack=other", "Apart/stack=tells"}, names)
	for i, want := range []map[string]float64{
		{"aa-ratio": 1.0030, "aa-ratio-lo": 1.0017, "aa-ratio-hi": 1.0043, "noise-floor-%": 0.4332, "base-moved-%": 4,
			"ns/op": 1.0080e9},
		{"base-ratio": 1.9970, "base-ratio-lo": 1.9556, "base-ratio-hi": 2.0392, "noise-floor-%": 1.6743,
			"base-moved-%": 4, "ns/op": 2.0102e9},
		// Of what the base moved, a tenth counts: 1.5 to the power of 0.1.
		{"base-ratio": 1.9970, "base-ratio-lo": 1.9556, "base-ratio-hi": 2.0392, "noise-floor-%": 4.1380,
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
		"in 8 processes other took 1.9970 times as long as base, 99.0 % interval 1.9556–2.0392: slower\n")
}

func TestProcessesThatFail(t *testing.T) {
	for _, test := range []struct{ why, stack, cpu, want string }{
		{"the Ps of the label", "tells", "3", "this process has 3 Ps"},
		{"a child that dies", "dies", "1", "exit status 3"},
		{"a child that panics, whose trace would fill pages", "panics", "1",
			"rpcbench: versus: panics, process 1 of 8: panic: broken; goroutine "},
		{"a stack that Main was not given", "unnamed", "1",
			`rpcbench: versus: unnamed, process 1 of 8: its process has no stack "unnamed": `},
	} {
		t.Run(test.why, func(t *testing.T) {
			t.Parallel()
			bench := "-test.bench=^BenchmarkApart$/^stack=" + test.stack + "$"
			out, err := child(t, bench, "-test.benchtime=1x", "-test.cpu="+test.cpu, "-processes=8")
			require.Error(t, err, out)
			require.Contains(t, out, test.want)
			require.NotRegexp(t, `rpcbench: .*: rpcbench: `, out)
			require.Less(t, strings.Count(out, "\n"), 20, out)
			rows, _ := odd.Rows(t, out)
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
	odd.Alone(t)
	if runtime.GOOS == "windows" {
		t.Skip("has no signals")
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			children := odd.Children(t, 1)
			args := []string{"-test.run=^$", "-test.bench=^BenchmarkApart$", "-test.cpu=1", "-processes=8"}
			cmd := odd.Again(t, inChild+"=1", args...)
			cmd.Env = append(cmd.Env, odd.Variable+"="+children)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			require.NoError(t, cmd.Start())
			require.Eventually(t, func() bool { return len(odd.Asked[versus.Spec](children)) == 2 }, time.Minute,
				10*time.Millisecond, "the second process, which waits")
			require.NoError(t, cmd.Process.Signal(signal))
			require.Error(t, cmd.Wait())
			if signal != syscall.SIGKILL {
				require.Regexp(t, `rpcbench: versus: in 1 process base: undecided: 1 of 8 processes count, and a verdict `+
					`needs 6.*; then: interrupted\n`, out.String())
			}
			for _, q := range odd.Asked[versus.Spec](children) {
				p, err := os.FindProcess(q.PID)
				require.NoError(t, err)
				ended := func() bool { return p.Signal(syscall.Signal(0)) != nil }
				require.Eventually(t, ended, 30*time.Second, 10*time.Millisecond, "process %d goes on", q.PID)
			}
		})
	}
}
