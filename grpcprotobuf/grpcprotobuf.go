// Package grpcprotobuf serves and calls the create-user API with grpc-go over its own HTTP/2 implementation: protobuf,
// generated client and server, no compression unless a variant says otherwise.
package grpcprotobuf

import (
	"runtime"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/grpcapi"
)

// New uses the library's defaults but for the limits that every server has.
func New() rpcbench.Stack {
	return stack("grpcprotobuf", func(*rpcbench.Traits) {}, nil, nil)
}

// VT encodes and decodes with vtprotobuf's generated methods instead of reflection. They don't look at UTF-8, and they
// leave out a negative zero.
func VT() rpcbench.Stack {
	return stack("grpcprotobuf.vt", func(t *rpcbench.Traits) {
		t.Codec, t.InvalidUTF8 = "github.com/rpcbench/rpcbench/proto/user/v1", rpcbench.Kept
		t.Lossy = []string{"negative zero"}
	}, []grpc.ServerOption{grpc.ForceServerCodecV2(grpcapi.VT())},
		[]grpc.DialOption{grpc.WithDefaultCallOptions(grpc.ForceCodecV2(grpcapi.VT()))})
}

// Gzip compresses requests and replies. The options are deprecated in favour of a registry, which would make every
// client of the process ask for gzip.
func Gzip() rpcbench.Stack {
	return stack("grpcprotobuf.gzip", func(t *rpcbench.Traits) { t.Compression = "gzip" },
		//lint:ignore SA1019 see above
		[]grpc.ServerOption{grpc.RPCCompressor(grpc.NewGZIPCompressor()), grpc.RPCDecompressor(grpc.NewGZIPDecompressor())},
		//lint:ignore SA1019 see above
		[]grpc.DialOption{grpc.WithCompressor(grpc.NewGZIPCompressor()), grpc.WithDecompressor(grpc.NewGZIPDecompressor())})
}

// Tuned sets documented options of both sides. Figures are the tuned stack's time against the same without the one option,
// with its 95 % interval, at GOMAXPROCS=1 (results/2026-11-20-epyc-2vcpu/tuned.txt; BenchmarkTuned of commit c16e339).
//
//   - NumStreamWorkers: handlers run on goroutines that stay, whose stacks have grown: 0.910 (0.905–0.917).
//   - Static flow-control windows of a body's largest size: no bandwidth estimate, whose pings and window updates cost 47
//     bytes each way per call: 0.955 (0.947–0.961).
//
// Left out, since their intervals held 1 or lay above it: read and write buffers of 4 and 128 kB, no retry, no health check,
// no idle timeout, no buffer pool, WaitForHandlers, MaxConcurrentStreams. In grpc-go 1.85 the shared write buffer and pooled
// buffers for reading frames are defaults, so New has them.
func Tuned() rpcbench.Stack {
	const window = rpcbench.MaxBody
	s := stack("grpcprotobuf.tuned", func(*rpcbench.Traits) {}, nil, []grpc.DialOption{
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window),
	})
	s.Server = func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
		return newServer(config, []grpc.ServerOption{
			grpc.NumStreamWorkers(uint32(runtime.GOMAXPROCS(0))),
			grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window),
		}), nil
	}
	return s
}

func stack(name string, change func(*rpcbench.Traits), server []grpc.ServerOption, client []grpc.DialOption) rpcbench.Stack {
	s := rpcbench.Stack{
		Name:     name,
		Protocol: "grpc/proto",
		Traits: rpcbench.Traits{
			Codec:       "google.golang.org/protobuf",
			HTTP:        "2",
			Server:      []string{"google.golang.org/grpc"},
			Client:      []string{"google.golang.org/grpc"},
			Multiplexed: true,
			InvalidUTF8: rpcbench.Rejected,
		},
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) { return newServer(config, server), nil },
		Dial: func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
			return grpcapi.Dial(config, client...)
		},
	}
	change(&s.Traits)
	if s.Traits.Compression != "" {
		s.Protocol += "/gzip" // a server without it refuses compressed requests
	}
	return s
}

type server struct{ *grpc.Server }

func (s server) Close() error {
	s.Stop()
	return nil
}

func newServer(config rpcbench.ServerConfig, options []grpc.ServerOption) rpcbench.Server {
	if config.TLS != nil {
		options = append([]grpc.ServerOption{grpc.Creds(credentials.NewTLS(config.TLS))}, options...)
	}
	return server{grpcapi.NewServer(config, options...)}
}
