package pages

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/codecs"
	"github.com/rpcbench/rpcbench/stacks"
)

const unmaintained = "github.com/json-iterator/go" // as its repository says

// named adds the version in go.mod to a library outside the standard one.
func (b *block) named(library string) string {
	for module := library; module != "."; module = path.Dir(module) {
		required := regexp.MustCompile(`(?m)^\s` + regexp.QuoteMeta(module) + ` (v\S+)`)
		if m := required.FindStringSubmatch(b.read("go.mod")); m != nil && module == unmaintained {
			return library + " " + m[1] + " (unmaintained)"
		} else if m != nil {
			return library + " " + m[1]
		}
	}
	return library
}

// codecList is made of the list of codecs and of go.mod.
func codecList(b *block) string {
	var t strings.Builder
	t.WriteString("| codec | library | by | keeps | invalid UTF-8 encoded, decoded | not bit-equal " +
		"|\n|---|---|---|---|---|---|\n")
	for _, c := range codecs.All() {
		traits := c.New().Traits()
		by := "reflection"
		if traits.Generated {
			by = "generated code"
		}
		fmt.Fprintf(&t, "| `%s` | %s | %s | %s | %s, %s | %s |\n", c.Name, b.named(traits.Library), by, c.Reuses,
			traits.InvalidUTF8.Encoding, traits.InvalidUTF8.Decoding, cmp.Or(listed(traits.Lossy), "–"))
	}
	return t.String()
}

// messageList is made of the catalogue of messages.
func messageList(*block) string {
	var t strings.Builder
	t.WriteString("| message | why it exists | protobuf | gzip of that |\n|---|---|---|---|\n")
	for _, m := range codecs.Messages() {
		if strings.HasPrefix(m.Why, "the same") { // another size of the one above
			continue
		}
		fmt.Fprintf(&t, "| `%s` | %s | %d B | %.0f %% |\n", m.Name, m.Why, m.Size, 100*m.Gzip)
	}
	return t.String()
}

// stackList is made of the list of stacks, of the comments of the functions that make them, and of go.mod.
func stackList(b *block) string {
	var t strings.Builder
	t.WriteString("| stack | what it is | HTTP | wire format | compression | invalid UTF-8 | not bit-equal " +
		"| libraries |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	for _, s := range stacks.All() {
		format := strings.Split(s.Protocol, "/")[1]
		fmt.Fprintf(&t, "| `%s` | %s | %s | %s | %s | %s | %s | %s, %s |\n", s.Name, b.synopsis(s.Name),
			cmp.Or(s.Traits.HTTP, "none"), format, cmp.Or(string(s.Traits.Compression), "none"), s.Traits.InvalidUTF8,
			cmp.Or(listed(s.Traits.Lossy), "–"),
			b.named(append(s.Traits.ClientLibraries, "net")[0]), b.named(generator(s.Traits.Codec)))
	}
	return t.String()
}

// listed joins the names of losses.
func listed(losses []rpcbench.Loss) string {
	var names []string
	for _, loss := range losses {
		names = append(names, string(loss))
	}
	return strings.Join(names, ", ")
}

// generator is the library whose generated code, in a package of this module, a stack encodes with, or else the codec.
func generator(codec string) string {
	for ours, theirs := range map[string]string{
		"proto/user/v1": "github.com/planetscale/vtprotobuf", "codec/msgp": "github.com/tinylib/msgp",
	} {
		if strings.HasSuffix(codec, ours) {
			return theirs
		}
	}
	return codec
}

// synopsis is the first sentence about a stack: of its package, or of a variant's function.
func (b *block) synopsis(stack string) string {
	pkg, variant, _ := strings.Cut(stack, ".")
	files, err := filepath.Glob(filepath.Join(b.root, pkg, "*.go"))
	if b.err = cmp.Or(b.err, err); len(files) == 0 {
		files, err = filepath.Glob(filepath.Join(b.root, "stacks", pkg, "*.go"))
		b.err = cmp.Or(b.err, err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			b.fail("%w", err)
			return ""
		}
		comment := file.Doc.Text()
		if variant != "" {
			comment = ""
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.EqualFold(f.Name.Name, variant) {
					comment = f.Doc.Text()
				}
			}
		} else {
			comment = strings.TrimPrefix(comment, "Package ")
		}
		if comment != "" {
			_, said, _ := strings.Cut(new(doc.Package).Synopsis(comment), " ")
			return strings.TrimPrefix(strings.TrimSuffix(said, "."), "serves and calls the create-user API ")
		}
	}
	b.fail("no comment says what %s is", stack)
	return ""
}
