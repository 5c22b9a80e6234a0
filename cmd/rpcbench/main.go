// Rpcbench compares stacks, and says how far its comparisons are to be trusted.
//
//	rpcbench run [-out folder] [-thorough] [-workloads name,...] [-time 2s] [-processes 8] [-base httpjson] [-seed n]
//		[-v] [stack[@build]...]
//	rpcbench run [-rate 1000,5000,saturated] [-callers 30] [-conns 4] [-apart] [-tls] [-unix]
//		[-message flex.1kB] [-payload 2kB] [-new-connections] [-stream] [-headers] [-link 40ms/10Mbps] [-gomaxprocs 4]
//		[stack[@build]...]
//	rpcbench run -server stack=host:port,... [stack...]
//	rpcbench run [-equal 2] [-max 1.05] [-max-counts 1.02] -base stack@build stack[@build]
//	rpcbench run -max-counts 1.02 -base stack@build stack[@build]
//
// answers "gRPC or JSON?" for the workloads that services have: an ordinary load, a saturated server, one caller at
// a time, one core; small, structured and binary messages, streams, new connections, headers, a slow link. Each stack,
// grpcprotobuf unless named, is compared with the base at each: short slices of both in turn, in eight processes one
// after the other. A stack takes about two minutes: five workloads, two seconds of each stack, processes of this build.
// -thorough takes half an hour: all workloads, for longer, and processes of several links. The folder then has
// report.html, report.md, answer.svg, summary.json, and bench.txt, which benchstat reads and which has a line for each
// process. An interrupted run keeps what was measured. A process that fails is measured again once.
//
// The flags of the second line make a workload, which is then measured alone. A payload goes both ways; 1 kB is 1000
// bytes. A stack without streams makes calls; -stream needs one that has them. -apart gives each server a process of
// its own, whose CPU the report shows beside the sum. At a -rate calls begin at planned times, and CPU time is what is
// compared. An ordinary load is a rate at which the base takes about a quarter of the machine: run looks for it first.
// A list in -rate, -callers, -conns or -gomaxprocs is a sweep: one picture over all values. -server names servers that
// run already, of the base and of each stack, as serve prints them. Times are then what a caller waits, CPU is the
// client's, and the output says "proved: no".
//
// The output has a line for each workload, below a heading that says what is measured: CPU per call, what a caller
// waits, or time per call. Each ratio has an interval, and a verdict that the interval gives: less, more, same (within
// 2 %) or undecided; summary.json calls the first three faster, slower and equal. Reasons are in the report, and -v
// prints them. The base takes part twice: how far it differs from its own copy, and a tenth of how far it varied, is
// the noise floor, and no smaller difference is reported. -seed decides the order of everything. -equal is the margin.
//
// -max is a gate for pull requests. The exit status is 3 if a stack takes more than it allows: by the lower end of the
// leading interval, and beyond the noise floor. It is 4 if twice the allowed excess could not have been seen.
// -max-counts does the same for allocations, bytes on the wire and writes of one caller, where 1 allows no growth, and
// measures no time without -max. docs/running.md has a workflow.
//
// Where functions lie in a program moves a ratio by a percent. So with -thorough, -max or builds the processes are
// spread over eight links of the program's own main package, and the interval is one of that source. Else, or away from
// the module and from the go command, it is one of this program.
//
// A build is a git revision (HEAD~3), a Go release (go1.26.8), a version of a module (google.golang.org/grpc@v1.80.0)
// or KEY=VALUE in the environment of the build and of its processes (GOEXPERIMENT=nojsonv2). A stack without a build
// is measured as the source lies. If a stack names a build and -base is absent, the first stack is the base. Arms of
// different builds run in processes of their own, which take turns, for four times as long. The programs are linked in
// a temporary folder first, and are deleted at the end.
//
//	rpcbench run -reply order.json [-request get.json] [flags of run]
//	rpcbench run -proto orders.proto [-I folder] -call shop.v1.Orders/Get -request get.json -reply order.json
//		[flags of run]
//	rpcbench run -request-size 100B -reply-size 2kB [flags of run]
//	rpcbench init -reply … -out module
//
// compares the stacks on a call of yours, with your messages: JSON in files, or in folders of them. Without -proto, a
// .proto is made of these samples, and lies in the folder as schema.proto. -protoset takes a descriptor set in place of
// -proto. Sizes make structured data, as JSON of these bytes. init writes the Go module that run makes in a temporary
// folder. docs/own-message.md says more.
//
//	rpcbench report [-out folder] folder
//
// makes report.html, report.md and answer.svg of a folder of run. No file is overwritten.
//
//	rpcbench explain [-workload small] [-callers 30] [-conns 4] [-gomaxprocs 1] [-time 20s] [-keep folder]
//		stack|profile [stack|profile]
//	rpcbench explain [-ratios folder] [-timeout 1m] profile|URL
//
// splits the CPU time of a call among layers, or the difference between two. Of the CPU profile of any other Go program
// it says how much another stack could save, at most or by the ratios of a run. -callers and -conns change the
// workload. -keep writes the profile of each stack to a new folder, which go tool pprof and explain read.
//
//	rpcbench serve [-addr 127.0.0.1] [-port 0] [stack...]
//
// serves each stack, all unless named, on a port of its own. TERM or an interrupt ends it at once, with calls under
// way. The first line that it prints is the value of -server of run: stack=host:port,… The other lines
// are commands that create a user: curl for JSON over HTTP/1.1, grpcurl for gRPC. Of other stacks they name the
// protocol. Servers of gRPC stacks also answer gRPC's reflection service. There is no TLS and no password: give an
// address other than the default only on a network that you trust. docs/wire.md says what the servers answer.
//
//	rpcbench list
//	rpcbench version
//
// list names all stacks and workloads. version prints the commit, the machine and the versions of libraries.
//
// Bad input is one line on standard error. The exit status is 2 for a wrong command line, 3 for a stack above -max or
// -max-counts, 4 for a -max that is not decided, 1 for anything else that fails. What was measured before is printed.
// Progress shows on a terminal; elsewhere run prints a line a minute.
//
// docs/method.md explains the method. Examples:
//
//	rpcbench run -out all grpcprotobuf connectrpc httpxml
//	rpcbench run -out variants -base grpcprotobuf -workloads small,small-apart grpcprotobuf.tuned grpcservehttp
//	rpcbench run -thorough -out releases -workloads small,structured-1kB httpjson@go1.26.8 httpjson@go1.27.4
package main

import (
	"github.com/rpcbench/rpcbench/internal/command"
	"github.com/rpcbench/rpcbench/internal/scaffold"
	"github.com/rpcbench/rpcbench/stacks"
)

func main() { command.Main(scaffold.Make, stacks.All()) }
