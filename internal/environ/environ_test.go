package environ

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommit(t *testing.T) {
	stamp := func(modified string) map[string]string {
		return map[string]string{"vcs.modified": modified, "vcs.revision": "0123456789abcdef0123456789abcdef01234567"}
	}
	for why, test := range map[string]struct {
		settings          map[string]string
		released, program string
		want              string
	}{
		"a clean tree":        {stamp("false"), "", "", "0123456789ab"},
		"changes":             {stamp("true"), "", "", "0123456789ab+changes"},
		"a test":              {nil, "", "/tmp/go-build12/b001/environ.test", head(".")},
		"go run":              {nil, "", `C:\Temp\go-build3\b001\exe\x.exe`, head(".")},
		"go run, once more":   {nil, "", "/home/x/.cache/go-build/63/" + strings.Repeat("5f", 32) + "-d/x", head(".")},
		"a build without one": {nil, "", "/home/x/.cache/go-build/rpcbench", ""},
		"a release":           {nil, "example.com/m@v1.2.3", "/tmp/go-build12/b001/exe/rpcbench", ""},
	} {
		require.Equal(t, test.want, commit(test.settings, test.released, test.program), why)
	}
	t.Chdir(t.TempDir()) // of nobody's module, as another one would be
	require.Empty(t, commit(nil, "", "/tmp/go-build12/b001/exe/rpcbench"), "a fresh program of another folder")
}

// A work tree has changes if any file of it is another than in its commit, or is new, whether git was told of it or
// not.
func TestChanges(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	for _, name := range []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"} {
		t.Setenv(name, os.DevNull)
	}
	const changed = "+changes"
	for _, c := range []struct {
		why, want string
		does      []string // of files: "write NAME", or else arguments of git
	}{
		{"nothing", "", nil},
		{"an ignored file", "", []string{"write ignored"}},
		{"a new file", changed, []string{"write new"}},
		{"a new file, which the user's git does not show", changed,
			[]string{"config status.showUntrackedFiles no", "write new"}},
		{"a new file in a folder below", changed, []string{"write below/new"}},
		{"a new file that is staged", changed, []string{"write new", "add new"}},
		{"another text", changed, []string{"write kept"}},
		{"another text, staged", changed, []string{"write kept", "add kept"}},
		{"a file that has gone", changed, []string{"rm -q kept"}},
		{"a new name", changed, []string{"mv kept other"}},
		{"a commit", "", []string{"write new", "add new", "commit -qm new"}},
	} {
		dir := t.TempDir()
		for _, does := range append([]string{"init -q", "write kept", "write below/kept", "exclude", "add .",
			"commit -qm kept"}, c.does...) {
			inTree(t, dir, does)
		}
		commit := inTree(t, dir, "rev-parse HEAD")
		require.Len(t, commit, 40)
		for _, at := range []string{dir, filepath.Join(dir, "below")} {
			require.Equal(t, commit[:12]+c.want, head(at), "the commit where the change is %s, asked for in %s", c.why, at)
		}
	}
}

// inTree does something in a work tree, and returns what git says.
func inTree(t *testing.T, dir, does string) string {
	t.Helper()
	args := strings.Fields(does)
	switch args[0] {
	case "exclude":
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("ignored\n"), 0o600))
		return ""
	case "write":
		path := filepath.Join(dir, args[1])
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		was, _ := os.ReadFile(path)
		require.NoError(t, os.WriteFile(path, append(was, "text\n"...), 0o600))
		return ""
	}
	who := []string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b.c"}
	cmd := exec.CommandContext(t.Context(), "git", append(who, args...)...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %s: %s", does, out)
	return strings.TrimSpace(string(out))
}

func TestReleased(t *testing.T) {
	stamp := []debug.BuildSetting{{Key: "-compiler", Value: "gc"}, {Key: "vcs.revision", Value: "0123456789abcdef"}}
	for why, test := range map[string]struct {
		version  string
		settings []debug.BuildSetting
		want     string
	}{
		"installed by its version":           {"v1.2.3", stamp[:1], "example.com/m@v1.2.3"},
		"a test":                             {"", nil, ""},
		"a build without a stamp":            {"(devel)", stamp[:1], ""},
		"a work tree, which Go calls v1.2.3": {"v1.2.3+dirty", stamp, ""},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Path: "example.com/m", Version: test.version}, Settings: test.settings}
		require.Equal(t, test.want, Released(info), why)
	}
}

func TestFlags(t *testing.T) {
	for why, test := range map[string]struct {
		settings map[string]string
		want     string
	}{
		"a plain build":        {map[string]string{"-compiler": "gc", "GOAMD64": "v1", "-ldflags": "-s"}, ""},
		"the race detector":    {map[string]string{"-race": "true"}, "-race"},
		"coverage":             {map[string]string{"-cover": "true"}, "-cover"},
		"no optimization":      {map[string]string{"-gcflags": "-N -l"}, "-gcflags=-N -l"},
		"guided by a profile":  {map[string]string{"-pgo": "/tmp/default.pgo"}, "-pgo=/tmp/default.pgo"},
		"several":              {map[string]string{"-gcflags": "-N", "-race": "true"}, "-race -gcflags=-N"},
		"what is switched off": {map[string]string{"-race": "false", "-gcflags": ""}, ""},
	} {
		require.Equal(t, test.want, flags(test.settings), why)
	}
}

// A header has the settings that change what is measured, and the machine's cores, however many are used.
// The module with the longest path has a package, as one of another major version lies below the first's path.
func TestWhoseLibraries(t *testing.T) {
	modules := []string{"connectrpc.com/connect@v1.21.1", "connectrpc.com/connect/v2@v2.0.2",
		"google.golang.org/grpc@v1.85.0"}
	for _, c := range []struct{ packages, want []string }{
		{[]string{"connectrpc.com/connect"}, modules[:1]},
		{[]string{"connectrpc.com/connect/v2", "net/http"}, modules[1:2]},
		{[]string{"connectrpc.com/connect/v2/connecthttp", "google.golang.org/grpc/mem"}, modules[1:]},
		{[]string{"connectrpc.com/connect/v2", "connectrpc.com/connect"}, modules[:2]},
		{[]string{"connectrpc.com/connection", "net/http"}, []string{}},
	} {
		require.Equal(t, c.want, have(slices.Clone(modules), c.packages), c.packages)
	}
}

func TestMachine(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + 1))
	want := []string{"go=" + runtime.Version(), fmt.Sprint("cores=", runtime.NumCPU()), "GODEBUG=a=1,b=2"}
	t.Setenv("GODEBUG", "a=1 b=2")
	for _, name := range []string{"GOGC", "GOMEMLIMIT", "GOAMD64", "GOFLAGS"} {
		t.Setenv(name, "v1")
		want = append(want, name+"=v1")
	}
	require.Subset(t, Machine(), want)
}

func TestLimits(t *testing.T) {
	for why, test := range map[string]struct {
		cores, procs int
		quota        float64
		want         []string
	}{
		"none":                                  {4, 4, 0, nil},
		"half a CPU, for which Go takes two":    {4, 2, 0.5, []string{"gomaxprocs=2", "cpu-quota=0.5"}},
		"a third of a CPU on a machine of two":  {2, 2, 1.0 / 3, []string{"gomaxprocs=2", "cpu-quota=0.333"}},
		"a program that Go doesn't tell of one": {8, 8, 2, []string{"gomaxprocs=8", "cpu-quota=2"}},
		"a quota that can't be read":            {8, 3, 0, []string{"gomaxprocs=3"}},
	} {
		require.Equal(t, test.want, limits(test.cores, test.procs, test.quota), why)
	}
}

// A header has its versions also where the module cache lacks what go list would fetch.
func TestModulesOffline(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	require.Contains(t, strings.Join(modules(), " "), "github.com/stretchr/testify@v")
}

// An outsider's header names the rpcbench that measured, also when a replace directive put it there.
func TestVersionOfAReplacement(t *testing.T) {
	const here = "github.com/rpcbench/rpcbench"
	for why, test := range map[string]struct {
		module  string
		replace *debug.Module
		want    string
	}{
		"by nothing":        {here, nil, "v1.2.3"},
		"by another module": {here, &debug.Module{Path: "example.com/fork", Version: "v1.2.4"}, "example.com/fork@v1.2.4"},
		"by a work tree":    {here, &debug.Module{Path: "../..", Version: "(devel)"}, head(".")},
		"by a bare folder":  {"example.com/m", &debug.Module{Path: "../m"}, "replaced"},
	} {
		m := &debug.Module{Path: test.module, Version: "v1.2.3", Replace: test.replace}
		require.Equal(t, test.want, version(m), why)
	}
	require.Regexp(t, `^[0-9a-f]{12}(\+changes)?$`, head("."))
}
