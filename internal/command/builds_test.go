package command

import (
	"archive/zip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/builds"
	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/versus"
)

// measure is a command that speaks as ours does and whose calls take what it is told to: so a ratio is known, and
// linking is quick.
const measure = `package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"example.com/dependency"
)

func main() {
	fmt.Println(cmp.Or(os.Getenv("SPEAKS"), "3"))
	in := bufio.NewScanner(os.Stdin)
	if os.Getenv("RPCBENCH_CHILD") != "measure" || !in.Scan() {
		panic("this is no child")
	}
	var spec struct {
		Arms    []string
		Counted bool
	}
	if err := json.Unmarshal(in.Bytes(), &spec); err != nil {
		panic(err)
	}
	takes := TAKES + dependency.Takes
	fmt.Sscan(os.Getenv("TAKES"), &takes)
	var slices []string
	for range spec.Arms {
		slices = append(slices, fmt.Sprintf("[0,1,%d,%d,0,0]", takes, takes))
	}
	for in.Scan() {
		if spec.Counted {
			fmt.Printf("{\"allocs\":%d}\n", takes)
			continue
		}
		fmt.Printf("{\"arms\":[\"%s\"],\"blocks\":[[%s]]}\n", strings.Join(spec.Arms, "\",\""), strings.Join(slices, ","))
	}
}
`

// clone is a repository of our module's name with five commits, and the working directory. Its Go has a proxy of its
// own, with two versions of the only dependency and one of a module that nothing needs.
func clone(t *testing.T) {
	t.Helper()
	proxy, dir := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("GOPROXY", "file://"+filepath.ToSlash(proxy))
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw")
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	write := func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for _, m := range []struct{ path, version, takes string }{
		{"example.com/dependency", "v1.0.0", "0"}, {"example.com/dependency", "v1.1.0", "500"},
		{"example.com/other", "v1.0.0", "0"},
	} {
		base, mod := filepath.Join(proxy, m.path, "@v", m.version), "module "+m.path+"\n"
		write(base+".mod", mod)
		write(base+".info", fmt.Sprintf(`{"Version":%q}`, m.version))
		file, err := os.Create(base + ".zip")
		require.NoError(t, err)
		archive := zip.NewWriter(file)
		for name, text := range map[string]string{"go.mod": mod, "m.go": "package dependency\n\nconst Takes = " + m.takes +
			"\n"} {
			w, err := archive.Create(m.path + "@" + m.version + "/" + name)
			require.NoError(t, err)
			_, err = w.Write([]byte(text))
			require.NoError(t, err)
		}
		require.NoError(t, archive.Close())
		require.NoError(t, file.Close())
	}
	t.Chdir(dir)
	output(t, "git", "init", "-q")
	write("go.mod", "module github.com/rpcbench/rpcbench\n\ngo 1.26.0\n\nrequire example.com/dependency v1.0.0\n")
	write("go.sum", "")
	commit(t)
	main := "cmd/rpcbench/main.go"
	write(main, "package main\n\nimport _ \"example.com/dependency\"\n\nfunc main() {}\n")
	output(t, "go", "mod", "tidy")
	commit(t)
	for _, takes := range []string{"1000", "nonsense", "1030"} {
		write(main, strings.Replace(measure, "TAKES", takes, 1))
		commit(t)
	}
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

// nothingLeft demands that the temporary folder is empty and the clone unchanged.
func nothingLeft(t *testing.T) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "rpcbench-*"))
	require.NoError(t, err)
	require.Empty(t, left)
	require.Empty(t, output(t, "git", "status", "--porcelain"))
	require.NotContains(t, output(t, "git", "worktree", "list"), "\n")
}

func TestBuilds(t *testing.T) {
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("it links programs")
	}
	clone(t)
	for _, test := range []struct {
		why, args, stack string
		ratio            float64
		verdict          versus.Verdict
		note             string
	}{
		{"a revision and the tree", "-quick httpjson@HEAD~2 httpjson", "httpjson", 1.03, versus.Slower,
			"linked HEAD~2: commit=" + output(t, "git", "rev-parse", "--short=12", "HEAD~2")},
		{"the tree and a revision", "-quick -base httpjson httpjson@HEAD~2", "httpjson@HEAD~2", 1 / 1.03, versus.Faster, ""},
		{"a release of Go", "-quick httpjson@" + runtime.Version() + " httpjson", "httpjson", 1, versus.Equal, ""},
		{"the environment", "-quick httpjson@TAKES=2060 httpjson", "httpjson", 0.5, versus.Faster, ""},
		{"what a module's version does", "-quick httpjson@example.com/dependency@v1.1.0 httpjson", "httpjson", 1.03 / 1.53,
			versus.Faster, "linked example.com/dependency@v1.1.0: "},
		{"two stacks of one build", "-quick httpjson@HEAD~2 httpxml@HEAD~2", "httpxml@HEAD~2", 1, versus.Equal, ""},
	} {
		t.Run(test.why, func(t *testing.T) {
			if *long { // with layouts
				test.args = strings.Replace(test.args, "-quick", "-processes 6 -time 4s", 1)
			}
			out := filepath.Join(t.TempDir(), "out")
			_, stderr, err := typed(t, append([]string{"run", "-workloads", "small", "-out", out, "-seed", "3"},
				strings.Fields(test.args)...)...)
			require.NoError(t, err)
			require.Empty(t, stderr)
			s, err := report.Read(out)
			require.NoError(t, err)
			require.Equal(t, test.stack, s.Answers[0].Stack)
			require.InDelta(t, test.ratio, s.Answers[0].Ratio, 1e-4)
			require.Equal(t, test.verdict, s.Answers[0].Verdict)
			counted := s.Answers[0].Facts.Allocs / s.Answers[0].BaseFacts.Allocs
			require.InDelta(t, test.ratio, counted, 1e-4, "each build counts its own")
			require.Contains(t, strings.Join(s.Notes, "\n"), test.note)
			nothingLeft(t)
		})
	}
	t.Run("links of one source hold the same code in another order", func(t *testing.T) {
		folder, err := builds.Open(t.Context(), ours().main)
		require.NoError(t, err)
		programs, _, err := folder.Link(t.Context(), "", 0, 1, 2)
		require.NoError(t, err)
		seen := map[string]bool{}
		for i, p := range programs {
			require.Equal(t, i > 0, p.Layout > 0)
			text, err := os.ReadFile(p.Path)
			require.NoError(t, err)
			require.False(t, seen[string(text)], "layout %d is that of another", i)
			seen[string(text)] = true
		}
		require.NoError(t, folder.Remove())
		nothingLeft(t)
	})
}

func TestBuildsThatCannotBeMade(t *testing.T) {
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("it links programs")
	}
	clone(t)
	for _, test := range []struct{ why, build, want string }{
		{"no such revision", "HEAD~50", "this is no git revision, no Go release, no module@version and no KEY=VALUE"},
		{"an option in place of a revision", "--all", "this is no git revision"},
		{"a revision whose command does not measure", "HEAD~3",
			"its process names no protocol, and this program speaks 3: it is too old, or does not call cli.Main"},
		{"a build of another protocol", "SPEAKS=7",
			"its process speaks protocol 7, and this program 3: compare builds of one protocol"},
		{"a revision without the command", "HEAD~4", "has no github.com/rpcbench/rpcbench/cmd/rpcbench"},
		{"a revision that does not compile", "HEAD~1", "undefined: nonsense"},
		{"no such release of Go", "go1.99.99", "go1.99.99"},
		{"no such version", "example.com/dependency@v9.9.9", "v9.9.9"},
		{"no such module", "example.com/none@v1.0.0", "example.com/none"},
		{"a module that nothing needs", "example.com/other@v1.0.0",
			"example.com/other@v1.0.0 is not in what is measured, which has go="},
		{"no such experiment", "GOEXPERIMENT=wishful", "unknown GOEXPERIMENT wishful"},
	} {
		t.Run(test.why, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			stdout, _, err := typed(t, "run", "-out", out, "httpjson@"+test.build, "httpjson")
			require.NoDirExists(t, out)
			require.ErrorContains(t, err, "rpcbench: "+test.build+": ")
			require.ErrorContains(t, err, test.want)
			require.LessOrEqual(t, strings.Count(err.Error(), "\n"), 3)
			require.Empty(t, stdout)
			nothingLeft(t)
		})
	}
	t.Run("elsewhere", func(t *testing.T) {
		t.Chdir(t.TempDir())
		_, _, err := typed(t, "run", "-out", filepath.Join(t.TempDir(), "out"), "httpjson@HEAD", "httpjson")
		require.EqualError(t, err, "rpcbench: no build can be made: the working directory is in no Go module")
		left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "rpcbench-*"))
		require.NoError(t, err)
		require.Empty(t, left)
	})
	t.Run("without a git command", func(t *testing.T) {
		goTool, err := exec.LookPath("go")
		require.NoError(t, err)
		t.Setenv("PATH", t.TempDir())
		require.NoError(t, os.Symlink(goTool, filepath.Join(os.Getenv("PATH"), "go")))
		_, _, err = typed(t, "run", "-out", filepath.Join(t.TempDir(), "out"), "httpjson@HEAD", "httpjson")
		require.EqualError(t, err, "rpcbench: HEAD: there is no git command")
	})
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		c := comparison{program: ours(), base: "httpjson@HEAD", contestants: []string{"httpjson"}, layouts: 8}
		_, err := c.link(ctx, func(string, time.Duration, time.Duration) {})
		require.EqualError(t, err, "rpcbench: interrupted")
		nothingLeft(t)
	})
}
