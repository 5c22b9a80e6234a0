package rpcbench_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/codecs"
	"github.com/rpcbench/rpcbench/stacks"
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

// TestGuaranteesNameTheirTests: each guarantee names a test; that it exists is TestDocuments' to check.
func TestGuaranteesNameTheirTests(t *testing.T) {
	guarantees := strings.Split(read(t, "docs/guarantees.md"), "\n- ")[1:]
	require.NotEmpty(t, guarantees)
	for _, p := range guarantees {
		require.Regexp(t, "`Test\\w+`", p, "no test holds the guarantee")
	}
}

// TestDocuments: files they link exist, patterns they give run exactly the benchmark they name, and the results they show
// stand in the raw file they name.
func TestDocuments(t *testing.T) {
	names := declared(t)
	for _, path := range []string{"README.md", "docs/codecs.md", "docs/method.md", "docs/releases.md", "docs/faults.md",
		"docs/guarantees.md", "docs/wire.md", "CONTRIBUTING.md"} {
		text := read(t, path)
		for _, link := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(text, -1) {
			require.FileExists(t, filepath.Join(filepath.Dir(path), link[1]))
		}
		for _, p := range regexp.MustCompile(`-bench '([^']*)'`).FindAllStringSubmatch(text, -1) {
			pattern, _, _ := strings.Cut(p[1], "/") // what follows picks rows
			name, ok := strings.CutPrefix(strings.TrimSuffix(pattern, "$"), "^")
			require.True(t, ok && strings.HasSuffix(pattern, "$"),
				"pattern %s is not anchored: it may run two benchmarks into one profile", p[1])
			require.True(t, names[name], "%s does not exist", name)
		}
		for _, name := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(text, -1) {
			require.True(t, names[name[1]], "%s: %s does not exist", path, name[1])
		}
		shown := strings.Count(text, "<!-- from ")
		blocks := regexp.MustCompile("(?s)<!-- from (\\S+) -->\n```text\n(.*?)```").FindAllStringSubmatch(text, -1)
		require.Len(t, blocks, shown, "%s: a result that names its file and is not checked", path)
		for _, b := range blocks {
			raw := read(t, b[1])
			for _, line := range strings.Split(strings.TrimSpace(b[2]), "\n") {
				require.Contains(t, raw, line, "%s shows a line that is not in %s", path, b[1])
			}
		}
	}
}

// TestGeneratedTables: the tables of stacks, codecs and messages are made of the lists, the functions' comments and go.mod.
// -update writes them. They are about a build that has every stack and codec; one without encoding/json/v2 compares the rest.
func TestGeneratedTables(t *testing.T) {
	_, err := stacks.Find("httpjson.v2")
	if *chosen.update {
		require.NoError(t, err, "the tables have rows of encoding/json/v2: write them with Go 1.27 or later")
	}
	onlyV2 := regexp.MustCompile("(?m)^\\| `(httpjson|json)\\.v2` .*\n")
	for _, c := range []struct {
		path, name string
		table      func(*testing.T) string
	}{
		{"README.md", "stacks", stackTable},
		{"README.md", "failures", failureTable},
		{"docs/codecs.md", "codecs", codecTable},
		{"docs/codecs.md", "messages", messageTable},
	} {
		begin, end := "<!-- "+c.name+" -->\n", "<!-- /"+c.name+" -->"
		text := read(t, c.path)
		if err != nil {
			text = onlyV2.ReplaceAllString(text, "")
		}
		head, rest, ok := strings.Cut(text, begin)
		require.True(t, ok, "%s has no place for its table of %s", c.path, c.name)
		_, tail, ok := strings.Cut(rest, end)
		require.True(t, ok)
		want := head + begin + c.table(t) + end + tail
		if *chosen.update {
			require.NoError(t, os.WriteFile(c.path, []byte(want), 0o644))
			continue
		}
		require.Equal(t, want, text, "go test -run TestGeneratedTables -update . writes the table anew")
	}
}

// failureTable is what a test of the codecs has seen.
func failureTable(t *testing.T) string {
	t.Helper()
	return "| codec | library | input | what it does |\n|---|---|---|---|\n" + read(t, "internal/codecs/testdata/failures.md")
}

func codecTable(t *testing.T) string {
	t.Helper()
	version := versions(t)
	named := func(library string) string {
		for module := library; module != "."; module = filepath.Dir(module) {
			if v := version[module]; v != "" {
				return library + " " + v
			}
		}
		return library
	}
	var b strings.Builder
	b.WriteString("| codec | library | by | keeps | invalid UTF-8 encoded, decoded | not bit-equal |\n|---|---|---|---|---|---|\n")
	for _, c := range codecs.All() {
		t := c.New().Traits()
		by := "reflection"
		if t.Generated {
			by = "generated code"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s, %s | %s |\n", c.Name, named(t.Library), by, c.Reuses,
			t.InvalidUTF8.Encoding, t.InvalidUTF8.Decoding, cmp.Or(strings.Join(t.Lossy, ", "), "–"))
	}
	return b.String()
}

func messageTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| message | why it exists | protobuf | gzip of that |\n|---|---|---|---|\n")
	for _, m := range codecs.Messages() {
		fmt.Fprintf(&b, "| `%s` | %s | %d B | %.0f %% |\n", m.Name, m.Why, m.Size, 100*m.Gzip)
	}
	return b.String()
}

func stackTable(t *testing.T) string {
	t.Helper()
	version := versions(t)
	var b strings.Builder
	b.WriteString("| stack | what it is | HTTP | wire format | compression | invalid UTF-8 | not bit-equal | libraries |\n|---|---|---|---|---|---|---|---|\n")
	for _, s := range stacks.All() {
		pkg, _, _ := strings.Cut(s.Name, ".")
		format := strings.Split(s.Protocol, "/")[1]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s | %s |\n", s.Name, synopsis(t, s.Name),
			cmp.Or(s.Traits.HTTP, "none"), format, cmp.Or(s.Traits.Compression, "none"), s.Traits.InvalidUTF8,
			cmp.Or(strings.Join(s.Traits.Lossy, ", "), "–"), strings.Join(libraries(t, pkg, s, version), ", "))
	}
	return b.String()
}

// synopsis is the first sentence of the comment of the function that makes a stack.
func synopsis(t *testing.T, name string) string {
	t.Helper()
	pkg, variant, _ := strings.Cut(name, ".")
	files, err := filepath.Glob(pkg + "/*.go")
	require.NoError(t, err)
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.EqualFold(f.Name.Name, variant) && (variant != "" || f.Name.Name != "New") {
				continue
			}
			text := new(doc.Package).Synopsis(f.Doc.Text())
			if variant == "" { // what New adds is said by the package
				text = new(doc.Package).Synopsis(packageComment(t, files))
			}
			_, text, _ = strings.Cut(text, " ")
			return strings.TrimPrefix(strings.TrimSuffix(text, "."), "serves and calls the create-user API ")
		}
	}
	t.Fatalf("no function makes %s", name)
	return ""
}

func packageComment(t *testing.T, files []string) string {
	t.Helper()
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		require.NoError(t, err)
		if file.Doc != nil {
			_, text, _ := strings.Cut(file.Doc.Text(), " ") // "Package"
			return text
		}
	}
	return ""
}

// versions maps the modules that go.mod requires to their versions.
func versions(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Path}} {{.Version}}", "all").Output()
	require.NoError(t, err)
	version := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, v, _ := strings.Cut(strings.TrimSpace(line), " ")
		version[path] = v
	}
	return version
}

// libraries are the one that moves the bytes and the one that makes them, with their versions.
func libraries(t *testing.T, pkg string, s rpcbench.Stack, version map[string]string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./"+pkg).Output()
	require.NoError(t, err)
	transport := "net"
	for _, path := range []string{"net/http", "connectrpc.com/connect", "google.golang.org/grpc"} {
		if strings.Contains("\n"+string(out), "\n"+path+"\n") && s.Traits.HTTP != "" {
			transport = path
		}
	}
	codec := s.Traits.Codec
	for ours, theirs := range map[string]string{"proto/user/v1": "github.com/planetscale/vtprotobuf", "codec/msgp": "github.com/tinylib/msgp"} {
		if strings.HasSuffix(codec, ours) {
			codec = theirs
		}
	}
	named := func(path string) string { return strings.TrimSpace(path + " " + version[path]) }
	return []string{named(transport), named(codec)}
}

// TestProtoFilesAreUsableAsTheyLie: their imports are found with -import-path proto.
func TestProtoFilesAreUsableAsTheyLie(t *testing.T) {
	imports := 0
	require.NoError(t, filepath.WalkDir("proto", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".proto") {
			for _, line := range regexp.MustCompile(`(?m)^import "(.*)"`).FindAllStringSubmatch(read(t, path), -1) {
				imports++
				require.FileExists(t, filepath.Join("proto", line[1]), path)
			}
		}
		return err
	}))
	require.Positive(t, imports)
}
