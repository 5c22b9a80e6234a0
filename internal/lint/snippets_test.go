package lint_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGoBlocksCompile: what README and docs show in Go compiles in a module of somebody's. A fragment is completed by
// imports, by the functions that its text speaks of, and by a function around statements.
func TestGoBlocksCompile(t *testing.T) {
	const module = "github.com/rpcbench/rpcbench"
	t.Chdir("../..")
	packages := map[string]string{"context": "context", "testing": "testing", "rpcbench": module,
		"mystack": "example.com/mystack"}
	for _, name := range []string{"cli", "grpcprotobuf", "httpjson", "stacks", "stacktest"} {
		packages[name] = module + "/" + name
	}
	declared := map[string]string{
		"newServer": "func newServer(rpcbench.ServerConfig) (rpcbench.Server, error) { return nil, nil }",
		"dial":      "func dial(rpcbench.ClientConfig) (rpcbench.Client, error) { return nil, nil }",
	}
	complete := func(name, block string) string {
		if _, err := parser.ParseFile(token.NewFileSet(), "", "package snippet\n"+block, 0); err != nil {
			before, after := "func _() {\n", "}\n"
			if _, err := parser.ParseExpr(block); err == nil {
				before, after = "var _ = ", ""
			}
			block = before + block + after
		}
		for used, text := range declared {
			if regexp.MustCompile(`[ \t]` + used + `[,)]`).MatchString(block) {
				block += text + "\n"
			}
		}
		if strings.Contains(block, "func main()") {
			name = "main"
		}
		head := "package " + name + "\n"
		for name, path := range packages {
			if regexp.MustCompile(`\b` + name + `\.[A-Z]`).MatchString(block) {
				head += fmt.Sprintf("import %q\n", path)
			}
		}
		return head + block
	}

	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	here, err := os.Getwd()
	require.NoError(t, err)
	write("go.mod", fmt.Sprintf("%s\nrequire %s v0.0.0\nreplace %[2]s => %s\n",
		strings.Replace(read(t, "go.mod"), module, "example.com/mystack", 1), module, filepath.ToSlash(here)))
	write("go.sum", read(t, "go.sum"))
	write("mystack.go", complete("mystack", "func New() rpcbench.Stack { return rpcbench.Stack{} }\n"))
	for _, page := range documents(t) {
		blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```").FindAllStringSubmatch(read(t, page), -1)
		for i, block := range blocks {
			file := "snippet.go"
			if strings.Contains(block[1], "testing.") {
				file = "snippet_test.go"
			}
			write(fmt.Sprintf("%s.%d/%s", page, i+1, file), complete("snippet", block[1]))
		}
		require.True(t, len(blocks) > 0 || page != "README.md" && page != "docs/own-stack.md", "%s shows no Go", page)
	}
	vet := exec.CommandContext(t.Context(), "go", "vet", "./...")
	vet.Dir = dir
	vet.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := vet.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
