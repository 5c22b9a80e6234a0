package pages

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

const unmaintained = "github.com/json-iterator/go" // as its repository says

// versioned is an import path with the version in the go.mod of the tool or of the study, if it is no standard library.
func (m *maker) versioned(name string) string {
	versions := m.read("go.mod") + m.read("study/go.mod")
	for module := name; module != "."; module = path.Dir(module) {
		required := regexp.MustCompile(`(?m)^\s` + regexp.QuoteMeta(module) + ` (v\S+)`)
		if found := required.FindStringSubmatch(versions); found != nil && module == unmaintained {
			return name + " " + found[1] + " (unmaintained)"
		} else if found != nil {
			return name + " " + found[1]
		}
	}
	return name
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
func (m *maker) synopsis(stack string) string {
	pkg, variant, _ := strings.Cut(stack, ".")
	var files []string
	for _, folder := range []string{pkg, "stacks/" + pkg} {
		found, err := filepath.Glob(filepath.Join(m.root, folder, "*.go"))
		if err != nil {
			fail("%w", err)
		}
		files = append(files, found...)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			fail("%w", err)
		}
		comment := strings.TrimPrefix(file.Doc.Text(), "Package ")
		if variant != "" {
			comment = ""
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.EqualFold(f.Name.Name, variant) {
					comment = f.Doc.Text()
				}
			}
		}
		if comment != "" {
			_, said, _ := strings.Cut(new(doc.Package).Synopsis(comment), " ")
			return strings.TrimPrefix(strings.TrimSuffix(said, "."), "serves and calls the create-user API ")
		}
	}
	fail("no comment says what %s is", stack)
	return ""
}
