package lint_test

import (
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/suite/allocproof"
	"github.com/rpcbench/rpcbench/stacks"
)

const module = "github.com/rpcbench/rpcbench"

// dependencies are the import paths of all packages that an importer of each package compiles, but for its own. The
// working directory is the module's.
var dependencies = sync.OnceValues(func() (map[string][]string, error) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Deps " "}}`, "./...").Output()
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		all[fields[0]] = fields[1:]
	}
	return all, err
})

// compiled returns the import paths of all packages that an importer of pkg compiles, pkg's own last.
func compiled(t *testing.T, pkg string) []string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	all, err := dependencies()
	require.NoError(t, err)
	require.Contains(t, all, pkg)
	return append(slices.Clone(all[pkg]), pkg)
}

// within says whether pkg is the package root or below it.
func within(pkg, root string) bool { return pkg == root || strings.HasPrefix(pkg, root+"/") }

func TestImports(t *testing.T) {
	t.Chdir("../..")
	const (
		grpc      = "google.golang.org/grpc"
		protobuf  = "google.golang.org/protobuf"
		jsoniter  = "github.com/json-iterator"
		testify   = "github.com/stretchr"
		goleak    = "go.uber.org/goleak"
		histogram = "github.com/HdrHistogram"
		testpkg   = "testing"
		connect   = "connectrpc.com/connect"
		connect2  = "connectrpc.com/connect/v2"
		msgp      = "github.com/tinylib/msgp"
		gonum     = "gonum.org"
		describes = "google.golang.org/grpc/reflection" // for people: the command's alone
		health    = "google.golang.org/grpc/health"
		own       = module + "/internal/scaffold" // makes modules of .proto files: the command's alone
		compiler  = "github.com/bufbuild/protocompile"
		generator = "google.golang.org/protobuf/compiler/protogen"
	)
	for _, c := range []struct {
		pkg             string
		compiles, never []string
	}{
		{module, []string{"github.com/go-playground/validator/v10"},
			[]string{grpc, protobuf, jsoniter, testify, goleak, histogram, testpkg, "net/http"}},
		{module + "/httpjson", []string{"encoding/json", "net/http"},
			[]string{grpc, protobuf, connect, connect2, jsoniter, msgp, testify, goleak, histogram, testpkg}},
		{module + "/httpjsoniter", []string{jsoniter, "net/http"},
			[]string{grpc, protobuf, connect, connect2, msgp, testify, goleak, histogram, testpkg}},
		{module + "/grpcprotobuf", []string{grpc, protobuf},
			[]string{describes, health, jsoniter, testify, goleak, histogram, testpkg}},
		{module + "/stacks/grpcservehttp", []string{grpc, protobuf, "net/http"},
			[]string{describes, health, jsoniter, connect, connect2, msgp, testify, goleak, histogram, testpkg}},
		{module + "/stacks/connectrpc", []string{connect, protobuf},
			[]string{connect2, grpc, jsoniter, msgp, testify, goleak, histogram, testpkg}},
		{module + "/stacks/connectrpc2", []string{connect2, protobuf},
			[]string{connect, grpc, jsoniter, msgp, testify, goleak, histogram, testpkg}},
		{module + "/stacks/httpprotobuf", []string{protobuf, "net/http"},
			[]string{grpc, connect, connect2, jsoniter, msgp, testify, goleak, histogram, testpkg}},
		{module + "/stacks/httpmsgpack", []string{msgp, "net/http"},
			[]string{grpc, protobuf, connect, connect2, jsoniter, testify, goleak, histogram, testpkg}},
		{module + "/stacks/httpxml", []string{"encoding/xml", "net/http"},
			[]string{grpc, protobuf, connect, connect2, jsoniter, msgp, testify, goleak, histogram, testpkg}},
		{module + "/stacks/rawtcp", []string{protobuf, "net"},
			[]string{grpc, connect, connect2, jsoniter, msgp, "net/http", testify, goleak, histogram, testpkg}},
		{module + "/internal/measure/timing", nil, []string{grpc, protobuf, jsoniter, testify, goleak, testpkg}},
		{module + "/stacktest", []string{goleak, histogram},
			[]string{own, compiler, generator, grpc, protobuf, jsoniter, testify, gonum, module + "/internal/testkit",
				module + "/internal/compare"}},
		{module + "/cli", nil, []string{own, compiler, generator, module + "/stacks", module + "/grpcprotobuf", module +
			"/httpjson", jsoniter, connect, connect2, msgp, testify, goleak, testpkg, gonum}},
		{module + "/cmd/rpcbench", []string{own, compiler, generator, grpc},
			[]string{health, testify, goleak, testpkg, gonum}},
		{module + "/stacks", []string{grpc, protobuf, jsoniter},
			[]string{own, compiler, generator, describes, health, testify, goleak, histogram, testpkg}},
	} {
		t.Run(c.pkg, func(t *testing.T) {
			deps := compiled(t, c.pkg)
			require.Equal(t, c.pkg, deps[len(deps)-1])
			for _, root := range c.compiles {
				require.True(t, slices.ContainsFunc(deps, func(d string) bool { return allocproof.Within(d, root) }),
					"it must compile %s", root)
			}
			for _, root := range c.never {
				i := slices.IndexFunc(deps, func(d string) bool { return allocproof.Within(d, root) })
				require.Negative(t, i, "it must not compile %s", root)
			}
		})
	}
}

// TestModulesOfAFixture: docs/fixtures.md says how many modules the go.mod of a test of httpjson has beside this one.
func TestModulesOfAFixture(t *testing.T) {
	t.Chdir("../..")
	const form = "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}"
	out, err := exec.Command("go", "list", "-deps", "-f", form, "./stacktest", "./httpjson").Output()
	require.NoError(t, err)
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	modules = slices.Compact(modules)
	said := regexp.MustCompile(`adds (\d+)\s+indirect lines`).FindStringSubmatch(read(t, "docs/fixtures.md"))
	require.Equal(t, said[1], strconv.Itoa(len(modules)), "%q", modules)
}

// TestLayout holds each package below internal to the table of internal/README.md: it imports the folders of its row.
func TestLayout(t *testing.T) {
	t.Chdir("../..")
	folders := map[string][]string{
		".":         nil,
		"transport": nil,
		"environ":   nil,
		"suite":     {"transport", "environ"},
		"measure":   {"environ", "suite/tap", "suite/corpus", "suite/crossed", "transport/message"},
		"explain":   {"shell", "report", "verdict", "measure", "environ"},
		"verdict":   nil,
		"compare":   {"verdict", "measure", "environ"},
		"report":    {"verdict"},
		"plan":      {"shell", "report", "compare", "verdict", "measure", "environ"},
		"run": {"shell", "own", "plan", "report", "explain/calls", "explain/layers", "compare", "verdict", "measure",
			"suite/corpus", "environ"},
		"count": {"shell", "own", "plan", "report", "measure", "environ"},
		"idle":  {"shell", "plan", "report/table", "compare", "verdict", "measure", "environ"},
		"shell": {"measure", "report"},
		"own":   {"shell", "report", "compare/builds", "measure"},
		"command": {"shell", "own", "run", "count", "idle", "explain", "report", "compare/versus", "measure/child",
			"measure/network", "environ"},
		"scaffold": {"own", "shell", "compare", "measure", "environ"},
		"testkit":  {"measure", "verdict"},
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the go command")
	}
	const form = `{{.ImportPath}} {{join .Imports " "}}`
	out, err := exec.Command(goTool, "list", "-f", form, ".", "./internal/...").Output()
	require.NoError(t, err)
	table := read(t, "internal/README.md")
	for line := range strings.Lines(string(out)) {
		pkg, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		below := strings.TrimPrefix(pkg, module+"/internal/")
		folder, _, _ := strings.Cut(below, "/")
		if pkg == module {
			folder = "."
		}
		allowed, found := folders[folder]
		require.True(t, found || folder == "lint", "%s is in no folder of internal/README.md", pkg)
		require.True(t, folder == "." || strings.Contains(table, "| `"+folder+"` |"),
			"internal/README.md has no row of %s", folder)
		for dep := range strings.FieldsSeq(imports) {
			of, ours := strings.CutPrefix(dep, module+"/internal/")
			if !ours || folder != "." && within(of, folder) {
				continue
			}
			require.True(t, slices.ContainsFunc(allowed, func(root string) bool { return within(of, root) }),
				"%s imports %s, which is no folder of its row in internal/README.md", pkg, of)
		}
	}
}

func TestTheToolDoesWithoutTheStudy(t *testing.T) {
	t.Chdir("../..")
	var tool []string
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	all, err := dependencies()
	require.NoError(t, err)
	for pkg, deps := range all {
		tool = append(append(tool, deps...), pkg)
	}
	slices.Sort(tool)
	for _, dep := range slices.Compact(tool) {
		for _, root := range []string{module + "/study", "github.com/goccy/go-json", "github.com/vmihailenco/msgpack",
			"github.com/bytedance/sonic", "github.com/fxamacker/cbor"} {
			require.False(t, within(dep, root), "the tool compiles %s, which is the study's", dep)
		}
	}
}

func TestStacksDoNotImportEachOther(t *testing.T) {
	t.Chdir("../..")
	packages := stackPackages(t)
	for _, pkg := range append(packages, module) {
		for _, dep := range compiled(t, pkg) {
			require.True(t, dep == pkg || !slices.Contains(packages, dep), "%s imports the stack %s", pkg, dep)
		}
	}
}

// stackPackages returns the import paths of the stacks, which are all that package stacks imports of the module but the
// contract and what is internal.
func stackPackages(t *testing.T) []string {
	t.Helper()
	stacks, err := build.ImportDir("stacks", 0)
	require.NoError(t, err)
	packages := slices.DeleteFunc(stacks.Imports, func(p string) bool {
		return !within(p, module) || p == module || within(p, module+"/internal")
	})
	require.NotEmpty(t, packages)
	return packages
}

// function is one that makes a stack.
type function struct{ folder, call string }

// functions are all that the packages of stacks export, by the name of the stack that each should make. A function that
// makes a stack of a method of one's own is left out.
func functions(t *testing.T) map[string]function {
	t.Helper()
	all := map[string]function{}
	for _, pkg := range stackPackages(t) {
		base, folder := path.Base(pkg), strings.TrimPrefix(pkg, module+"/")
		built, err := build.ImportDir(folder, 0)
		require.NoError(t, err)
		fset, files := token.NewFileSet(), []*ast.File(nil)
		for _, name := range built.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(folder, name), nil, parser.ParseComments)
			require.NoError(t, err)
			files = append(files, f)
		}
		exports, err := doc.NewFromFiles(fset, files, pkg)
		require.NoError(t, err)
		require.Zero(t, len(exports.Types)+len(exports.Vars)+len(exports.Consts), "%s exports more than functions", pkg)
		for _, f := range exports.Funcs {
			if !strings.HasSuffix(f.Name, "Of") && f.Name != "Handler" { // which make a method, or a stack of one
				call := base + "." + f.Name + "()"
				require.Equal(t, "func() rpcbench.Stack", types.ExprString(f.Decl.Type), call)
				all[strings.TrimSuffix(base+"."+strings.ToLower(f.Name), ".new")] = function{folder, call}
			}
		}
		require.Contains(t, all, base, "a main value")
	}
	return all
}

// A stack's package exports functions that return a Stack, New among them, and package stacks calls each of them.
func TestStacksHaveOneSurface(t *testing.T) {
	t.Chdir("../..")
	var got []string
	for _, stack := range stacks.All() {
		got = append(got, stack.Name)
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(functions(t))), got,
		"package stacks has every stack once, under the name of its package and function")
}

// TestEveryStackIsGuarded: nobody has to remember the steps that CONTRIBUTING lists. Each stack has run the suite in
// its own package, its imports are checked, and its codec is a rival of the others'.
func TestEveryStackIsGuarded(t *testing.T) {
	t.Chdir("../..")
	has := func(pattern, text string) bool {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		return slices.ContainsFunc(paths, func(p string) bool { return strings.Contains(read(t, p), text) })
	}
	all := functions(t)
	for _, s := range stacks.All() {
		f := all[s.Name]
		require.True(t, has(f.folder+"/*_test.go", "stacktest.Conformance(t, "+f.call+")"),
			"%s: a test in %s must run stacktest.Conformance(t, %s)", s.Name, f.folder, f.call)
		require.True(t, has("internal/lint/imports_test.go", `module + "/`+f.folder+`"`),
			"%s: TestImports needs a row for %s", s.Name, f.folder)
		library := s.Traits.Codec
		if strings.HasPrefix(library, module) {
			continue // generated here
		}
		for ; library != "." && !has("internal/suite/conform/profile.go", `"`+library+`"`); library = path.Dir(library) {
		}
		require.NotEqual(t, ".", library, "%s: rivals in internal/suite/conform/profile.go needs %s", s.Name,
			s.Traits.Codec)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}
