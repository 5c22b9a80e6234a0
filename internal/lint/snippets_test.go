package lint_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGoBlocksCompile: what README and docs show in Go compiles in a module of somebody's. A block with imports has all
// of them. Any other block is a fragment, which is completed by imports, and by a function around statements. Both get
// the functions that their text speaks of.
func TestGoBlocksCompile(t *testing.T) {
	const module = "github.com/rpcbench/rpcbench"
	t.Chdir("../..")
	packages := map[string]string{"context": "context", "testing": "testing", "rpcbench": module,
		"mystack": "example.com/mystack", "wrapperspb": "google.golang.org/protobuf/types/known/wrapperspb"}
	for _, name := range []string{"cli", "grpcprotobuf", "httpjson", "stacks", "stacktest"} {
		packages[name] = module + "/" + name
	}
	declared := map[string]string{
		"newServer": "func newServer(rpcbench.ServerConfig) (rpcbench.Server, error) { return nil, nil }",
		"dial":      "func dial(rpcbench.ClientConfig) (rpcbench.Client, error) { return nil, nil }",
		"stacks()":  "func stacks() []rpcbench.Stack { return nil }",
		"getOrder": "type Get struct{ Number uint64 }\ntype Order struct{ Item string }\n" +
			"var getOrder rpcbench.Method[Get, Order]",
	}
	complete := func(name, block string) string {
		head := "package " + name + "\n"
		if strings.HasPrefix(block, "package ") {
			head = ""
		}
		if _, err := parser.ParseFile(token.NewFileSet(), "", head+block, 0); err != nil {
			before, after := "func _() {\n", "}\n"
			if _, err := parser.ParseExpr(block); err == nil {
				before, after = "var _ = ", ""
			}
			block = before + block + after
		}
		for used, text := range declared {
			uses := regexp.MustCompile(`[ \t]` + regexp.QuoteMeta(used) + `[,)\[ ]`)
			if uses.MatchString(block) && !strings.Contains(block, "func "+used) && !strings.Contains(block, "var "+used) {
				block += text + "\n"
			}
		}
		if regexp.MustCompile(`(?m)^import `).MatchString(block) {
			return head + block
		}
		if strings.Contains(block, "func main()") {
			head = "package main\n"
		}
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
		shows := slices.Contains([]string{"README.md", "docs/own-stack.md", "docs/fixtures.md"}, page)
		require.True(t, len(blocks) > 0 || !shows, "%s shows no Go", page)
	}
	vet := exec.CommandContext(t.Context(), "go", "vet", "-trimpath", "./...") // from the cache, if nothing changed
	vet.Dir = dir
	vet.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := vet.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
