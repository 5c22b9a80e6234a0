// Package stacks lists every stack of this module. Importing this package compiles all of their libraries. Each package
// makes its stack by a function New, and variants by further functions:
//
//   - [github.com/rpcbench/rpcbench/grpcprotobuf]: gRPC with protobuf, by grpc-go
//   - [github.com/rpcbench/rpcbench/httpjson]: JSON over HTTP/1.1, by net/http and encoding/json
//   - [github.com/rpcbench/rpcbench/httpjsoniter]: JSON over HTTP/1.1, by net/http and json-iterator
//   - [github.com/rpcbench/rpcbench/stacks/grpcservehttp]: gRPC with protobuf, by grpc-go inside net/http's server
//   - [github.com/rpcbench/rpcbench/stacks/connectrpc]: the Connect, gRPC and gRPC-Web protocols, by connect-go
//   - [github.com/rpcbench/rpcbench/stacks/connectrpc2]: the same protocols, by version 2 of connect-go
//   - [github.com/rpcbench/rpcbench/stacks/httpprotobuf]: protobuf over HTTP/1.1, without gRPC
//   - [github.com/rpcbench/rpcbench/stacks/httpmsgpack]: MessagePack over HTTP/1.1
//   - [github.com/rpcbench/rpcbench/stacks/httpxml]: XML over HTTP/1.1
//   - [github.com/rpcbench/rpcbench/stacks/rawtcp]: protobuf on a bare TCP connection, the lower bound
package stacks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/httpjsoniter"
	"github.com/rpcbench/rpcbench/stacks/connectrpc"
	"github.com/rpcbench/rpcbench/stacks/connectrpc2"
	"github.com/rpcbench/rpcbench/stacks/grpcservehttp"
	"github.com/rpcbench/rpcbench/stacks/httpmsgpack"
	"github.com/rpcbench/rpcbench/stacks/httpprotobuf"
	"github.com/rpcbench/rpcbench/stacks/httpxml"
	"github.com/rpcbench/rpcbench/stacks/rawtcp"
)

// Core returns the stack that New makes in each package. The first three answer "gRPC or JSON?": grpcprotobuf, httpjson
// and httpjsoniter.
func Core() []rpcbench.Stack {
	return []rpcbench.Stack{
		grpcprotobuf.New(), httpjson.New(), httpjsoniter.New(),
		grpcservehttp.New(), connectrpc.New(), connectrpc2.New(), httpprotobuf.New(), httpmsgpack.New(), httpxml.New(),
		rawtcp.New(),
	}
}

// All returns every stack: those of Core, then their variants, then httpjson.v2 if this build has encoding/json/v2.
func All() []rpcbench.Stack {
	return slices.Concat(Core(), []rpcbench.Stack{
		grpcprotobuf.Tuned(), grpcprotobuf.Windows(), grpcprotobuf.VT(), grpcprotobuf.Gzip(), grpcservehttp.VT(),
		connectrpc.VT(), connectrpc.Gzip(), connectrpc.H2C(), connectrpc.GRPC(), connectrpc.GRPCWeb(), connectrpc.JSON(),
		connectrpc2.VT(), connectrpc2.Gzip(), connectrpc2.H2C(), connectrpc2.GRPC(), connectrpc2.GRPCWeb(),
		connectrpc2.JSON(),
		httpjson.Decoder(), httpjson.Tuned(), httpjson.Gzip(), httpjson.H2C(),
		httpjson.Default(), httpjsoniter.Fastest(),
	}, jsonV2())
}

// Find returns the stacks with the given names. The error for an unknown name lists all names.
func Find(names ...string) (found []rpcbench.Stack, err error) {
	all := All()
	var known []string
	for _, s := range all {
		known = append(known, s.Name)
	}
	const unknown = "unknown stack %q: the stacks are %s (httpjson.v2 with Go 1.27 and later)"
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			return nil, fmt.Errorf(unknown, name, strings.Join(known, ", "))
		}
		found = append(found, all[i])
	}
	return found, nil
}
