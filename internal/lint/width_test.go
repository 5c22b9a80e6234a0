package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// columns is how many a line may have. A character is one, and so is a tab.
const columns = 120

func wide(path string, line int, text string) (found []finding) {
	if n := utf8.RuneCountInString(text); n > columns {
		found = append(found, finding{path, line, "width", fmt.Sprintf("%d columns: a line has %d at most", n, columns)})
	}
	return found
}

// wideCode finds long lines of Go. Lines of a raw string are text, and directives and addresses can't be broken.
func wideCode(f *file, fset *token.FileSet, src string) (found []finding) {
	raw := map[int]bool{}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(lit.Value, "`") {
			for line := fset.Position(lit.Pos()).Line; line <= fset.Position(lit.End()).Line; line++ {
				raw[line] = true
			}
		}
		return true
	})
	for i, text := range strings.Split(src, "\n") {
		if !raw[i+1] && !strings.HasPrefix(text, "//go:") && !strings.Contains(text, "://") {
			found = append(found, wide(f.path, i+1, text)...)
		}
	}
	return found
}

var (
	target = regexp.MustCompile(`\]\([^)]*\)|https?://\S+`)
	fence  = regexp.MustCompile("^\\s*```")
)

// widePage finds long lines of a page. Tables, comments, pictures and blocks of text are exempt. A link counts as its
// text.
func widePage(path, src string) (found []finding) {
	fenced := false // in a block of text
	for i, text := range strings.Split(src, "\n") {
		if fence.MatchString(text) {
			fenced = !fenced
		}
		trimmed := strings.TrimSpace(text)
		if fenced || strings.HasPrefix(trimmed, "|") || strings.HasPrefix(trimmed, "<") ||
			strings.HasPrefix(trimmed, "![") {
			continue
		}
		found = append(found, wide(path, i+1, target.ReplaceAllString(text, "]"))...)
	}
	return found
}

func TestWidth(t *testing.T) {
	long := strings.Repeat("µ", columns-len("// "))
	for reason, c := range map[string]struct {
		src  string
		want int // the line that is found
	}{
		"a comment of 120 characters": {"package p\n\n// " + long, 0},
		"a character more":            {"package p\n\n// " + long + "µ", 3},
		"a tab is one character":      {"package p\n\n\t// " + long, 3},
		"code":                        {"package p\n\nvar x = \"" + long + "\"", 3},
		"a raw string":                {"package p\n\nvar x = `" + long + "`", 0},
		"a directive":                 {"package p\n\n//go:generate " + long, 0},
		"an address":                  {"package p\n\n// https://" + long, 0},
	} {
		found, err := lint("x_test.go", []byte(c.src))
		require.NoError(t, err)
		assert.Equal(t, c.want != 0, len(found) == 1 && found[0].line == c.want, "%s: %v", reason, found)
	}
	long = strings.Repeat("x", columns)
	for reason, c := range map[string]struct {
		src  string
		want int
	}{
		"a sentence":            {"one\n" + long + "x", 2},
		"a row of a table":      {"| " + long, 0},
		"a comment":             {"<!-- " + long + " -->", 0},
		"a picture":             {"![" + long + "](x)", 0},
		"a link":                {"[text](" + long + ")", 0},
		"an address in a page":  {"see https://" + long, 0},
		"a block of text":       {"```text\n" + long + "x\n```\n", 0},
		"after a block of text": {"```text\n```\n" + long + "x", 3},
	} {
		found := widePage("x.md", c.src)
		assert.Equal(t, c.want != 0, len(found) == 1 && found[0].line == c.want, "%s: %v", reason, found)
	}
}
