package scaffold

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/command"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacks"
)

const asCommand = "RPCBENCH_OWN"

// TestMain: a process that a test starts is the command.
func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		command.Main(Make, stacks.All())
		return
	}
	os.Exit(m.Run())
}

// process is the command in a folder.
func process(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	testkit.Alone(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), asCommand+"=1")
	return cmd
}

// initialized makes a module, and returns its folder and what the command printed.
func initialized(t *testing.T, args ...string) (dir, said string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "mine")
	out, err := process(t, "", append(append([]string{"init"}, args...), "-out", dir)...).CombinedOutput()
	require.NoError(t, err, string(out))
	return dir, string(out)
}

// TestRun: the program runs in a temporary folder, -out lies where the caller is, and nothing else is left, no process
// either: after a run, after a signal, and after a command line that the program refuses.
func TestRun(t *testing.T) {
	t.Parallel()
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("links programs, and measures")
	}
	for _, c := range []struct {
		why    string
		args   string
		status int
		until  string // there is such a file, and then a signal
		files  []string
	}{
		{"a run", "-workloads call -out answer httpjsoniter", 0, "", []string{"answer"}},
		{"a build that the program can't make", "-out=answer httpjson@nosuch httpjsoniter", 1, "", nil},
		{"told to end while go builds", "-out answer", 1, "rpcbench-*/go-build*", nil},
		{"told to end before anything was measured", "-out answer", 1, "rpcbench-*/program", nil},
		{"told to end once something was measured", "-workloads call -out=answer httpjsoniter", 1,
			"home/answer/summary.json", []string{"answer"}},
	} {
		t.Run(c.why, func(t *testing.T) {
			if c.why == "a run" && !*long {
				t.Skip("measures to the end: -long")
			}
			t.Parallel()
			temporary := t.TempDir()
			home := filepath.Join(temporary, "home")
			require.NoError(t, os.Mkdir(home, 0o700))
			cmd := process(t, home, append(strings.Fields("run -request-size 100B -reply-size 200B"),
				strings.Fields(c.args)...)...)
			cmd.Env = append(cmd.Env, "TMPDIR="+temporary)
			var said strings.Builder
			cmd.Stderr = &said
			require.NoError(t, cmd.Start())
			if c.until != "" {
				require.Eventually(t, func() bool { return len(glob(t, temporary, c.until)) == 1 }, time.Minute,
					time.Millisecond)
				require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			}
			err := cmd.Wait()
			require.Equal(t, c.status, cmd.ProcessState.ExitCode(), "%v %s", err, said.String())
			errors := regexp.MustCompile(`(?m)^rpcbench: \D`).FindAllString(said.String(), -1) // but for how long it takes
			require.Len(t, errors, min(1, c.status), said.String())
			require.Empty(t, glob(t, temporary, "rpcbench-*"), "of the temporary folder nothing is left")
			for _, path := range glob(t, "/proc", "[0-9]*", "environ") { // where there is such a folder
				variables, _ := os.ReadFile(path) // others' can't be read
				require.NotContains(t, string(variables), temporary, "a process is left: %s", path)
			}
			var left []string
			for _, path := range glob(t, home, "*") {
				left = append(left, filepath.Base(path))
			}
			require.Equal(t, c.files, left, said.String())
			if c.files != nil {
				page, err := os.ReadFile(filepath.Join(home, "answer", "report.md"))
				require.NoError(t, err, "what was measured is reported")
				require.Contains(t, string(page), "\n    rpcbench run -request-size 100B -reply-size 200B "+c.args+"\n",
					"as it was typed")
			}
		})
	}
}
