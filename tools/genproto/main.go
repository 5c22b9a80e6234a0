// Genproto writes the Go that the plugins for protobuf, grpc and vtprotobuf make of the .proto files in ../proto, each where its
// go_package says. It runs in the tools module's folder, whose go.mod pins compiler and plugins; there is no protoc.
// Generated files whose source is gone stay: remove them by hand.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

const importRoot = "rpcbench/" // begins the path of every file; package proto says why

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "genproto:", err)
		os.Exit(1)
	}
}

func run() error {
	req := &pluginpb.CodeGeneratorRequest{CompilerVersion: version()}
	src := os.DirFS("../proto")
	err := fs.WalkDir(src, ".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".proto") {
			req.FileToGenerate = append(req.FileToGenerate, importRoot+path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("../proto: %w", err)
	}
	resolver := &protocompile.SourceResolver{Accessor: func(path string) (io.ReadCloser, error) {
		return src.Open(strings.TrimPrefix(path, importRoot))
	}}
	files, err := (&protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(resolver),
		SourceInfoMode: protocompile.SourceInfoStandard, // keeps the comments
	}).Compile(context.Background(), req.FileToGenerate...)
	if err != nil {
		return err
	}
	for _, f := range files {
		req.ProtoFile = add(req.ProtoFile, f)
	}
	for _, plugin := range []struct{ name, parameter string }{
		{"protoc-gen-go", ""},
		{"protoc-gen-go-grpc", ""},
		{"protoc-gen-go-vtproto", ",features=marshal+unmarshal+size+equal"},
	} {
		req.Parameter = new("module=github.com/rpcbench/rpcbench" + plugin.parameter) // cut off go_package to get the folder
		request, err := proto.Marshal(req)
		if err != nil {
			return err
		}
		if err := generate(plugin.name, request); err != nil {
			return fmt.Errorf("%s: %w", plugin.name, err)
		}
	}
	return nil
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
		path := filepath.Join("..", f.GetName())
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(f.GetContent()), 0o666); err != nil {
			return err
		}
	}
	return nil
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
