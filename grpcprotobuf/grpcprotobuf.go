// Package grpcprotobuf serves and calls the create-user API with grpc-go over its own HTTP/2 implementation: protobuf,
// generated client and server, no compression unless a variant says otherwise.
package grpcprotobuf

import (
	"runtime"

	"google.golang.org/grpc"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/grpcapi"
)

// New uses the library's defaults but for the limits that every server has.
func New() rpcbench.Stack { return transport().Stack("grpcprotobuf", nil) }

// VT encodes and decodes with vtprotobuf's generated methods instead of reflection. They don't look at UTF-8, and they
// leave out a negative zero.
func VT() rpcbench.Stack { return transport().VT("grpcprotobuf.vt") }

// Gzip compresses requests and replies. The options are deprecated in favour of a registry, which would make every
// client of the process ask for gzip. Its protocol is another, since a server without it refuses compressed requests.
func Gzip() rpcbench.Stack {
	//lint:ignore SA1019 see above
	zip, unzip := grpc.NewGZIPCompressor, grpc.NewGZIPDecompressor
	s := transport().Stack("grpcprotobuf.gzip",
		//lint:ignore SA1019 see above
		[]grpc.ServerOption{grpc.RPCCompressor(zip()), grpc.RPCDecompressor(unzip())},
		//lint:ignore SA1019 see above
		grpc.WithCompressor(zip()), grpc.WithDecompressor(unzip()))
	s.Protocol, s.Traits.Compression = "grpc/proto/gzip", "gzip"
	return s
}

// Tuned sets documented options of both sides. Figures are the tuned stack's time against the same without the one
// option, with its 95 % interval, at GOMAXPROCS=1 (results/2026-11-20-epyc-2vcpu/tuned.txt; BenchmarkTuned of commit
// c16e339).
//
//   - NumStreamWorkers: handlers run on goroutines that stay, whose stacks have grown: 0.910 (0.905–0.917).
//   - Static flow-control windows of a body's largest size: no bandwidth estimate, whose pings and window updates cost
//     47 bytes each way per call: 0.955 (0.947–0.961).
//
// Left out, since their intervals held 1 or lay above it: read and write buffers of 4 and 128 kB, no retry, no health
// check, no idle timeout, no buffer pool, WaitForHandlers, MaxConcurrentStreams. In grpc-go 1.85 the shared write
// buffer and pooled buffers for reading frames are defaults, so New has them.
func Tuned() rpcbench.Stack {
	const window = rpcbench.MaxBody
	s := transport().Stack("grpcprotobuf.tuned", nil,
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window))
	s.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		workers := uint32(runtime.GOMAXPROCS(0)) // as many as there are when the server is made
		return grpcapi.OwnServer(config, grpc.NumStreamWorkers(workers),
			grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window)), nil
	}
	return s
}

func transport() grpcapi.Transport {
	return grpcapi.Transport{Libraries: []string{"google.golang.org/grpc"}, Serve: grpcapi.OwnServer}
}
