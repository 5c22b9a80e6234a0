//go:build !goexperiment.jsonv2

package roster

import "github.com/rpcbench/rpcbench"

func experimental() []rpcbench.Stack { return nil }
