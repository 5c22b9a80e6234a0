// Package grpcprotobuf serves and calls the create-user API with grpc-go and protobuf. Client and server are generated
// code over grpc-go's own HTTP/2. Only Gzip compresses. Protobuf refuses a string that is not UTF-8.
package grpcprotobuf

import (
	"context"
	"runtime"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding/pb"
	"github.com/rpcbench/rpcbench/internal/transport/grpcapi"
)

// New uses the library's defaults, with the limits that every server has.
func New() rpcbench.Stack { return transport().Stack("grpcprotobuf", nil) }

// VT encodes and decodes with vtprotobuf's generated methods instead of reflection. These methods do not check UTF-8,
// and turn a negative zero into zero.
func VT() rpcbench.Stack { return transport().VT("grpcprotobuf.vt") }

// Gzip compresses requests and replies. It uses options that grpc-go deprecates in favour of a registry, because the
// registry would make every client of the process ask for gzip. Its Protocol differs from New's, whose server refuses
// compressed requests.
func Gzip() rpcbench.Stack {
	//lint:ignore SA1019 see above
	zip, unzip := grpc.NewGZIPCompressor, grpc.NewGZIPDecompressor
	s := transport().Stack("grpcprotobuf.gzip",
		//lint:ignore SA1019 see above
		[]grpc.ServerOption{grpc.RPCCompressor(zip()), grpc.RPCDecompressor(unzip())},
		//lint:ignore SA1019 see above
		grpc.WithCompressor(zip()), grpc.WithDecompressor(unzip()))
	s.Protocol, s.Traits.Compression = "grpc/proto/gzip", rpcbench.CompressionGzip
	return s
}

// Tuned runs handlers on lasting goroutines and fixes the flow-control windows. Each figure is the time of a small call
// with the option, divided by the time without it, with a 95% interval, on one core with Go 1.27:
//
//   - NumStreamWorkers keeps the goroutines of handlers, so that their stacks need not grow again: 0.90 (0.89–0.91).
//   - Static windows as large as a body save the bandwidth estimate, whose pings and window updates send 47 bytes
//     in each direction per call: 0.95 (0.94–0.96). See [Windows].
//
// Other options did not help: buffers of 4 and 128 kB, no retry, no health check, no idle timeout, no buffer pool,
// WaitForHandlers, MaxConcurrentStreams. The shared write buffer and pooled read buffers are defaults of grpc-go 1.85.
// The figures are those of study/results/2026-11-27-epyc-2vcpu-windows/windows, where docs/stacks.md has 100 callers in
// two processes from. What did not help was tried with Go 1.26 (tuned.txt of 2026-11-20, commit 9a3de1b).
func Tuned() rpcbench.Stack {
	return windows("grpcprotobuf.tuned", func() uint32 { return uint32(runtime.GOMAXPROCS(0)) })
}

// Windows fixes the flow-control windows of client and server, and changes nothing else. grpc-go then has no bandwidth
// to estimate, and sends neither the pings of the estimate nor the window updates that follow.
//
// At an ordinary load of small calls that saves most of the CPU that gRPC takes more than JSON, but its median latency
// is no longer lower. docs/stacks.md has the figures, and says who should leave the defaults.
//
// The windows are as large as MaxBody, and a peer may send so much on each stream before anything is read.
func Windows() rpcbench.Stack { return windows("grpcprotobuf.windows", func() uint32 { return 0 }) }

// windows is a stack with static windows. workers is asked when a server is made, and 0 starts a goroutine for each
// handler.
func windows(name string, workers func() uint32) rpcbench.Stack {
	const window = rpcbench.MaxBody
	s := transport().Stack(name, nil, grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window))
	s.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		return grpcapi.OwnServer(config, grpc.NumStreamWorkers(workers()),
			grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window)), nil
	}
	return s
}

// Of makes a stack that serves and calls a method of your own as New does, with generated messages.
func Of[Q, A any, PQ pb.Message[Q], PA pb.Message[A]](m rpcbench.Method[Q, A]) rpcbench.Stack {
	return grpcapi.Of(New(), m)
}

// Handler makes a method of a handler that takes and returns generated messages. Of makes a stack of it, and so does Of
// of package httpjson where encoding/json sees the fields: not of opaque messages. proto.Equal compares answers, on
// every stack alike, and takes longer than an Equal of a Method, which is written out for the type.
func Handler[Q, A any, PQ pb.Message[Q], PA pb.Message[A]](name string,
	handle func(context.Context, *Q) (*A, error), requests ...*Q) rpcbench.Method[Q, A] {
	return rpcbench.Method[Q, A]{Name: name, Requests: requests, Handle: handle,
		Equal: func(want, got *A) bool { return proto.Equal(PA(want), PA(got)) }}
}

func transport() grpcapi.Transport {
	return grpcapi.Transport{Libraries: []string{"google.golang.org/grpc"}, Serve: grpcapi.OwnServer}
}
