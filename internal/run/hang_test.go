package run

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/stacks"
)

// alive are the processes whose environment has a value, but for this one, where the system tells.
func alive(t *testing.T, value string) (all []string) {
	t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, name := range environments {
		data, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(data), value) && name != fmt.Sprintf("/proc/%d/environ", os.Getpid()) {
			all = append(all, name)
		}
	}
	return all
}

// A stack whose calls and Close never return costs its own comparison, in a bounded time. A line names it and the
// process, the reason stands again where its figures would, and nothing is left but what its goroutines did.
func TestHangs(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for what never comes")
	}
	marks := t.TempDir()
	for name, value := range map[string]string{patienceEnv: "2s", "TMPDIR": marks} { // not by T.Setenv: parallel
		before, was := os.LookupEnv(name)
		require.NoError(t, os.Setenv(name, value))
		t.Cleanup(func() {
			if _ = os.Unsetenv(name); was {
				_ = os.Setenv(name, before)
			}
		})
	}
	t.Run("all", hangs)
	left, failed := os.ReadDir(marks)
	require.NoError(t, failed)
	require.Empty(t, left)
	require.Empty(t, alive(t, "TMPDIR="+marks))
}

// hangs waits for all at once.
func hangs(t *testing.T) {
	for _, c := range []struct {
		why  string
		args []string
		says map[string]string // by stack, what the report says
	}{
		{"one process", []string{"-workloads", "small", "rawtcp", "hangs.both"}, map[string]string{
			"hangs.both": "hangs.both hangs: a call had not returned after 8.4s, and neither had Close after 3s more"}},
		{"one process, in Close", []string{"-workloads", "small", "rawtcp", "hangs.close"}, map[string]string{
			"hangs.close": "hangs.close hangs: Close had not returned after 8.4s"}},
		{"apart", []string{"-apart", "-unix", "rawtcp", "hangs.both"}, map[string]string{
			"hangs.both": "hangs.both hangs: its process gave no answer in 3s"}},
		{"apart, of nothing else", []string{"-apart", "hangs.both"}, map[string]string{
			"hangs.both": "hangs.both hangs: its process gave no answer in 3s"}},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			out, began := filepath.Join(t.TempDir(), "new"), time.Now()
			program := programOf(append(stacks.All(), hanging()...))
			o := optionsOf(t, program, append([]string{"-out", out}, c.args...)...)
			require.NoError(t, o.check(o.plan()))
			var stdout, stderr bytes.Buffer
			err := answer(t.Context(), quick(o), o, &stdout, &stderr)
			require.Less(t, time.Since(began), time.Minute)
			goroutines, read := os.ReadFile(filepath.Join(out, hangFile))
			require.NoError(t, read)
			for stack, says := range c.says {
				require.Regexp(t, ", "+stack+", process 1 of 1: "+says+` \(goroutines.txt has what its goroutines did\)`, err)
				require.NotContains(t, err.Error(), "again")
				require.Contains(t, string(goroutines), stack+", process 1 of 1: "+says+"\n\ngoroutine ")
			}
			require.Contains(t, string(goroutines), "github.com/rpcbench/rpcbench/internal/testkit/hanging.go:")
			require.NotContains(t, string(goroutines), "\t/", "a folder")
			if len(c.args) == 2 {
				require.ErrorContains(t, err, ": see "+out)
				require.Empty(t, stdout)
				return
			}
			s, failed := report.Read(out)
			require.NoError(t, failed)
			require.Equal(t, "rawtcp", s.Answers[0].Stack)
			require.Equal(t, 1, s.Answers[0].Processes.Counted, "the others go on")
			for stack, says := range c.says {
				require.Contains(t, strings.Join(strings.Fields(stdout.String()), " "), // which is wrapped
					stack+": 0 of 1 processes count, and a verdict needs 6: "+says)
			}
		})
	}
}
