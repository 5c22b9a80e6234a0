package scaffold

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/parser"
	"github.com/bufbuild/protocompile/protoutil"
	"github.com/bufbuild/protocompile/reporter"
	_ "google.golang.org/genproto/googleapis/rpc/code"       // found by linked
	_ "google.golang.org/genproto/googleapis/rpc/errdetails" // and google/rpc/status.proto
	_ "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/gofeaturespb"
	"google.golang.org/protobuf/types/pluginpb"
)

// prefix goes before the paths and packages of all files that are generated: a second file of one path or of one name
// would panic at the start of the program, and the stacks link some.
const prefix = "scaffolded"

// files are descriptors by their paths.
type files map[string]*descriptorpb.FileDescriptorProto

// knownFile returns a file of these folders whose types are in a package that exists already; nil if there is none.
func knownFile(path string) protoreflect.FileDescriptor {
	if !strings.HasPrefix(path, "google/protobuf/") && !strings.HasPrefix(path, "google/rpc/") {
		return nil
	}
	f, _ := protoregistry.GlobalFiles.FindFileByPath(path)
	return f
}

// link puts the files that exist already in the place of copies of them, and returns their paths. A file of somebody's
// own may have a path like theirs.
func link(all files) map[string]bool {
	linked := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		known := knownFile(name)
		if known != nil && len(parts(all[name], parts(protoutil.ProtoFromFileDescriptor(known), nil))) == 0 {
			linked[name] = true
			delete(all, name)
			collect(all, known)
		}
	}
	return linked
}

// parts are a file's types and fields, but for the others.
func parts(f *descriptorpb.FileDescriptorProto, others map[string]bool) map[string]bool {
	all := map[string]bool{}
	add := func(parts ...any) {
		if part := fmt.Sprint(parts...); !others[part] {
			all[part] = true
		}
	}
	var messages func(name string, of []*descriptorpb.DescriptorProto)
	enums := func(name string, of []*descriptorpb.EnumDescriptorProto) {
		for _, e := range of {
			for _, v := range e.Value {
				add(name, ".", e.GetName(), " ", v.GetName(), " ", v.GetNumber())
			}
		}
	}
	messages = func(name string, of []*descriptorpb.DescriptorProto) {
		for _, m := range of {
			name := name + "." + m.GetName()
			add(name)
			for _, field := range m.Field {
				add(name, " ", field.GetName(), " ", field.GetNumber(), field.GetLabel(), field.GetType(), field.GetTypeName())
			}
			enums(name, m.EnumType)
			messages(name, m.NestedType)
		}
	}
	messages(f.GetPackage(), f.MessageType)
	enums(f.GetPackage(), f.EnumType)
	return all
}

// compile returns the files, without custom options, and all that they import. Imports lie in roots. text is that of a
// single file which lies nowhere, nil if there is none.
func compile(ctx context.Context, text []byte, names, roots []string) (files, error) {
	if len(roots) == 0 {
		roots = []string{"."}
	}
	for _, root := range roots {
		if isFile(root) {
			return nil, fmt.Errorf("-I %s: a file, in place of the folder that imports are below", root)
		}
	}
	for i, name := range names {
		inside := func(root string) bool { // a path from the working directory is fine too
			path, err := filepath.Abs(name)
			top, err2 := filepath.Abs(root)
			inside, err3 := filepath.Rel(top, path)
			if errors.Join(err, err2, err3) != nil || !filepath.IsLocal(inside) || !isFile(name) {
				return false
			}
			names[i] = filepath.ToSlash(inside)
			return true
		}
		if own := filepath.Dir(name); !slices.ContainsFunc(roots, inside) && inside(own) {
			roots = append([]string{own}, roots...)
		}
	}
	c := compiler{text: text, roots: roots}
	linked, err := (&protocompile.Compiler{Resolver: &c}).Compile(ctx, names...)
	if err != nil {
		if len(c.missing) > 0 {
			err = fmt.Errorf("%w (not below -I: %s)", err, strings.Join(c.missing, ", "))
		}
		return nil, err
	}
	all := files{}
	for _, f := range linked {
		collect(all, f)
	}
	return all, nil
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

func collect(all files, f protoreflect.FileDescriptor) {
	if all[f.Path()] == nil {
		all[f.Path()] = protoutil.ProtoFromFileDescriptor(f)
		for i := range f.Imports().Len() {
			collect(all, f.Imports().Get(i).FileDescriptor)
		}
	}
}

// compiler reads files below its roots. Custom options go before they are looked up, and so do imports that are not
// there: buf.validate and google.api need not be.
type compiler struct {
	text    []byte
	roots   []string
	mu      sync.Mutex
	missing []string
}

func (c *compiler) open(name string) (io.ReadCloser, error) {
	if c.text != nil && knownFile(name) == nil {
		return io.NopCloser(bytes.NewReader(c.text)), nil
	}
	for _, root := range c.roots {
		f, err := os.Open(filepath.Join(root, filepath.FromSlash(name)))
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return nil, fs.ErrNotExist
}

var edition = regexp.MustCompile(`(?m)^\s*edition\s*=\s*"([^"]*)"`)

// FindFileByPath implements protocompile.Resolver.
func (c *compiler) FindFileByPath(name string) (protocompile.SearchResult, error) {
	in, err := c.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		if desc := knownFile(name); desc != nil {
			return protocompile.SearchResult{Desc: desc}, nil
		}
		return protocompile.SearchResult{}, fmt.Errorf("no such file below %s", strings.Join(c.roots, ", "))
	}
	if err != nil {
		return protocompile.SearchResult{}, err
	}
	defer func() { _ = in.Close() }() // which was only read
	text, err := io.ReadAll(in)
	if err != nil {
		return protocompile.SearchResult{}, err
	}
	if of := edition.FindSubmatch(text); of != nil && string(of[1]) != "2023" {
		return protocompile.SearchResult{}, fmt.Errorf("%s: edition %s is not read here: make a set by "+
			"protoc -o x.binpb --include_imports, and give -protoset x.binpb in place of -proto", name, of[1])
	}
	handler := reporter.NewHandler(nil)
	tree, err := parser.Parse(name, bytes.NewReader(text), handler)
	if err != nil {
		return protocompile.SearchResult{}, err
	}
	result, err := parser.ResultFromAST(tree, true, handler)
	if err != nil {
		return protocompile.SearchResult{}, err
	}
	f := result.FileDescriptorProto()
	dropCustom(f.ProtoReflect())
	var kept []string
	var public []int32
	for i, dep := range f.Dependency {
		if !c.there(dep) {
			continue
		}
		if slices.Contains(f.PublicDependency, int32(i)) {
			public = append(public, int32(len(kept)))
		}
		kept = append(kept, dep)
	}
	f.Dependency, f.PublicDependency, f.WeakDependency = kept, public, nil
	return protocompile.SearchResult{ParseResult: result}, nil
}

func (c *compiler) there(name string) bool {
	if in, err := c.open(name); err == nil {
		return in.Close() == nil
	}
	if knownFile(name) != nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.missing, name) {
		c.missing = append(c.missing, name)
	}
	return false
}

// dropCustom drops options of which a part of the name is in parentheses.
func dropCustom(m protoreflect.Message) {
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.Kind() != protoreflect.MessageKind:
		case field.Name() == "uninterpreted_option":
			kept := m.NewField(field).List()
			for i := range v.List().Len() {
				option, _ := v.List().Get(i).Message().Interface().(*descriptorpb.UninterpretedOption)
				if !slices.ContainsFunc(option.GetName(), (*descriptorpb.UninterpretedOption_NamePart).GetIsExtension) {
					kept.Append(v.List().Get(i))
				}
			}
			m.Set(field, protoreflect.ValueOfList(kept))
		case field.IsList():
			for i := range v.List().Len() {
				dropCustom(v.List().Get(i).Message())
			}
		default:
			dropCustom(v.Message())
		}
		return true
	})
}

// readSet returns the files of a FileDescriptorSet.
func readSet(name string) (files, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(data, &set); err != nil || len(set.File) == 0 {
		return nil, fmt.Errorf("%s: no FileDescriptorSet, which buf build -o or protoc -o with --include_imports write", name)
	}
	all := files{}
	for _, f := range set.File {
		all[f.GetName()] = f
	}
	for _, f := range set.File {
		for _, dep := range f.Dependency {
			if desc := knownFile(dep); all[dep] == nil && desc != nil {
				collect(all, desc)
			}
		}
	}
	return all, nil
}

// method finds a unary method by its name, and returns that name as gRPC writes it, with the types.
func method(all files, call string) (name, request, reply string, err error) {
	var there []string
	for _, f := range all {
		for _, s := range f.Service {
			for _, m := range s.Method {
				full := strings.TrimPrefix(f.GetPackage()+"."+s.GetName(), ".") + "/" + m.GetName()
				if call := strings.TrimLeft(call, "/."); call == full || call == strings.ReplaceAll(full, "/", ".") {
					if m.GetClientStreaming() || m.GetServerStreaming() {
						return "", "", "", fmt.Errorf("-call %s: this method streams: rpcbench takes unary methods", call)
					}
					return full, m.GetInputType(), m.GetOutputType(), nil
				}
				if !m.GetClientStreaming() && !m.GetServerStreaming() {
					there = append(there, full)
				}
			}
		}
	}
	slices.Sort(there)
	if len(there) == 0 {
		return "", "", "", errors.New("the .proto files have no unary method: give the file with the service to -proto")
	}
	const shown = 20
	more := ""
	if len(there) > shown {
		more, there = fmt.Sprintf(" and %d more", len(there)-shown), there[:shown]
	}
	return "", "", "", fmt.Errorf("-call %q: no such unary method: the files have %s%s",
		call, strings.Join(there, ", "), more)
}

// plugin returns what generators work on: the files that have the types, with nothing but these types and those that
// they need. Each proto package gets a folder of the module.
func plugin(all files, module string, types ...string) (*protogen.Plugin, error) {
	p := pruner{owner: files{}, used: map[string]bool{}, linked: link(all), needs: map[string]map[string]bool{},
		paths: map[string]string{}, packages: map[string]string{}}
	for _, f := range all {
		for _, m := range f.MessageType {
			p.owner[fullName(f, m.GetName())] = f
		}
		for _, e := range f.EnumType {
			p.owner[fullName(f, e.GetName())] = f
		}
	}
	for _, t := range types {
		if _, err := p.use(t); err != nil {
			return nil, err
		}
	}
	req := &pluginpb.CodeGeneratorRequest{CompilerVersion: &pluginpb.Version{Suffix: proto.String("rpcbench")}}
	p.add(req, module)
	data, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	*req = pluginpb.CodeGeneratorRequest{}
	// Without a resolver custom options are unknown, and go.
	options := proto.UnmarshalOptions{Resolver: new(protoregistry.Types), DiscardUnknown: true}
	if err := options.Unmarshal(data, req); err != nil {
		return nil, err
	}
	for _, f := range req.ProtoFile { // edition 2024 would hide the fields of messages
		if f.Edition != nil && !p.linked[f.GetName()] {
			f.Options = cmp.Or(f.Options, new(descriptorpb.FileOptions))
			f.Options.Features = cmp.Or(f.Options.Features, new(descriptorpb.FeatureSet))
			open := &gofeaturespb.GoFeatures{ApiLevel: gofeaturespb.GoFeatures_API_OPEN.Enum()}
			proto.SetExtension(f.Options.Features, gofeaturespb.E_Go, open)
		}
	}
	if _, err := protodesc.NewFiles(&descriptorpb.FileDescriptorSet{File: req.ProtoFile}); err != nil {
		return nil, err
	}
	return protogen.Options{}.New(req)
}

func fullName(f *descriptorpb.FileDescriptorProto, name string) string {
	return strings.TrimSuffix("."+f.GetPackage(), ".") + "." + name
}

// pruner follows types by their full names, which begin with a dot.
type pruner struct {
	owner           files // of each type at the top of a file
	used            map[string]bool
	linked          map[string]bool            // files that exist already
	needs           map[string]map[string]bool // other packages whose types a package has
	paths, packages map[string]string          // new paths of files, and the Go packages of units
}

// unit is what has a Go package: a proto package, or a file of one that needs itself by way of others, as Go refuses
// such packages. Files never do.
func (p pruner) unit(f *descriptorpb.FileDescriptorProto) string {
	seen := map[string]bool{}
	var visit func(pkg string)
	visit = func(pkg string) {
		for need := range p.needs[pkg] {
			if !seen[need] {
				seen[need] = true
				visit(need)
			}
		}
	}
	if visit(f.GetPackage()); seen[f.GetPackage()] {
		return "/" + f.GetName()
	}
	return f.GetPackage()
}

// rename gives a file a path, and its package a folder, that no other has. An underscore could end in _linux or _test.
func (p pruner) rename(f *descriptorpb.FileDescriptorProto) {
	free := func(in map[string]string, format, name string) string {
		other := fmt.Sprintf(format, name, "")
		for n := 2; slices.Contains(slices.Collect(maps.Values(in)), other); n++ {
			other = fmt.Sprintf(format, name, strconv.Itoa(n))
		}
		return other
	}
	plain := func(name string) string { return strings.NewReplacer(".", "", "_", "").Replace(name) }
	unit := p.unit(f)
	if p.packages[unit] == "" {
		p.packages[unit] = free(p.packages, "%s%spb", strings.ToLower(plain(f.GetPackage())))
	}
	base := cmp.Or(plain(strings.TrimSuffix(path.Base(f.GetName()), ".proto")), "types")
	p.paths[f.GetName()] = free(p.paths, prefix+"/"+p.packages[unit]+"/%s%s.proto", base)
}

// use marks the top-level type that has t, with all that its fields need, and returns its file.
func (p pruner) use(t string) (*descriptorpb.FileDescriptorProto, error) {
	top := t
	for p.owner[top] == nil {
		i := strings.LastIndexByte(top, '.')
		if i <= 0 {
			return nil, fmt.Errorf("the descriptors lack %s: make the set with all imports", strings.TrimPrefix(t, "."))
		}
		top = top[:i]
	}
	f := p.owner[top]
	if p.used[top] {
		return f, nil
	}
	p.used[top] = true
	for _, m := range f.MessageType {
		if fullName(f, m.GetName()) == top {
			return f, follow(m, func(field *descriptorpb.FieldDescriptorProto) error {
				dep, err := p.use(field.GetTypeName())
				if pkg := f.GetPackage(); dep != nil && dep.GetPackage() != pkg {
					if p.needs[pkg] == nil {
						p.needs[pkg] = map[string]bool{}
					}
					p.needs[pkg][dep.GetPackage()] = true
				}
				return err
			})
		}
	}
	return f, nil
}

// follow goes through the fields of a message, and of those inside, that name a type. Extensions go.
func follow(m *descriptorpb.DescriptorProto, do func(*descriptorpb.FieldDescriptorProto) error) error {
	m.Extension = nil
	for _, field := range m.Field {
		if field.GetTypeName() != "" {
			if err := do(field); err != nil {
				return err
			}
		}
	}
	for _, nested := range m.NestedType {
		if err := follow(nested, do); err != nil {
			return err
		}
	}
	return nil
}

// add appends the files that have used types to a request, each after what it imports, with new names.
func (p pruner) add(req *pluginpb.CodeGeneratorRequest, module string) {
	var params []string
	done := map[string]bool{}
	var visit func(f *descriptorpb.FileDescriptorProto)
	visit = func(f *descriptorpb.FileDescriptorProto) {
		if done[f.GetName()] {
			return
		}
		done[f.GetName()] = true
		used := func(name string) bool { return p.used[fullName(f, name)] }
		g := proto.CloneOf(f)
		g.Dependency, g.PublicDependency, g.WeakDependency, g.OptionDependency = nil, nil, nil, nil
		g.Service, g.Extension, g.SourceCodeInfo = nil, nil, nil
		g.MessageType = keep(g.MessageType, used)
		g.EnumType = keep(g.EnumType, used)
		if !p.linked[f.GetName()] {
			p.rename(f)
		}
		deps := map[string]bool{}
		for _, m := range g.MessageType {
			_ = follow(m, func(field *descriptorpb.FieldDescriptorProto) error {
				dep, err := p.use(field.GetTypeName()) // which has worked before
				if dep != f && !deps[dep.GetName()] {
					deps[dep.GetName()] = true
					visit(dep)
					g.Dependency = append(g.Dependency, cmp.Or(p.paths[dep.GetName()], dep.GetName()))
				}
				if !p.linked[dep.GetName()] {
					field.TypeName = proto.String("." + prefix + field.GetTypeName())
				}
				return err
			})
		}
		if !p.linked[f.GetName()] {
			pkg := p.packages[p.unit(f)]
			g.Name = proto.String(p.paths[f.GetName()])
			g.Package = proto.String(strings.TrimSuffix(prefix+"."+f.GetPackage(), "."))
			params = append(params, fmt.Sprintf("M%s=%s;%s", g.GetName(), path.Join(module, pkg), pkg))
		}
		req.FileToGenerate = append(req.FileToGenerate, g.GetName()) // without which the plugin may not have it
		req.ProtoFile = append(req.ProtoFile, g)
	}
	for _, t := range slices.Sorted(maps.Keys(p.used)) {
		visit(p.owner[t])
	}
	req.Parameter = proto.String(strings.Join(params, ","))
}

func keep[T interface{ GetName() string }](all []T, used func(string) bool) []T {
	return slices.DeleteFunc(all, func(t T) bool { return !used(t.GetName()) })
}
