// Bench is rpcbench for net/rpc: the command with this module's stack beside two others, and a workload of its own.
package main

import (
	netrpc "example.com/outsider"
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/cli"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
)

func main() {
	cli.Main([]rpcbench.Stack{netrpc.New(), httpjson.New(), grpcprotobuf.New()},
		rpcbench.Workload{Name: "busy", Title: "2 kB over TLS, 30 callers", Callers: 30, TLS: true, Payload: "2kB"})
}
