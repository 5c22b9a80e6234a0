//go:build !go1.27 || !goexperiment.jsonv2

package stacks

import "github.com/rpcbench/rpcbench"

func jsonV2() []rpcbench.Stack { return nil }
