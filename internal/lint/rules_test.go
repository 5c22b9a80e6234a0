package lint

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

type rule struct {
	id, reason string
	applies    func(*file) bool
	breaks     check
}

// A check says whether n breaks the rule; up are the nodes around it, the file first.
type check func(f *file, n ast.Node, up []ast.Node) bool

var rules = []rule{
	{"http-handler",
		"without Handler it serves http.DefaultServeMux, where any package may register: use a literal that sets it",
		everywhere, unset("net/http.Server", "Handler")},
	{"http-transport",
		"without Transport it shares http.DefaultTransport, two idle connections per host: use a literal that sets it",
		everywhere, unset("net/http.Client", "Transport")},
	{"http-global", "it acts on a mux, client or transport that the whole process shares",
		everywhere, unlessCopied("net/http.Get", "net/http.Post", "net/http.PostForm", "net/http.Head", "net/http.Handle",
			"net/http.HandleFunc", "net/http.ListenAndServe", "net/http.ListenAndServeTLS", "net/http.Serve",
			"net/http.ServeTLS", "net/http.DefaultServeMux", "net/http.DefaultClient", "net/http.DefaultTransport")},
	{"register", "it changes the codecs of every stack in the process: use an option of the server or the call",
		everywhere, register},
	{"codec-v1", "it puts a copying bridge before the codec, which bills the codec: implement encoding.CodecV2",
		everywhere, uses("google.golang.org/grpc.ForceCodec", "google.golang.org/grpc.ForceServerCodec",
			"google.golang.org/grpc.CustomCodec", "google.golang.org/grpc.CallCustomCodec")},
	{"import", "importing it changes http.DefaultServeMux or the headers of every gRPC client",
		everywhere, uses("net/http/pprof", "expvar", "google.golang.org/grpc/encoding/gzip")},
	{"fixed-port", "two runs at once would collide: listen on port 0 and ask the listener",
		everywhere, fixedPort},
	{"sleep", "too short is flaky and too long is slow: wait for the event",
		notLink, uses("time.Sleep")},
	{"output", "a library returns what it has to say; only commands print, log and exit",
		library, uses("log", "log/slog", "fmt.Print", "fmt.Printf", "fmt.Println", "os.Exit", "os.Stdout", "os.Stderr")},
}

func everywhere(*file) bool { return true }

func notTest(f *file) bool { return !strings.HasSuffix(f.path, "_test.go") }

func library(f *file) bool {
	command := strings.HasPrefix(f.path, "cmd/") || strings.HasPrefix(f.path, "internal/command/") ||
		strings.HasPrefix(f.path, "internal/tools/") || strings.HasPrefix(f.path, "internal/odd/") // children of tests
	return notTest(f) && f.syntax.Name.Name != "main" && !command
}

// The link emulator's purpose is to pass time.
func notLink(f *file) bool {
	link, _ := path.Match("internal/relay/link*.go", f.path)
	return !link
}

// uses reports imports ("expvar") and uses of a package's names ("time.Sleep"), called or not.
func uses(names ...string) check {
	return func(f *file, n ast.Node, _ []ast.Node) bool { return slices.Contains(names, f.name(n)) }
}

// unlessCopied is uses, but for http.DefaultTransport.(*http.Transport).Clone(), which shares nothing.
func unlessCopied(names ...string) check {
	return func(f *file, n ast.Node, up []ast.Node) bool {
		if !uses(names...)(f, n, up) {
			return false
		}
		copied, ok := up[len(up)-2].(*ast.SelectorExpr)
		return !ok || copied.Sel.Name != "Clone"
	}
}

// unset reports every mention of the struct type that may make a value without the field: var, new, struct fields,
// elements, aliases. What remains is a pointer to it, and a literal that sets the field by its name. A literal without
// names is go vet's to report.
func unset(typ, field string) check {
	return func(f *file, n ast.Node, up []ast.Node) bool {
		if f.name(n) != typ {
			return false
		}
		switch outer := up[len(up)-1].(type) {
		case *ast.StarExpr:
			return false
		case *ast.CompositeLit:
			return !sets(outer, field)
		}
		return true
	}
}

func sets(lit *ast.CompositeLit, field string) bool {
	return slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool {
		kv, keyed := e.(*ast.KeyValueExpr)
		return keyed && isIdent(kv.Key, field) && !isIdent(kv.Value, "nil")
	})
}

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// register goes by the name alone: other libraries have such a function too, and some pass it on to gRPC's.
func register(_ *file, n ast.Node, _ []ast.Node) bool {
	sel, ok := n.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"RegisterCodec", "RegisterCodecV2", "RegisterCompressor"}, sel.Sel.Name)
}

// hostPort matches whole strings, with or without scheme and path. Hosts are those one can listen on, so that "12:30",
// "user.go:12" and "example.com:443" are none.
var hostPort = regexp.MustCompile(
	`^([a-z][a-z0-9+.-]*:///*)?(localhost|(\d{1,3}\.){3}\d{1,3}|\[[0-9a-fA-F:.%]*\])?:0*[1-9]\d*(/.*)?$`)

func fixedPort(_ *file, n ast.Node, _ []ast.Node) bool {
	lit, ok := n.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING && hostPort.MatchString(unquote(lit))
}
