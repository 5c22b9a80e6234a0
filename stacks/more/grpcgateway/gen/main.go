// Gen writes ../userservice: what protoc-gen-grpc-gateway makes of the user service and of ../gateway.yaml. The
// descriptors are those that the main module registers, so that the .proto files have no annotations.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"

	"github.com/rpcbench/rpcbench/proto/userservice"
)

const module = "github.com/rpcbench/rpcbench/"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run() error {
	service := userservice.File_rpcbench_user_v1_user_service_proto
	req := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{service.Path()},
		ProtoFile:      add(nil, service),
		Parameter: new("standalone=true,paths=source_relative,grpc_api_configuration=gateway.yaml,M" + service.Path() + "=" +
			module + "proto/userservice/userservicegrpc"),
	}
	in, err := proto.Marshal(req)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "tool", "protoc-gen-grpc-gateway")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	resp := new(pluginpb.CodeGeneratorResponse)
	if err := proto.Unmarshal(out, resp); err != nil {
		return err
	}
	if resp.GetError() != "" || len(resp.File) != 1 {
		return fmt.Errorf("%d files: %s", len(resp.File), resp.GetError())
	}
	return os.WriteFile("userservice/user_service.pb.gw.go", []byte(resp.File[0].GetContent()), 0o666)
}

// add appends f after what it imports.
func add(files []*descriptorpb.FileDescriptorProto, f protoreflect.FileDescriptor) []*descriptorpb.FileDescriptorProto {
	for _, have := range files {
		if have.GetName() == f.Path() {
			return files
		}
	}
	for i := range f.Imports().Len() {
		files = add(files, f.Imports().Get(i).FileDescriptor)
	}
	return append(files, protodesc.ToFileDescriptorProto(f))
}
