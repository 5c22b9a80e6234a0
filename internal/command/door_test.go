package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/compare/builds"
	"github.com/rpcbench/rpcbench/internal/compare/versus"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/report"
)

// Why nothing can be linked is said as it is, in a line that names no folder.
func TestNothingToLink(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts go a dozen times")
	}
	clone, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	main := ours().Main
	// -mod=mod would require it
	foreign := "module example.com/x\n\ngo 1.26.0\n\nreplace github.com/rpcbench/rpcbench => " + clone + "\n"
	for _, test := range []struct{ why, dir, main, variable, value, want string }{
		{"no module", t.TempDir(), main, "", "", `^the working directory is in no Go module$`},
		{"another's module", "outsider", main, "GOFLAGS", "-mod=mod",
			`^the module of the working directory neither has nor needs ` + main + `: see `},
		{"a program made of files", clone, "command-line-arguments", "", "", `^this program was built of files: `},
		{"a vendor folder that is not there", clone, main, "GOFLAGS", "-mod=vendor", `^go: inconsistent vendoring in \.$`},
		{"flags that go does not know", clone, main, "GOFLAGS", "-nosuch", `^go: parsing \$GOFLAGS: unknown flag -nosuch$`},
		{"no home", clone, main, "HOME", "", `^[^\n]*GOMODCACHE[^\n]*$`},
		{"no go", clone, main, "PATH", t.TempDir(), `^there is no go command$`},
	} {
		t.Run(test.why, func(t *testing.T) {
			if test.dir == "outsider" {
				test.dir = t.TempDir()
				require.NoError(t, os.WriteFile(filepath.Join(test.dir, "go.mod"), []byte(foreign), 0o600))
			}
			t.Chdir(test.dir)
			t.Setenv("TMPDIR", t.TempDir())
			if test.variable == "HOME" {
				for _, name := range []string{"GOPATH", "GOMODCACHE", "GOCACHE", "XDG_CACHE_HOME"} {
					t.Setenv(name, "")
				}
			}
			if test.variable != "" {
				t.Setenv(test.variable, test.value)
			}
			_, err := builds.Open(t.Context(), test.main)
			require.Error(t, err)
			require.Regexp(t, test.want, err.Error())
			left, err := os.ReadDir(os.Getenv("TMPDIR"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// offline makes a folder the working directory of somebody who has no network.
func offline(t *testing.T, dir string) {
	t.Helper()
	for name, value := range map[string]string{"GOPROXY": "off", "GOSUMDB": "off", "GOFLAGS": "",
		"GIT_CONFIG_GLOBAL": os.DevNull} {
		t.Setenv(name, value)
	}
	t.Chdir(dir)
}

// commit commits all of the working directory's repository.
func commit(t *testing.T) {
	t.Helper()
	output(t, "git", "add", "-A", ":/")
	output(t, "git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "x")
}

// output is what a command says that succeeds.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.TrimSpace(string(out))
}

// A program of another module has every command for the stacks that its main function names, and no others: layouts are
// linked of her main package, and a revision is one of her repository, whose module lies in a folder of it here and is
// replaced by a relative path.
func TestOutsidersProgram(t *testing.T) {
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("it links a program")
	}
	temp, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	clone, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	dir := filepath.Join(temp, "repository", "bench")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../stacktest/testdata/outsider")))
	offline(t, dir)
	relative, err := filepath.Rel(dir, clone)
	require.NoError(t, err)
	output(t, "go", "mod", "edit", "-replace=github.com/rpcbench/rpcbench="+relative)
	output(t, "git", "init", "-q", "..")
	require.NoError(t, os.Rename("cmd", filepath.Join(temp, "cmd")))
	commit(t) // without a program
	require.NoError(t, os.Rename(filepath.Join(temp, "cmd"), "cmd"))
	const source = "netrpc.go"
	quick, err := os.ReadFile(source)
	require.NoError(t, err)
	slow := regexp.MustCompile(`(?m)^func \(s service\) CreateUser.*{$`).ReplaceAll(quick,
		[]byte("$0\ntime.Sleep(time.Millisecond)"))
	require.NotEqual(t, string(quick), string(slow))
	require.NoError(t, os.WriteFile(source, slow, 0o600))
	commit(t)
	require.NoError(t, os.WriteFile(source, quick, 0o600))
	commit(t)
	folder, err := builds.Open(t.Context(), "example.com/outsider/cmd/bench")
	require.NoError(t, err)
	defer func() { require.NoError(t, folder.Remove()) }()
	w, err := workload.Find(workload.Small)
	require.NoError(t, err)
	ns, bench := map[string]float64{}, "" // her program
	for build, ofHers := range map[string]bool{"": *long, "HEAD~1": true} {
		t.Run("linked "+build, func(t *testing.T) {
			if !ofHers {
				dir := before(t, planner)
				_, versions, err := folder.Link(t.Context(), build, 1)
				require.NoError(t, err)
				require.NotContains(t, strings.Join(versions, " "), "commit=")
				require.True(t, strings.Contains(read(t, filepath.Join(dir, "planned")), `path\texample.com/outsider/cmd/bench\n`))
				return
			}
			programs, versions, err := folder.Link(t.Context(), build, 1)
			require.NoError(t, err)
			spec := versus.Spec{Arms: []string{"netrpc", "netrpc"}, Workload: w, Slice: time.Millisecond, Blocks: 1}
			record, err := versus.Run(t.Context(), spec, programs[0])
			require.NoError(t, err)
			ns[build], bench = record.NsPerOp(0), programs[0].Path
			require.Equal(t, build != "", slices.Contains(versions, "commit="+output(t, "git", "rev-parse", "--short=12",
				"HEAD~1")), versions)
		})
	}
	require.GreaterOrEqual(t, ns["HEAD~1"], 1e6, "the stack of the revision before waits in its handler")

	var names []string
	for _, row := range regexp.MustCompile(`(?m)^(\S+) +(?:none|1\.1|2)  `).FindAllStringSubmatch(output(t, bench, "list"), -1) {
		names = append(names, row[1])
	}
	require.Equal(t, []string{"netrpc", "httpjson", "grpcprotobuf"}, names)

	if *long {
		output(t, bench, "run", "-thorough", "-workloads", "small", "-time", "3600ms", "-out", "three", "netrpc")
		three, err := report.Read("three")
		require.NoError(t, err)
		require.Equal(t, "httpjson", three.Base)
		require.Equal(t, "netrpc", three.Answers[0].Stack)
		require.Equal(t, 8, three.Plan.Layouts, three.Notes)
		require.NotContains(t, strings.Join(three.Notes, " "), "not of its source")
	}

	for _, test := range []struct {
		why, want string
		args      []string
	}{
		{"a revision without the program", "rpcbench: HEAD~2: " + output(t, "git", "rev-parse", "--short=7", "HEAD~2") +
			" has no example.com/outsider/cmd/bench", []string{"run", "-out", "four", "netrpc@HEAD~2", "netrpc"}},
		{"a stack of others", `rpcbench: unknown stack "rawtcp": rpcbench list names them`, []string{"run", "-out", "four",
			"rawtcp"}},
	} {
		out, err := exec.CommandContext(t.Context(), bench, test.args...).CombinedOutput()
		require.Error(t, err, test.why)
		require.Equal(t, test.want+"\n", progressLine.ReplaceAllString(string(out), ""), test.why)
	}
	require.Empty(t, output(t, "git", "status", "--porcelain", "--", "go.mod", "go.sum", "netrpc.go", "cmd"),
		"the tree is only read")
}

// before makes a go command the one that is found.
func before(t *testing.T, script string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, "go"), script)
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return dir
}

// The command is a tool of somebody's module, and its layouts are linked there. Unless it is told to, go does all for
// that but compile and link.
func TestToolOfAnotherModule(t *testing.T) {
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("it loads the command, or builds it")
	}
	clone, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	offline(t, t.TempDir())
	output(t, "go", "mod", "init", "example.com/mine")
	output(t, "go", "mod", "edit", "-replace=github.com/rpcbench/rpcbench="+clone)
	output(t, "go", "get", "-tool", ours().Main)
	folder, err := builds.Open(t.Context(), ours().Main)
	require.NoError(t, err)
	defer func() { require.NoError(t, folder.Remove()) }()
	dir := ""
	if !*long {
		dir = before(t, planner)
	}
	programs, _, err := folder.Link(t.Context(), "", 1)
	require.NoError(t, err)
	if *long {
		require.Contains(t, output(t, programs[0].Path, "list"), "\ngrpcprotobuf ")
		return
	}
	planned := read(t, filepath.Join(dir, "planned")) // thousands of lines
	for _, part := range []string{`path\t` + ours().Main + `\n`, "packagefile github.com/rpcbench/rpcbench/stacks=",
		" -buildmode=exe ", " -randlayout=1 "} {
		require.True(t, strings.Contains(planned, part), part)
	}
}

// taught makes the working directory a repository with the stack that docs/own-stack.md teaches and its command, as the
// page has them. origin/main is its first commit.
func taught(t *testing.T) {
	t.Helper()
	clone, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	page, stack := read(t, "../../docs/own-stack.md"), read(t, "../../example_ownstack_test.go")
	main := regexp.MustCompile("(?ms)^```go\n(package main\n.*?)^```").FindStringSubmatch(page)[1]
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../stacktest/testdata/outsider")))
	offline(t, dir)
	for _, name := range []string{"netrpc.go", "netrpc_test.go"} {
		require.NoError(t, os.Remove(name))
	}
	output(t, "go", "mod", "edit", "-module=example.com/mystack", "-replace=github.com/rpcbench/rpcbench="+clone)
	write(t, "mystack.go", strings.Replace(stack, "package rpcbench_test", "package mystack", 1)+
		"\nfunc New() rpcbench.Stack { return newStack() }\n")
	write(t, "cmd/bench/main.go", main)
	output(t, "git", "init", "-q")
	commit(t)
	output(t, "git", "update-ref", "refs/remotes/origin/main", "HEAD")
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(text), 0o700))
}

// The workflow of docs/gate.md, as it stands there, gates the stack that docs/own-stack.md teaches. An unchanged
// commit passes, and one allocation more does not. What is not decided is a warning.
func TestWorkflowOfTheTaughtStack(t *testing.T) {
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("it links two programs")
	}
	page := read(t, "../../docs/gate.md")
	workflow := regexp.MustCompile("(?ms)^```yaml\n(name: gate.*?)^```").FindString(page)
	steps := regexp.MustCompile(`(?m)^ {6}- run: (?:\|\n((?: {10}.*\n)+)|(.*))`).FindAllStringSubmatch(workflow, -1)
	taught(t)
	before(t, relinker)
	run := func(of string) (status int, said string) {
		i := slices.IndexFunc(steps, func(step []string) bool { return strings.Contains(step[0], of) })
		require.GreaterOrEqual(t, i, 0, "%s in %s", of, workflow)
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", steps[i][1]+steps[i][2])
		cmd.Env = append(os.Environ(), "BASE=mystack@origin/main", "GITHUB_STEP_SUMMARY=")
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	write(t, "README", "of a pull request\n")
	commit(t)
	status, said := run("go build")
	require.Zero(t, status, said)
	status, said = run("count -max")
	require.Zero(t, status, said)
	require.Equal(t, 4, strings.Count(said, "gate: "), said)

	write(t, "mystack.go", strings.Replace(read(t, "mystack.go"), "rpcbench.AnswerUser(user),", "answer(user),", 1)+
		"\nvar more *[64]byte\n\nfunc answer(u *rpcbench.User) *rpcbench.Response {\n\tmore = new([64]byte)\n"+
		"\treturn rpcbench.AnswerUser(u)\n}\n")
	commit(t)
	status, said = run("count -max")
	require.Equal(t, 3, status, said)
	require.Contains(t, said, "above the gate: a small call, one core, mystack@HEAD: allocations ")

	require.NoError(t, os.Mkdir("times", 0o700))
	status, said = run("-out times")
	require.Equal(t, 2, status, said)
	require.Equal(t, "rpcbench: run: -out times: it is there already: name another\n", said, "the last of the checks")
	for ended, want := range map[int]int{0: 0, 1: 1, 3: 3, 4: 0} {
		require.NoError(t, os.Remove("bench"))
		write(t, "bench", fmt.Sprintf("#!/bin/sh\nexit %d\n", ended))
		status, said = run("-out times")
		require.Equal(t, want, status)
		require.Equal(t, ended == 4, strings.HasPrefix(said, "::warning::"), said)
	}
}
