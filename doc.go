// Package rpcbench compares ways to serve and call one API in Go: gRPC with protobuf, JSON over HTTP, and others, each
// in a package of its own. This package is the contract they share: the create-user API, its validation and errors, and
// [Start], which runs a server and a client of any stack as a fixture.
//
// Benchmarks are in bench_test.go. The command cmd/rpcbench compares stacks with verdicts, as docs/method.md explains.
// Package stacktest has the suite that proves a stack and the loops that time it, for anybody's stack. What the
// measurements promise, and which test holds each promise, is in docs/properties.md.
package rpcbench
