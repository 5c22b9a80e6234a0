package builds

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var long = flag.Bool("long", false, "build the command with the oldest versions of libraries, and the ones before")

const command = "github.com/rpcbench/rpcbench/cmd/rpcbench"

// TestOldest: the program compiles with each version that oldest names, and not with the one before.
func TestOldest(t *testing.T) {
	if !*long {
		t.Skip("builds the command a dozen times: -long")
	}
	t.Chdir(filepath.Join("..", "..", ".."))
	folder, err := Open(t.Context(), command)
	require.NoError(t, err)
	defer func() { require.NoError(t, folder.Remove()) }()
	for path, version := range oldest {
		t.Run(path, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-versions", path).Output()
			if err != nil {
				t.Skip("go can't list the versions: ", err)
			}
			_, _, err = folder.Link(t.Context(), path+"@"+version, 0)
			require.NoError(t, err)
			before := func(v string) bool { return strings.Contains(v, "-") } // a release
			released := slices.DeleteFunc(strings.Fields(string(out))[1:], before)
			if i := slices.Index(released, version); i > 0 {
				_, _, err = folder.Link(t.Context(), path+"@"+released[i-1], 0)
				require.ErrorContains(t, err, path+"@"+released[i-1]+": rpcbench needs "+version+" or newer: ")
			}
		})
	}
}

// TestOldestIsDocumented: of the library that docs/running.md has for an example.
func TestOldestIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/running.md")
	require.NoError(t, err)
	require.Regexp(t, `grpc-go from `+regexp.QuoteMeta(oldest["google.golang.org/grpc"])+`\b`, string(page))
}

// TestTooOld: an error says which version is needed, unless it has another cause.
func TestTooOld(t *testing.T) {
	const needs = "rpcbench needs v1.74.2 or newer: "
	for exact, want := range map[string]string{
		"google.golang.org/grpc@v1.9.3":                              needs,
		"google.golang.org/grpc@v1.74.1":                             needs,
		"google.golang.org/grpc@v1.74.0-20250101000000-0123456789ab": needs,
		"google.golang.org/grpc@v1.74.2":                             "",
		"google.golang.org/grpc@v1.100.0":                            "",
		"google.golang.org/grpc@v2.0.0":                              "",
		"example.com/m@v0.0.1":                                       "",
		"":                                                           "",
	} {
		require.EqualError(t, tooOld(exact, os.ErrInvalid), want+os.ErrInvalid.Error(), exact)
	}
}
