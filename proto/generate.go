// Package proto holds the .proto files, the generated Go beside them and the line that makes one of the other.
//
// Imports are relative to this folder: protoc takes -I proto, grpcurl -import-path proto. The generated Go registers each
// path after "rpcbench/" for the whole process, since two files of one path panic when a program starts, and
// "user/v1/user.proto" would be somebody's. The types of message/pooledpb, which vtprotobuf takes from
// pools, are made of copies of the same files, under "rpcbench/pooled/".
//
// Compiler and plugins are pinned in tools/go.mod, outside the library's dependency graph.
package proto

//go:generate go -C ../tools run ./genproto
