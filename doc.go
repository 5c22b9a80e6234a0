// Package rpcbench compares ways to serve and call one API in Go: gRPC with protobuf, JSON over HTTP, and others.
//
// A [Stack] is one of these ways: a transport, a wire format, and the libraries that implement them. Nine packages make
// stacks. Each has a function New, and further functions for its variants:
//
//   - [github.com/rpcbench/rpcbench/grpcprotobuf]: gRPC with protobuf, by grpc-go
//   - [github.com/rpcbench/rpcbench/httpjson]: JSON over HTTP/1.1, by net/http and encoding/json
//   - [github.com/rpcbench/rpcbench/httpjsoniter]: JSON over HTTP/1.1, by net/http and json-iterator
//   - [github.com/rpcbench/rpcbench/stacks/grpcservehttp]: gRPC with protobuf, by grpc-go inside net/http's server
//   - [github.com/rpcbench/rpcbench/stacks/connectrpc]: the Connect, gRPC and gRPC-Web protocols, by connect-go
//   - [github.com/rpcbench/rpcbench/stacks/httpprotobuf]: protobuf over HTTP/1.1, without gRPC
//   - [github.com/rpcbench/rpcbench/stacks/httpmsgpack]: MessagePack over HTTP/1.1
//   - [github.com/rpcbench/rpcbench/stacks/httpxml]: XML over HTTP/1.1
//   - [github.com/rpcbench/rpcbench/stacks/rawtcp]: protobuf on a bare TCP connection, the lower bound
//
// A [Fixture] is a running server of a stack and a client that is connected to it. [Start] makes one of any stack.
//
// A [Call] is one request, prepared once by [Client] and made as often as you like. Each time it encodes, sends,
// receives, decodes and compares the reply. Calls are what benchmarks time. Give them [context.Background]: a deadline
// costs one stack more than another.
//
// Package [github.com/rpcbench/rpcbench/stacks] lists all stacks. Package [github.com/rpcbench/rpcbench/stacktest]
// proves and times a stack, also yours: [NewValidator], [Answer], [Check], [CallError] and [ServeConns] help to write
// one. The command cmd/rpcbench compares stacks; package cli makes such a command of yours. docs/guarantees.md lists
// what the measurements guarantee, with the tests.
package rpcbench
