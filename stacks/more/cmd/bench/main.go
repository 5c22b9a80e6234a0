// Bench is rpcbench with every stack: those of the main module and those of this one.
package main

import (
	"github.com/rpcbench/rpcbench/cli"
	"github.com/rpcbench/rpcbench/stacks"
	"github.com/rpcbench/rpcbench/stacks/more"
)

func main() {
	cli.Main(append(stacks.All(), more.All()...))
}
