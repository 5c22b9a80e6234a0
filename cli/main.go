// Package cli is the command rpcbench: a program whose main function calls Main has its commands, but for init.
package cli

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/command"
)

// Main carries out the command line of a program that has these stacks and workloads, each with a name of its own. The
// workloads come after those of rpcbench list. Stacks that serve a method of one's own have a list of their own, which
// the workloads replace.
//
// Main does not return if the command fails: the exit status is 2 for a wrong command line, 3 for a contestant above
// what run -max or -max-counts allows, 4 for a -max that is not decided, 1 for anything else that fails. The processes
// that the commands start are the program again, so Main comes first in its main function.
func Main(stacks []rpcbench.Stack, workloads ...rpcbench.Workload) {
	command.Main(nil, stacks, workloads...)
}
