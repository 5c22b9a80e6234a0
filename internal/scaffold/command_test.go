package scaffold

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/command"
	"github.com/rpcbench/rpcbench/internal/compare/builds"
	"github.com/rpcbench/rpcbench/internal/own"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacks"
)

const (
	asCommand = "RPCBENCH_OWN" // is building, or the path of a program
	building  = "builds"
	endless   = "RPCBENCH_OWN_ENDLESS" // proofs
)

// TestMain: a process that a test starts is the command. It builds and proves modules, or only writes them, with a
// program that is there.
func TestMain(m *testing.M) {
	switch of := os.Getenv(asCommand); of {
	case "":
		debug.SetGCPercent(400) // tests make many modules, and none measures here
		os.Exit(m.Run())
	case building:
		command.Main(Make, stacks.All())
	default:
		command.Main(func(ctx context.Context, messages own.Messages, dir, name string) (own.Module, error) {
			m, err := (&call{messages}).module(ctx, dir, "mine/"+name)
			if err != nil {
				return own.Module{}, err
			}
			err = os.Link(of, m.Program)
			for err == nil && os.Getenv(endless) != "" {
				_, err = builds.Output(ctx, dir, nil, m.Program, "prove")
			}
			return m.Module, err
		}, stacks.All())
	}
}

// process is the command in a folder.
func process(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	testkit.Alone(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), asCommand+"="+building)
	return cmd
}

// writes is the command in a folder, with a program for the modules that it then does not build. Without one they get
// an empty file.
func writes(t *testing.T, program, dir string, args ...string) *exec.Cmd {
	t.Helper()
	if program == "" {
		program = filepath.Join(t.TempDir(), "program")
		write(t, program, "")
	}
	cmd := process(t, dir, args...)
	cmd.Env = append(cmd.Env, asCommand+"="+program)
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
	const sizes = "-request-size 100B -reply-size 200B"
	linked := t.TempDir()
	messages := own.Messages{RequestSize: "100B", ReplySize: "200B"}
	module, err := (&call{messages}).module(t.Context(), linked, "mine/own")
	require.NoError(t, err)
	out, err := goIn(t, linked, nil, "build", "-trimpath", "-buildvcs=false", "-ldflags=-w", "-o", module.Program, ".")
	require.NoError(t, err, out)
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
		{"told to end while the module is proved", "-out answer", 1, "rpcbench-*/program", nil},
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
			args := strings.Fields("run " + sizes + " " + c.args)
			cmd := writes(t, module.Program, home, args...)
			if strings.HasSuffix(c.until, "program") { // which may not hear the signal as it starts to run
				cmd.Env = append(cmd.Env, endless+"=1")
			}
			if c.why == "a run" || strings.Contains(c.until, "go-build") {
				cmd = process(t, home, args...)
			}
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
				require.Contains(t, string(page), "\n    rpcbench run "+sizes+" "+c.args+"\n",
					"as it was typed")
			}
		})
	}
}
