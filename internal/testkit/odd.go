// Package testkit has the fakes that tests use: stacks that differ from a right one in one thing, and child processes
// whose figures are known.
package testkit

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
)

// Variable in the environment makes children that measure, count or profile answer with known figures. Its value is
// from Children.
const Variable = "RPCBENCH_TEST_CHILDREN"

// Question is what a child was asked.
type Question[Spec any] struct {
	Does            string // the child's job
	Spec            Spec
	GOMAXPROCS, PID int
}

// Children returns a value of Variable. With it so many children answer, or all if most is 0. Later ones wait for their
// end.
func Children(t testing.TB, most int) string {
	t.Helper()
	return fmt.Sprint(most, " ", t.TempDir())
}

// Asked returns what the children with a value of Variable were asked, the earliest first.
func Asked[Spec any](value string) (all []Question[Spec]) {
	_, dir := parse(value)
	for {
		data, err := os.ReadFile(file(dir, len(all)))
		var q Question[Spec]
		if err != nil || json.Unmarshal(data, &q) != nil {
			return all
		}
		all = append(all, q)
	}
}

func parse(value string) (most int, dir string) {
	_, _ = fmt.Sscan(value, &most, &dir)
	return most, dir
}

func file(dir string, n int) string { return filepath.Join(dir, fmt.Sprint(n)) }

// Alone skips a test if benchmarks, a profile or a trace were asked for. A test that starts this binary again, or takes
// a CPU profile itself, calls it before it starts anything: the benchmarks would wait for it, and Go takes one CPU
// profile at a time.
func Alone(t testing.TB) {
	t.Helper()
	for _, name := range []string{"bench", "cpuprofile", "memprofile", "blockprofile", "mutexprofile", "trace"} {
		if flag.Lookup("test."+name).Value.String() != "" {
			t.Skip("skipped beside -" + name)
		}
	}
}

// Again is the test's program, to be started with a variable in its environment. It ends with the test, which holds its
// standard input open until then.
func Again(t testing.TB, variable string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), variable)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = in.Close() })
	return cmd
}

// Allocated is how many bytes fn allocates, and all else that runs meanwhile.
func Allocated(fn func()) uint64 {
	since := workload.Allocated()
	fn()
	bytes, _ := since()
	return bytes
}

// Rows parses output as benchstat does. units are those that have a Unit line.
func Rows(t testing.TB, output string) (rows []*benchfmt.Result, units map[string]bool) {
	t.Helper()
	units = map[string]bool{}
	r := benchfmt.NewReader(strings.NewReader(output), "output")
	for r.Scan() {
		switch rec := r.Result().(type) {
		case *benchfmt.Result:
			rows = append(rows, rec.Clone())
		case *benchfmt.UnitMetadata:
			units[rec.OrigUnit] = true
		case *benchfmt.SyntaxError:
			require.Fail(t, rec.Error(), output)
		}
	}
	require.NoError(t, r.Err())
	return rows, units
}

// Answer is all that such a child does: TestMain calls it first. answer makes what the child says in its n-th round,
// from 1 on, of what it and earlier children were asked. In other processes Answer returns false at once.
func Answer[Spec any](answer func(before []Question[Spec], q Question[Spec], n int) (any, error)) bool {
	value, does := os.Getenv(Variable), os.Getenv(child.Variable)
	job := child.NewJob(func(_ context.Context, _ child.Stacks, spec Spec, lines <-chan []byte,
		reply func(any) error) error {
		q, before := Question[Spec]{Does: does, Spec: spec, GOMAXPROCS: runtime.GOMAXPROCS(0), PID: os.Getpid()},
			Asked[Spec](value)
		most, dir := parse(value)
		data, err := json.Marshal(q)
		if err == nil {
			err = os.WriteFile(file(dir, len(before)), data, 0o600)
		}
		for n := 1; err == nil && <-lines != nil; n++ {
			if most > 0 && len(before) >= most {
				continue
			}
			var said any
			if said, err = answer(before, q, n); err == nil {
				err = reply(said)
			}
		}
		return err
	})
	jobs := map[string]child.Job{child.Measures: job, child.Counts: job, child.Profiles: job}
	if value == "" || jobs[does] == nil {
		return false
	}
	if _, err := child.Serve(os.Stdin, os.Stdout, nil, jobs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}
