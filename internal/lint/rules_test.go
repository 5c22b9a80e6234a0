// Package lint holds the rules of this repository that a compiler can't check: nothing that one stack does may reach
// another through the process they share, no run may depend on a port or a clock, and what pages and packages say of
// each other is so. Generated files and testdata folders are exempt; stacktest/testdata/outsider, which shows how to
// write a stack elsewhere, is not.
package lint_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var re = regexp.MustCompile

// rules are patterns of what no file may import, or use of an import, whatever it calls the package: an import is
// "expvar", a use "time.Sleep". A file may if except matches its path and package: "cmd/rpcbench/main.go main".
var rules = []struct {
	pattern, except *regexp.Regexp
	reason          string
}{
	{re(`^net/http\.(Get|Post|PostForm|Head|Handle|HandleFunc|(ListenAnd)?Serve(TLS)?|Default(ServeMux|Client))$`), re(`^$`),
		"it acts on a mux or client that the whole process shares"},
	{re(`^net/http\.DefaultTransport$`), re(`^internal/transport/httpapi/(client|httpapi_test)\.go `),
		"the whole process shares it: copy it"},
	{re(`\.Register(Codec|CodecV2|Compressor)$`), re(`^$`),
		"it changes the codecs of every stack in the process: use an option of the server or the call"},
	{re(`^google\.golang\.org/grpc\.(Force|ForceServer|Custom|CallCustom)Codec$`), re(`^$`),
		"it puts a copying bridge before the codec, which bills the codec: implement encoding.CodecV2"},
	{re(`^(net/http/pprof|expvar|google\.golang\.org/grpc/encoding/gzip)$`), re(`^$`),
		"importing it changes http.DefaultServeMux or the headers of every gRPC client"},
	{re(`^time\.Sleep$`), re(`^(internal/suite/tap/link\w*|stack)\.go `),
		"too short is flaky and too long is slow: wait for the event"},
	{re(`^(log|log/slog)$|^fmt\.Print(f|ln)?$|^os\.(Exit|Stdout|Stderr)$`),
		re(`_test\.go |^internal/(command|testkit|tools)/| main$|^(internal/transport/httpapi/server|stacktest/main|` +
			`internal/measure/child/process|stacks/more/chain/\w+)\.go `),
		"a library returns what it has to say; only commands print, log and exit"},
}

var (
	// hostPort matches whole strings, with or without scheme and path. Hosts are those one can listen on, so that
	// "12:30", "user.go:12" and "example.com:443" are none.
	hostPort = re(
		`^([a-z][a-z0-9+.-]*:///*)?(localhost|(\d{1,3}\.){3}\d{1,3}|\[[0-9a-fA-F:.%]*\])?:0*[1-9]\d*(/.*)?$`)
	// speaks matches files that print, or read a line of a profile that begins so.
	speaks = re(`_test\.go$|^study/|^internal/(command/main|shell/progress)\.go$|^stacktest/main\.go$|/layers\.go$`)
	// pages are those that people write. Another one may be of a run.
	pages  = re(`^(\w+\.md|(docs|internal|stacks|\.github)/.*\.md|study/\w+\.md)$`)
	target = re(`\]\([^)]*\)|https?://\S+`)
	wide   = re(`^\s*([|<]|!\[|(row|column) ")`) // the latter are of markers
)

func TestTreeFollowsRules(t *testing.T) {
	t.Chdir("../..")
	require.NoError(t, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		name = filepath.ToSlash(name)
		switch hidden := strings.HasPrefix(name, ".") && name != "." && name != ".github"; {
		case err != nil:
			return err
		case d.IsDir() && (hidden || d.Name() == "testdata" && name != "stacktest/testdata"):
			return fs.SkipDir
		case path.Ext(name) == ".go":
			code(t, name)
		case pages.MatchString(name):
			page(t, name)
		}
		return nil
	}))
}

func code(t *testing.T, name string) {
	src, fset, imports := read(t, name), token.NewFileSet(), map[string]string{}
	file, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if require.NoError(t, err); ast.IsGenerated(file) {
		return
	}
	check := func(n ast.Node, used string) {
		for _, r := range rules {
			if r.pattern.MatchString(used) && !r.except.MatchString(name+" "+file.Name.Name) {
				t.Errorf("%s: %s: %s", fset.Position(n.Pos()), used, r.reason)
			}
		}
	}
	raw := map[int]bool{} // lines of strings, which are text
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			imported, _ := strconv.Unquote(n.Path.Value) // the parser has checked it
			as := path.Base(imported)                    // true of the packages in the rules
			if n.Name != nil {
				as = n.Name.Name
			}
			imports[as] = imported
			check(n, imported)
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok {
				check(n, imports[of.Name]+"."+n.Sel.Name)
			}
		case *ast.BasicLit:
			for i := 0; strings.HasPrefix(n.Value, "`") && i <= strings.Count(n.Value, "\n"); i++ {
				raw[fset.Position(n.Pos()).Line+i] = true
			}
			text, _ := strconv.Unquote(n.Value)
			if n.Kind == token.STRING && hostPort.MatchString(text) {
				t.Errorf("%s: %s: two runs at once would collide: listen on port 0 and ask the listener",
					fset.Position(n.Pos()), text)
			}
			if n.Kind == token.STRING && strings.HasPrefix(text, "rpcbench: ") && !speaks.MatchString(name) {
				t.Errorf("%s: %q: begin with what the error is about: the main function says whose it is",
					fset.Position(n.Pos()), text)
			}
		}
		return true
	})
	for i, line := range strings.Split(src, "\n") {
		if !raw[i+1] && !strings.HasPrefix(line, "//go:") && !strings.Contains(line, "://") {
			narrow(t, name, i+1, line)
		}
	}
}

// page finds long lines. Tables, comments, pictures and blocks of text may be wide. A link counts as its text.
func page(t *testing.T, name string) {
	fenced := false // in a block of text
	for i, line := range strings.Split(read(t, name), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if !fenced && !wide.MatchString(line) {
			narrow(t, name, i+1, target.ReplaceAllString(line, "]"))
		}
	}
}

// narrow reports a long line. A character is a column, and so is a tab.
func narrow(t *testing.T, name string, line int, text string) {
	if n := utf8.RuneCountInString(text); n > 120 {
		t.Errorf("%s:%d: %d columns: a line has 120 at most", name, line, n)
	}
}
