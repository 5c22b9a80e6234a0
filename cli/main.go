// Package cli is the command rpcbench, for your stacks: a program whose main function calls Main has all commands of
// rpcbench except init.
package cli

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/command"
)

// Main carries out the command line for the given stacks and workloads, whose names must differ. The workloads are
// added to those that rpcbench list prints. If the stacks serve a method of your own, the workloads replace the list.
//
// If the command fails, Main ends the program: with exit status 2 for a wrong command line, 3 if a stack takes more
// than run -max or count -max allows, 4 if that of run could not be decided, and 1 for anything else that fails. The
// commands start the program again as their child processes, so nothing may come before Main in the main function.
func Main(stacks []rpcbench.Stack, workloads ...rpcbench.Workload) {
	command.Main(nil, stacks, workloads...)
}
