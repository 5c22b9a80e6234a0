// Rpcbench compares ways to serve and call an API, such as gRPC and JSON over HTTP, and says how far its answer is to
// be trusted. Each command prints its flags with -h.
//
//	rpcbench run                               gRPC with JSON, at five workloads, in about two minutes
//	rpcbench run httpjson@HEAD~1 httpjson      a build with another: commits, Go releases, module versions
//	rpcbench run -proto orders.proto ...       the same for your own method and messages
//	rpcbench count grpcprotobuf                bytes, allocations and writes of a call, and a gate for them
//	rpcbench idle 1000 grpcprotobuf            memory at rest: what a connection takes while nothing happens
//	rpcbench init -proto orders.proto ...      a module that compares stacks of your method, to keep
//	rpcbench report folder...                  the report of a run, or one answer of several
//	rpcbench explain httpjson grpcprotobuf     which layer takes the CPU time of a call
//	rpcbench bound cpu.pprof                   what another stack could save your service, by a profile of it
//	rpcbench serve                             servers of the stacks, for curl, grpcurl or another machine
//	rpcbench list                              the stacks and the workloads
//	rpcbench version                           commit, Go release, machine and versions of libraries
//
// A result has the ratio of a stack to the base, with a 95 % interval and a verdict: less, more, same or undecided. The
// folder of a run has it for people, in report.html, and for programs, in summary.json and bench.txt.
//
// Bad input is one line on standard error. The exit status is 2 for a wrong command line, 3 for a stack above -max, 4
// for a -max that is not decided, and 1 for anything else that fails. What was measured before is kept.
//
// docs/running.md is the guide to these commands, docs/flags.md has all flags, and docs/gate.md is about pull requests.
// docs/method.md says how run measures and decides, docs/own-message.md is about your own method, docs/service.md
// about the profile of a service, and docs/wire.md about what the servers answer.
package main

import (
	"github.com/rpcbench/rpcbench/internal/command"
	"github.com/rpcbench/rpcbench/internal/scaffold"
	"github.com/rpcbench/rpcbench/stacks"
)

func main() { command.Main(scaffold.Make, stacks.All()) }
