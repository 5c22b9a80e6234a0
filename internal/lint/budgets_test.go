package lint_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const mostFields, mostLines = 15, 60 // of a struct, and of a function

// larger are the structs and functions that are over this budget, and how large each may be. Nothing is added here, and
// no number grows.
var larger = map[string]int{
	"fields of main.flex":         19,
	"fields of rpcbench.Traits":   16,
	"fields of rpcbench.Workload": 17,
}

// TestBudgets: no struct has more than 15 fields and no function more than 60 lines, but for those that are listed. It
// prints them with -v. Test files are exempt.
func TestBudgets(t *testing.T) {
	t.Chdir("../..")
	found := map[string]int{}
	require.NoError(t, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch name = filepath.ToSlash(name); {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(name, ".") && name != "."):
			return fs.SkipDir
		case path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go"):
			for what, n := range overBudget(t, name, read(t, name)) {
				found[what] = max(found[what], n)
			}
		}
		return nil
	}))
	for _, what := range slices.Sorted(maps.Keys(found)) {
		t.Logf("%d %s", found[what], what)
		require.LessOrEqual(t, found[what], larger[what], "%s: a struct has %d at most, and a function %d", what, mostFields,
			mostLines)
	}
	for what := range larger {
		require.Contains(t, found, what, "it is within the budget: take it off the list")
	}
}

// overBudget has the sizes of a file's structs and functions that are over the budget, by what they are.
func overBudget(t *testing.T, name, src string) map[string]int {
	fset, found := token.NewFileSet(), map[string]int{}
	file, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	if ast.IsGenerated(file) {
		return found
	}
	within := "" // the function, type or variable in which a node is
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			within = n.Name.Name
			if n.Recv != nil {
				within = strings.TrimPrefix(types.ExprString(n.Recv.List[0].Type), "*") + "." + within
			}
			lines := fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1
			if lines > mostLines {
				found["lines of "+file.Name.Name+"."+within] = lines
			}
		case *ast.TypeSpec:
			within = n.Name.Name
		case *ast.ValueSpec:
			within = n.Names[0].Name
		case *ast.StructType:
			if fields := n.Fields.NumFields(); fields > mostFields {
				found["fields of "+file.Name.Name+"."+within] = fields
			}
		}
		return true
	})
	return found
}
