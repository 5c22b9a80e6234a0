// Genproto writes the Go that the plugins for protobuf, grpc, connect and vtprotobuf make of the .proto files in
// ../proto, each where its go_package says. Services of grpc and connect get packages of their own. It runs in the
// tools module's folder, whose go.mod pins compiler and plugins; there is no protoc. Generated files whose source is
// gone stay: remove them by hand.
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
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

const (
	importRoot    = "rpcbench/"            // begins the path of every file; package proto says why
	pooledRoot    = importRoot + "pooled/" // begins the path of the copies
	pooledPackage = "github.com/rpcbench/rpcbench/message/pooledpb"

	// grpcPackage has the service for grpc-go, so that who imports its descriptor does not compile grpc.
	grpcPackage = "github.com/rpcbench/rpcbench/proto/userservice/userservicegrpc;userservicegrpc"
	serviceFile = importRoot + "user/v1/user_service.proto"
)

// pooled are the files that are compiled once more, as a package of their own, for types that take the messages within
// them from pools: vtprotobuf gives a type either those methods or the plain ones.
var pooled = []string{
	pooledRoot + "message/v1/catalogue.proto",
	pooledRoot + "message/v1/flex.proto",
	pooledRoot + "user/v1/user.proto",
}

var (
	importLine    = regexp.MustCompile(`(?m)^import "`)
	packageLine   = regexp.MustCompile(`(?m)^package rpcbench\.`)
	goPackageLine = regexp.MustCompile(`(?m)^option go_package = .*$`)
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "genproto:", err)
		os.Exit(1)
	}
}

func run() error {
	var plain []string
	src := os.DirFS("../proto")
	err := fs.WalkDir(src, ".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".proto") {
			plain = append(plain, importRoot+path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("../proto: %w", err)
	}
	resolver := &protocompile.SourceResolver{Accessor: func(path string) (io.ReadCloser, error) {
		return open(src, path)
	}}
	files, err := (&protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(resolver),
		SourceInfoMode: protocompile.SourceInfoStandard, // keeps the comments
	}).Compile(context.Background(), append(slices.Clone(plain), pooled...)...)
	if err != nil {
		return err
	}
	req := &pluginpb.CodeGeneratorRequest{CompilerVersion: version()}
	for _, f := range files {
		req.ProtoFile = add(req.ProtoFile, f)
	}
	for _, plugin := range []struct {
		files           []string
		name, parameter string
	}{
		{plain, "protoc-gen-go", ""},
		{plain, "protoc-gen-go-grpc", ",M" + serviceFile + "=" + grpcPackage},
		// Appends "connect" to the package, and writes what connect's README shows.
		{plain, "protoc-gen-connect-go", ",simple"},
		{plain, "protoc-gen-go-vtproto", ",features=marshal+unmarshal+size+equal"},
		{pooled, "protoc-gen-go", ""},
		{pooled, "protoc-gen-go-vtproto", ",features=marshal+unmarshal+size+pool,pool=" + pooledPackage + ".*"},
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
	return nil
}

// open reads a file of src by its import path. Imports in files lack importRoot. A copy has names of its own, since the
// generated Go registers them.
func open(src fs.FS, path string) (io.ReadCloser, error) {
	original, isCopy := strings.CutPrefix(path, pooledRoot)
	text, err := fs.ReadFile(src, strings.TrimPrefix(original, importRoot))
	if !isCopy {
		text = importLine.ReplaceAll(text, []byte(`import "`+importRoot))
		return io.NopCloser(bytes.NewReader(text)), err
	}
	text = packageLine.ReplaceAll(text, []byte("package rpcbench.pooled."))
	text = goPackageLine.ReplaceAll(text, []byte(`option go_package = "`+pooledPackage+`";`))
	return io.NopCloser(bytes.NewReader(text)), err
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
