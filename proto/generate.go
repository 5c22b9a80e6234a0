// Package proto holds the .proto files, the Go code that is generated from them, and the line that generates it.
//
// Imports are relative to this folder: call protoc with -I proto, and grpcurl with -import-path proto. The generated
// code registers each path after "rpcbench/" for the whole process, because a program in which two files have the same
// path panics when it starts. The plain structs Flex and Pair of package rpcbench are generated from message/v1.
// Compiler and plugins are pinned in internal/tools/go.mod, outside the library's dependency graph.
package proto

//go:generate go -C ../internal/tools run ./genproto
