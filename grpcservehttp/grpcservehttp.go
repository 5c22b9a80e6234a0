// Package grpcservehttp serves the create-user API with grpc-go's ServeHTTP inside net/http's HTTP/2 server, in clear
// unless the fixture has TLS, and calls it with grpc-go's own client: protobuf, no compression.
package grpcservehttp

import (
	"google.golang.org/grpc"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/binding/pb"
	"github.com/rpcbench/rpcbench/internal/grpcapi"
	"github.com/rpcbench/rpcbench/internal/httpapi"
)

// New uses both libraries' defaults but for the limits that every server has.
func New() rpcbench.Stack { return stack("grpcservehttp", "grpc/proto", traits(), nil, nil) }

// VT encodes and decodes with vtprotobuf's generated methods instead of reflection. They don't look at UTF-8, and they
// leave out a negative zero.
func VT() rpcbench.Stack {
	return stack("grpcservehttp.vt", "grpc/proto", pb.VTTraits(traits()),
		[]grpc.ServerOption{grpc.ForceServerCodecV2(grpcapi.VT())},
		[]grpc.DialOption{grpc.WithDefaultCallOptions(grpc.ForceCodecV2(grpcapi.VT()))})
}

func traits() rpcbench.Traits { return grpcapi.Traits("google.golang.org/grpc", "net/http") }

func stack(name, protocol string, t rpcbench.Traits, server []grpc.ServerOption, client []grpc.DialOption) rpcbench.Stack {
	return rpcbench.Stack{
		Name: name, Protocol: protocol, Traits: t,
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			return httpapi.NewServer(config, grpcapi.NewServer(config, server...), true), nil
		},
		Dial: func(config rpcbench.ClientConfig) (rpcbench.Client, error) { return grpcapi.Dial(config, client...) },
	}
}
