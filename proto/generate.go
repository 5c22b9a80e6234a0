// Package proto holds the .proto files, the generated Go beside them and the line that makes one of the other.
//
// The path of a file is its path in this folder after "rpcbench/", in imports too. The generated Go registers that path
// for the whole process, and two files of one path panic when a program starts: "user/v1/user.proto" would be
// somebody's. To protoc, the folder is -I rpcbench=proto. The types of message/pooledpb, which vtprotobuf takes from
// pools, are made of copies of the same files, under "rpcbench/pooled/".
//
// Compiler and plugins are pinned in tools/go.mod, outside the library's dependency graph.
package proto

//go:generate go -C ../tools run ./genproto
