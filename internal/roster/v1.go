//go:build !go1.27 || !goexperiment.jsonv2

package roster

import "github.com/rpcbench/rpcbench"

func experimental() []rpcbench.Stack { return nil }
