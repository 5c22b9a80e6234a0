// Package roster is the literal list of all stacks. The benchmark file and the command import it, and no stack does.
package roster

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/grpcservehttp"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/httpjsoniter"
)

// All returns every stack, main values and variants.
func All() []rpcbench.Stack {
	return []rpcbench.Stack{
		grpcprotobuf.New(),
		httpjson.New(),
		httpjsoniter.New(),
		grpcservehttp.New(),
		grpcprotobuf.VT(),
		grpcprotobuf.Gzip(),
		httpjson.Stream(),
		httpjson.Gzip(),
		httpjson.H2C(),
		httpjsoniter.Fastest(),
		grpcservehttp.VT(),
	}
}
