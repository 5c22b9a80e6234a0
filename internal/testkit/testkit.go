// Package testkit has the fakes that tests use: stacks that differ from a right one in one thing, and child processes
// whose figures are known.
package testkit

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
)

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

// As is the fixture's client as a C, without which the test ends.
func As[C any](t testing.TB, f *rpcbench.Fixture) C {
	t.Helper()
	c, err := rpcbench.As[C](f)
	require.NoError(t, err)
	return c
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
