package lint_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLoopsHaveTheProcsOfTheirRow: package testing calls a benchmark once before it sets GOMAXPROCS for -cpu, and
// b.Loop does all of a row's work in that call. So each function with such a loop, and each that a page shows, calls
// stacktest.Start or stacktest.Procs. stacktest's own rows do so in row.benchmark.
func TestLoopsHaveTheProcsOfTheirRow(t *testing.T) {
	// without a list for -cpu: measure.sh sets GOMAXPROCS for the study, and timing's is a share of time
	except := re(`^(study/|stacktest/loop\.go|internal/measure/timing/timing_test\.go|internal/lint/)`)
	sets, loops := re(`\b(Start\(b,|Procs\(b\))`), 0
	check := func(where, function string) {
		if strings.Contains(function, "b.Loop()") {
			loops++
			require.Regexp(t, sets, function, "%s: before b.Loop call stacktest.Start or stacktest.Procs", where)
		}
	}
	t.Chdir("../..")
	require.NoError(t, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		name = filepath.ToSlash(name)
		code := path.Ext(name) == ".go"
		if err != nil || d.IsDir() || !code && !pages.MatchString(name) || except.MatchString(name) {
			return err
		}
		text, err := os.ReadFile(name)
		switch {
		case err != nil || !strings.Contains(string(text), "b.Loop()"):
			return err
		case !code:
			for _, block := range strings.Split(string(text), "```go\n")[1:] {
				block, _, _ = strings.Cut(block, "\n```")
				check(name, block)
			}
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, text, 0)
		if err == nil {
			for _, d := range file.Decls {
				if f, is := d.(*ast.FuncDecl); is {
					check(name+": "+f.Name.Name, string(text[files.Position(f.Pos()).Offset:files.Position(f.End()).Offset]))
				}
			}
		}
		return err
	}))
	require.GreaterOrEqual(t, loops, 5, "benchmarks and pages")
}
