package lint_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the exported surface anew: look at it, and tell CHANGELOG")

// TestExportedSurface: what docs/compatibility.md promises to importers is as testdata/exported.txt has it, so that a
// change is seen in review.
func TestExportedSurface(t *testing.T) {
	const golden = "internal/lint/testdata/exported.txt"
	t.Chdir("../..")
	folders := []string{".", "cli", "grpcprotobuf", "httpjson", "httpjsoniter", "stacks", "stacktest"}
	below, err := filepath.Glob("stacks/*")
	require.NoError(t, err)
	for _, folder := range below {
		if files, _ := filepath.Glob(filepath.Join(folder, "*.go")); len(files) > 0 && filepath.Base(folder) != "more" {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	var all strings.Builder
	for _, folder := range slices.Compact(folders) {
		all.WriteString("package " + filepath.ToSlash(folder) + "\n" + exported(t, folder) + "\n")
	}
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(all.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), all.String(), "if importers are to see this, tell CHANGELOG how to replace what was, "+
		"and go test ./internal/lint -run TestExportedSurface -update")
}

// exported has the declarations of a folder that importers see, without their comments and bodies.
func exported(t *testing.T, folder string) string {
	t.Helper()
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	var files []*ast.File
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			files = append(files, file)
		}
	}
	pkg, err := doc.NewFromFiles(fset, files, "./"+folder)
	require.NoError(t, err)
	var lines strings.Builder
	add := func(decl ast.Decl) {
		if f, is := decl.(*ast.FuncDecl); is {
			f.Body, f.Doc = nil, nil
		}
		var text bytes.Buffer
		require.NoError(t, format.Node(&text, fset, decl))
		lines.WriteString(text.String() + "\n")
	}
	values := func(all []*doc.Value) {
		for _, v := range all {
			add(v.Decl)
		}
	}
	funcs := func(all []*doc.Func) {
		for _, f := range all {
			add(f.Decl)
		}
	}
	values(pkg.Consts)
	values(pkg.Vars)
	funcs(pkg.Funcs)
	for _, of := range pkg.Types {
		add(of.Decl)
		values(of.Consts)
		values(of.Vars)
		funcs(of.Funcs)
		funcs(of.Methods)
	}
	return lines.String()
}
