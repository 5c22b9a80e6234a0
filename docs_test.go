package rpcbench_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// declared collects the names of all test and benchmark functions of the module.
func declared(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				names[f.Name.Name] = true
			}
		}
		return nil
	}))
	return names
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// TestPropertiesNameTheirTests: each property that the package comment lists names tests that exist.
func TestPropertiesNameTheirTests(t *testing.T) {
	names := declared(t)
	properties := strings.Split(read(t, "doc.go"), "//   - ")[1:]
	require.NotEmpty(t, properties)
	for _, p := range properties {
		tests := regexp.MustCompile(`Test\w+`).FindAllString(p, -1)
		require.NotEmpty(t, tests, "no test holds the property: %s", p)
		for _, name := range tests {
			require.True(t, names[name], "%s does not exist", name)
		}
	}
}

// TestREADME: files it links exist, patterns it gives run exactly the benchmark they name, and the results it shows stand
// in the raw file it names.
func TestREADME(t *testing.T) {
	readme := read(t, "README.md")
	for _, link := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(readme, -1) {
		require.FileExists(t, filepath.Join(".", link[1]))
	}
	names := declared(t)
	patterns := regexp.MustCompile(`-bench '([^']*)'`).FindAllStringSubmatch(readme, -1)
	require.NotEmpty(t, patterns)
	for _, p := range patterns {
		name, ok := strings.CutPrefix(strings.TrimSuffix(p[1], "$"), "^")
		require.True(t, ok && strings.HasSuffix(p[1], "$"), "pattern %s is not anchored: it may run two benchmarks into one profile", p[1])
		require.True(t, names[name], "%s does not exist", name)
	}
	blocks := regexp.MustCompile("(?s)<!-- from (\\S+) -->\n```text\n(.*?)```").FindAllStringSubmatch(readme, -1)
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		raw := read(t, b[1])
		for _, line := range strings.Split(strings.TrimSpace(b[2]), "\n") {
			require.Contains(t, raw, line, "README shows a line that is not in %s", b[1])
		}
	}
}
