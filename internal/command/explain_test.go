package command

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

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

const aService = "../explain/bound/testdata/services/etcd.pprof"
