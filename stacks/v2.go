//go:build go1.27 && goexperiment.jsonv2

package stacks

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/httpjson"
)

func jsonV2() []rpcbench.Stack { return []rpcbench.Stack{httpjson.V2()} }
