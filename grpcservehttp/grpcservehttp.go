// Package grpcservehttp serves the create-user API with grpc-go's ServeHTTP inside net/http's HTTP/2 server, in clear
// unless the fixture has TLS, and calls it with grpc-go's own client: protobuf, no compression.
package grpcservehttp

import (
	"google.golang.org/grpc"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/grpcapi"
	"github.com/rpcbench/rpcbench/internal/httpapi"
)

// New uses both libraries' defaults but for the limits that every server has.
func New() rpcbench.Stack {
	return stack("grpcservehttp", "google.golang.org/protobuf", rpcbench.Rejected, nil, nil)
}

// VT encodes and decodes with vtprotobuf's generated methods instead of reflection. They don't look at UTF-8.
func VT() rpcbench.Stack {
	return stack("grpcservehttp.vt", "github.com/rpcbench/rpcbench/proto/user/v1", rpcbench.Kept,
		[]grpc.ServerOption{grpc.ForceServerCodecV2(grpcapi.VT())},
		[]grpc.DialOption{grpc.WithDefaultCallOptions(grpc.ForceCodecV2(grpcapi.VT()))})
}

func stack(name, codec, invalidUTF8 string, server []grpc.ServerOption, client []grpc.DialOption) rpcbench.Stack {
	return rpcbench.Stack{
		Name:     name,
		Protocol: "grpc/proto",
		Traits:   rpcbench.Traits{Codec: codec, HTTP: "2", Multiplexed: true, InvalidUTF8: invalidUTF8},
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			return httpapi.NewServer(config, grpcapi.NewServer(server...), true), nil
		},
		Dial: func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
			return grpcapi.Dial(config, client...)
		},
	}
}
