package command

import (
	"cmp"
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

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/builds"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/versus"
	"github.com/rpcbench/rpcbench/internal/workload"
	"github.com/rpcbench/rpcbench/stacks/httpxml"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

func TestWhatIsComparedUnlessNamed(t *testing.T) {
	for _, test := range []struct {
		why         string
		stacks      []rpcbench.Stack
		base        string
		contestants []string
	}{
		{"both are there", []rpcbench.Stack{rawtcp.New(), grpcprotobuf.New(), httpjson.New()}, "httpjson",
			[]string{"grpcprotobuf"}},
		{"no JSON", []rpcbench.Stack{rawtcp.New(), grpcprotobuf.New()}, "rawtcp", []string{"grpcprotobuf"}},
		{"no gRPC", []rpcbench.Stack{rawtcp.New(), httpjson.New(), httpxml.New()}, "httpjson", []string{"rawtcp", "httpxml"}},
		{"neither", []rpcbench.Stack{rawtcp.New(), httpxml.New()}, "rawtcp", []string{"httpxml"}},
	} {
		c := comparison{program: program{stacks: test.stacks}}
		require.NoError(t, c.names(nil), test.why)
		require.Equal(t, test.base, c.base, test.why)
		require.Equal(t, test.contestants, c.contestants, test.why)
	}
}

// Why nothing can be linked is said as it is, in a line that names no folder.
func TestNothingToLink(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts go a dozen times")
	}
	clone, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	main := ours().main
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
		t.Skip("it links a dozen programs")
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
	var ns []float64
	var bench string // her program
	for _, build := range []string{"", "HEAD~1"} {
		programs, versions, err := folder.Link(t.Context(), build, 1)
		require.NoError(t, err)
		spec := versus.Spec{Arms: []string{"netrpc", "netrpc"}, Workload: w, Slice: time.Millisecond, Blocks: 5}
		if build != "" {
			spec.Blocks = 1 // begins with a warm-up, which is slow
		}
		record, err := versus.Run(t.Context(), spec, programs[0])
		require.NoError(t, err)
		ns, bench = append(ns, record.NsPerOp(0)), cmp.Or(bench, programs[0].Path)
		require.Equal(t, build != "", slices.Contains(versions, "commit="+output(t, "git", "rev-parse", "--short=12",
			"HEAD~1")), versions)
	}
	require.GreaterOrEqual(t, ns[1], 1e6, "the stack of the revision before waits in its handler")

	var names []string
	for _, row := range regexp.MustCompile(`(?m)^(\S+) +(?:none|1\.1|2)  `).FindAllStringSubmatch(output(t, bench, "list"), -1) {
		names = append(names, row[1])
	}
	require.Equal(t, []string{"netrpc", "httpjson", "grpcprotobuf"}, names)

	if *long {
		output(t, bench, "run", "-workloads", "small", "-time", "3600ms", "-out", "three", "netrpc")
		three, err := report.Read("three")
		require.NoError(t, err)
		require.Equal(t, "httpjson", three.Base)
		require.Equal(t, "netrpc", three.Answers[0].Stack)
		require.Equal(t, 8, three.Layouts, three.Notes)
		require.NotContains(t, strings.Join(three.Notes, " "), "not of its source")
	}

	for _, test := range []struct {
		why, want string
		args      []string
	}{
		{"a revision without the program", "rpcbench: HEAD~2: " + output(t, "git", "rev-parse", "--short=7", "HEAD~2") +
			" has no example.com/outsider/cmd/bench", []string{"run", "-quick", "-out", "four", "netrpc@HEAD~2", "netrpc"}},
		{"a stack of others", `rpcbench: unknown stack "rawtcp": rpcbench list names them`, []string{"run", "-out", "four",
			"rawtcp"}},
	} {
		out, err := exec.CommandContext(t.Context(), bench, test.args...).CombinedOutput()
		require.Error(t, err, test.why)
		require.Equal(t, test.want+"\n", string(out), test.why)
	}
	require.Empty(t, output(t, "git", "status", "--porcelain", "--", "go.mod", "go.sum", "netrpc.go", "cmd"),
		"the tree is only read")
}

// The command is a tool of somebody's module, and its layouts are linked there.
func TestToolOfAnotherModule(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the command")
	}
	clone, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	offline(t, t.TempDir())
	output(t, "go", "mod", "init", "example.com/mine")
	output(t, "go", "mod", "edit", "-replace=github.com/rpcbench/rpcbench="+clone)
	output(t, "go", "get", "-tool", ours().main)
	folder, err := builds.Open(t.Context(), ours().main)
	require.NoError(t, err)
	defer func() { require.NoError(t, folder.Remove()) }()
	programs, _, err := folder.Link(t.Context(), "", 1)
	require.NoError(t, err)
	require.Contains(t, output(t, programs[0].Path, "list"), "\ngrpcprotobuf ")
}
