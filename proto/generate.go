// Package proto holds the .proto files, the generated Go beside them and the line that makes one of the other.
//
// Imports are relative to this folder: protoc takes -I proto, grpcurl -import-path proto. The generated Go registers
// each path after "rpcbench/" for the whole process: two files of one path panic when a program starts. The plain
// structs of package message are made of message/v1. The study's messages are in study/catalogue/cataloguepb. Compiler
// and plugins are pinned in internal/tools/go.mod, outside the library's dependency graph.
package proto

//go:generate go -C ../internal/tools run ./genproto
