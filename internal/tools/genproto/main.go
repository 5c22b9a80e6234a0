// Genproto writes the Go that the plugins for protobuf, grpc, connect and vtprotobuf make of the .proto files in
// proto, each where its go_package says, and the plain structs. Services of grpc and connect get
// packages of their own. The messages of stacks/more/grpcpooled and of the study's catalogue are generated too. It runs
// in the tools module's folder, whose go.mod pins compiler and plugins; there is no protoc. Generated files whose
// source is gone stay: remove them by hand.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/format"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

const (
	importRoot = "rpcbench/" // begins the path of every file; package proto says why

	// grpcPackage has the service for grpc-go, so that who imports its descriptor does not compile grpc.
	grpcPackage = "github.com/rpcbench/rpcbench/proto/userservice/userservicegrpc;userservicegrpc"
	serviceFile = importRoot + "user/v1/user_service.proto"

	// pooledFile has the messages of stacks/more/grpcpooled, which needs none of vtprotobuf's methods.
	pooledFile = importRoot + "pooled.proto"

	// catalogueFile has the messages that codecs are timed with.
	catalogueFile = importRoot + "catalogue.proto"
)

// elsewhere are the folders of files that are not in proto.
var elsewhere = map[string]string{
	pooledFile:    "../../stacks/more/grpcpooled",
	catalogueFile: "../../study/catalogue/cataloguepb",
}

// plainPackages are the packages of messages that become plain structs: of these the name and the folder.
var plainPackages = map[protogen.GoImportPath][2]string{
	"github.com/rpcbench/rpcbench/proto/message/v1":            {"rpcbench", "../.."},
	"github.com/rpcbench/rpcbench/study/catalogue/cataloguepb": {"catalogue", "../../study/catalogue"},
}

// comments of generated packages, by the file that gets each.
var comments = map[string]string{
	"study/catalogue/cataloguepb/catalogue.pb.go": "cataloguepb has the messages of package catalogue.",
	"proto/message/v1/flex.pb.go":                 "messagepb is the protobuf form of the echoed message.",
	"proto/user/v1/user.pb.go": `userv1 is the protobuf form of the user API: messages field-equal to the plain structs of package rpcbench,
// whose rules decide what is valid. The service is in package userservice and below it.`,
	"proto/userservice/user_service.pb.go": `userservice has the descriptor of the user service, which the packages below it need. The messages are in
// package userv1.`,
	"proto/userservice/userserviceconnect/user_service.connect.go":  `userserviceconnect has the client and the handler of the user service that connect-go's generator makes.`,
	"proto/userservice/userserviceconnect2/user_service.connect.go": `userserviceconnect2 has the client and the handler of the user service that connect-go v2's generator makes.`,
}

var importLine = regexp.MustCompile(`(?m)^import "`)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "genproto:", err)
		os.Exit(1)
	}
}

func run() error {
	var plain []string
	src := os.DirFS("../../proto")
	err := fs.WalkDir(src, ".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".proto") {
			plain = append(plain, importRoot+path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("proto: %w", err)
	}
	resolver := &protocompile.SourceResolver{Accessor: func(path string) (io.ReadCloser, error) {
		if dir, ok := elsewhere[path]; ok {
			return open(os.DirFS(dir), path)
		}
		return open(src, path)
	}}
	files, err := (&protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(resolver),
		SourceInfoMode: protocompile.SourceInfoStandard, // keeps the comments
	}).Compile(context.Background(), append(plain, catalogueFile, pooledFile)...)
	if err != nil {
		return err
	}
	req := &pluginpb.CodeGeneratorRequest{CompilerVersion: version()}
	for _, f := range files {
		req.ProtoFile = add(req.ProtoFile, f)
	}
	for _, plugin := range []struct {
		name, parameter string
		files           []string
	}{
		{"protoc-gen-go", "", append(plain, catalogueFile, pooledFile)},
		{"protoc-gen-go-grpc", ",M" + serviceFile + "=" + grpcPackage, plain},
		// Appends "connect" to the package, and writes what connect's README shows.
		{"connectrpc.com/connect/cmd/protoc-gen-connect-go", ",simple", plain},
		// The same of v2, whose plugin has the same name, and makes no other form.
		{"connectrpc.com/connect/v2/cmd/protoc-gen-connect-go", ",package_suffix=connect2", plain},
		{"protoc-gen-go-vtproto", ",features=marshal+unmarshal+size", append(plain, catalogueFile)},
		// Again, for the one message that echoes are compared by.
		{"protoc-gen-go-vtproto", ",features=marshal+unmarshal+size+equal", []string{importRoot + "message/v1/flex.proto"}},
	} {
		req.FileToGenerate = plugin.files
		req.Parameter = new("module=github.com/rpcbench/rpcbench" + plugin.parameter) // cut off go_package to get the folder
		request, err := proto.Marshal(req)
		if err != nil {
			return err
		}
		if err := generate(plugin.name, request); err != nil {
			return fmt.Errorf("%s: %w", plugin.name, err)
		}
	}
	req.Parameter, req.FileToGenerate = nil, append(plain, catalogueFile)
	return generatePlain(req)
}

// open reads a file of src by its import path. Imports in files lack importRoot.
func open(src fs.FS, path string) (io.ReadCloser, error) {
	text, err := fs.ReadFile(src, strings.TrimPrefix(path, importRoot))
	return io.NopCloser(bytes.NewReader(importLine.ReplaceAll(text, []byte(`import "`+importRoot)))), err
}

// add appends f, after what it imports: plugins read a file's imports before the file.
func add(files []*descriptorpb.FileDescriptorProto, f protoreflect.FileDescriptor) []*descriptorpb.FileDescriptorProto {
	for _, have := range files {
		if have.GetName() == f.Path() {
			return files
		}
	}
	for i := range f.Imports().Len() {
		files = add(files, f.Imports().Get(i).FileDescriptor)
	}
	return append(files, protoutil.ProtoFromFileDescriptor(f))
}

func generate(plugin string, request []byte) error {
	var resp pluginpb.CodeGeneratorResponse
	var stderr strings.Builder
	cmd := exec.Command("go", "tool", plugin)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(request), &stderr
	if out, err := cmd.Output(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.Join(strings.Fields(stderr.String()), " "))
	} else if err := proto.Unmarshal(out, &resp); err != nil {
		return err
	} else if resp.Error != nil {
		return errors.New(resp.GetError())
	}
	for _, f := range resp.File {
		path, content := filepath.Join("..", "..", f.GetName()), f.GetContent()
		if comment, ok := comments[f.GetName()]; ok {
			content = strings.Replace(content, "\npackage ", "\n// Package "+comment+"\npackage ", 1)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// generatePlain writes the messages of plainPackages, each of which has one file, as plain structs.
func generatePlain(req *pluginpb.CodeGeneratorRequest) error {
	plugin, err := protogen.Options{}.New(req)
	if err != nil {
		return err
	}
	for _, f := range plugin.Files {
		plain, ok := plainPackages[f.GoImportPath]
		if !ok {
			continue
		}
		var out bytes.Buffer
		fmt.Fprintf(&out, "// Code generated by genproto. DO NOT EDIT.\n\npackage %s\n", plain[0])
		for _, m := range f.Messages {
			fmt.Fprintf(&out, "\n%stype %s struct {\n", m.Comments.Leading, m.GoIdent.GoName)
			for _, field := range m.Fields {
				name := field.Desc.JSONName()
				tag := fmt.Sprintf("%s,omitempty", name)
				fmt.Fprintf(&out, "%s%s %s `json:%q xml:%q msgpack:%q`\n", field.Comments.Leading, goName(name), goType(field), tag,
					tag, tag)
			}
			out.WriteString("}\n")
		}
		for _, e := range f.Enums {
			name := e.GoIdent.GoName
			fmt.Fprintf(&out, "\n%stype %s int32\n\n// The values of %s.\nconst (\n", e.Comments.Leading, name, name)
			for _, v := range e.Values[1:] { // behind the unspecified one
				words := strings.Split(string(v.Desc.Name()), "_")
				fmt.Fprintf(&out, "%s %s = %d\n", goName(strings.ToLower(words[len(words)-1])), name, v.Desc.Number())
			}
			out.WriteString(")\n")
		}
		text, err := format.Source(out.Bytes())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(plain[1], "types_gen.go"), text, 0o666); err != nil {
			return err
		}
	}
	return nil
}

func goName(name string) string {
	if name == "id" {
		return "ID"
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

func goType(field *protogen.Field) string {
	list := ""
	if field.Desc.IsList() {
		list = "[]"
	}
	switch kind := field.Desc.Kind(); kind {
	case protoreflect.MessageKind:
		return list + "*" + field.Message.GoIdent.GoName
	case protoreflect.EnumKind:
		return list + field.Enum.GoIdent.GoName
	case protoreflect.BytesKind:
		return list + "[]byte"
	case protoreflect.DoubleKind:
		return list + "float64"
	case protoreflect.FloatKind:
		return list + "float32"
	case protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return list + "int32"
	case protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return list + "int64"
	case protoreflect.Fixed32Kind:
		return list + "uint32"
	case protoreflect.Fixed64Kind:
		return list + "uint64"
	default: // whose name is Go's
		return list + kind.String()
	}
}

// version is protocompile's, for the generated headers.
func version() *pluginpb.Version {
	v := &pluginpb.Version{Major: new(int32), Minor: new(int32), Patch: new(int32), Suffix: new("protocompile")}
	info, _ := debug.ReadBuildInfo() // never nil in a binary built from a module
	for _, m := range info.Deps {
		if m.Path == "github.com/bufbuild/protocompile" {
			fmt.Sscanf(m.Version, "v%d.%d.%d", v.Major, v.Minor, v.Patch)
		}
	}
	return v
}
