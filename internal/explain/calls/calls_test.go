package calls

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/explain/layers"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// TestMain is also the process that Explain starts.
func TestMain(m *testing.M) {
	switch done, err := child.Serve(os.Stdin, os.Stdout, find, map[string]child.Job{child.Profiles: Profiling()}); {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case !done:
		goleak.VerifyTestMain(m)
	}
}

func find(name string) (rpcbench.Stack, error) {
	switch name {
	case "rawtcp", "procs" + fmt.Sprint(runtime.GOMAXPROCS(0)): // known only to a process of so many
		return rawtcp.New(), nil
	case "hangs":
		return testkit.WithClient(rawtcp.New(), func(c rpcbench.Users) rpcbench.Client {
			return testkit.Around(c, func(rpcbench.User, rpcbench.Call) rpcbench.Call {
				return func(context.Context) error { select {} }
			})
		}), nil
	}
	return rpcbench.Stack{}, errors.New("no stack is called " + name)
}

// The rounds before a failure are kept, and a child that says something else is ended.
func TestMeasureFails(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the children are shell scripts")
	}
	for _, test := range []struct {
		why, script, want string
		calls             int64 // of the rounds that are kept
	}{
		{"it dies in its second round",
			`read line; echo '{"answer":[{"Calls":1},{"Calls":2}]}'; read line; echo it died >&2; exit 1`, "it died", 2},
		{"it dies before its first round", `echo it died >&2; exit 1`, "it died", 0},
		{"it forgets an arm", `read line; echo '{"answer":[{"Calls":1}]}'; read line`,
			"a child answered with something else than a round", 0},
		{"it fails at its end",
			`read line; echo '{"answer":[{},{}]}'; read line; echo '{"answer":[{},{"Calls":5}]}'; read line; ` +
				`echo it died >&2; exit 1`, "it died", 5},
	} {
		t.Run(test.why, func(t *testing.T) {
			script := filepath.Join(t.TempDir(), "child")
			require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho 8; read spec\n"+test.script+"\n"), 0o700))
			found, err := Rounds{Arms: []string{"a", "b"}, Number: 2, path: script}.process(t.Context())
			require.EqualError(t, err, test.want)
			if test.calls == 0 {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 2)
			require.Equal(t, test.calls, found[1].Calls)
		})
	}
	_, err := Rounds{Arms: []string{"rawtcp", "httpjsno"}, Number: 1}.process(t.Context())
	require.EqualError(t, err, "no stack is called httpjsno")
	_, err = Rounds{Arms: []string{"rawtcp"}, Number: 1, path: "/nonexistent/rpcbench"}.process(t.Context())
	require.ErrorContains(t, err, "/nonexistent/rpcbench: ")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = Rounds{Arms: []string{"hangs"}, Number: 1}.process(ctx)
	require.Error(t, err)
	require.Error(t, ctx.Err(), "it was the context that ended it")
}

// An explained process has its own GOMAXPROCS, and each round adds to what is known of each arm.
func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	const procs = 3 // of both sides, also of a workload that is apart or at a rate
	s := Rounds{Arms: []string{"rawtcp", fmt.Sprintf("procs%d", procs)}, Slice: 150 * time.Millisecond, Procs: procs,
		Number: 2, Workload: workload.Workload{Apart: true, Rate: 1000, Callers: 3}}
	var found []Process
	var err error
	sides := map[string]int64{} // samples
	for range 50 {              // a busy machine may leave the profiler without a sample, or without one of either side
		clear(sides)
		found, err = s.process(t.Context())
		for _, e := range found {
			for _, part := range e.Profile.Parts {
				sides[part.Side] += part.Samples
			}
		}
		if err != nil && !strings.Contains(err.Error(), "no sample") || sides["client"]*sides["server"] > 0 {
			break
		}
	}
	require.NoError(t, err)
	require.Len(t, found, 2)
	for _, e := range found {
		require.Equal(t, "rawtcp", e.Profile.Row)
		require.Equal(t, procs, e.Procs)
		require.GreaterOrEqual(t, e.Wall, 2*s.Slice, "two rounds")
		require.Positive(t, e.Calls)
		require.Positive(t, e.Profile.Calls)
		p, err := layers.Merge("rawtcp", e.Profile.Calls, e.Recordings...)
		require.NoError(t, err)
		kept, err := layers.Of(p)
		require.NoError(t, err)
		all := func(layers.Part) bool { return true }
		own, _ := e.Profile.Parts.Sum(all)
		samples, _ := kept.Parts.Sum(all)
		require.Equal(t, own, samples, "of both rounds")
	}
	require.Positive(t, sides["client"], sides)
	require.Positive(t, sides["server"], sides)
}

// What is explained of several callers is divided by the calls that ended while it was measured.
func TestSeveralCallers(t *testing.T) {
	testkit.Alone(t)
	var by testkit.Watched
	o, err := workload.Workload{Callers: 8}.Open(t.Context(), by.Stack(rawtcp.New()), workload.Setup{})
	require.NoError(t, err)
	defer func() { require.NoError(t, o.Close()) }()
	var e Process
	var made int64
	for range 20 { // a busy machine may leave the profiler without a sample, or without one of either side
		e, made = Process{}, -by.Made.Load()
		err = e.turn(t.Context(), o, "rawtcp", 100*time.Millisecond, true)
		if made += by.Made.Load(); err == nil || !strings.Contains(err.Error(), "no sample") {
			break
		}
	}
	require.NoError(t, err)
	require.EqualValues(t, 8, by.Most.Load(), "callers at once")
	require.Less(t, e.Calls+e.Profile.Calls, made)
	require.Greater(t, e.Calls+e.Profile.Calls, made/3, "of 220 ms, 200 count")
	require.GreaterOrEqual(t, e.Wall, 100*time.Millisecond)
}
