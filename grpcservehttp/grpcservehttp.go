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
	traits := rpcbench.Traits{Codec: "google.golang.org/protobuf", InvalidUTF8: rpcbench.Rejected}
	return stack("grpcservehttp", traits, nil, nil)
}

// VT encodes and decodes with vtprotobuf's generated methods instead of reflection. They don't look at UTF-8, and they
// leave out a negative zero.
func VT() rpcbench.Stack {
	traits := rpcbench.Traits{
		Codec:       "github.com/rpcbench/rpcbench/proto/user/v1",
		InvalidUTF8: rpcbench.Kept,
		Lossy:       []string{"negative zero"},
	}
	return stack("grpcservehttp.vt", traits,
		[]grpc.ServerOption{grpc.ForceServerCodecV2(grpcapi.VT())},
		[]grpc.DialOption{grpc.WithDefaultCallOptions(grpc.ForceCodecV2(grpcapi.VT()))})
}

func stack(name string, traits rpcbench.Traits, server []grpc.ServerOption, client []grpc.DialOption) rpcbench.Stack {
	traits.HTTP, traits.Multiplexed = "2", true
	traits.Server, traits.Client = []string{"google.golang.org/grpc", "net/http"}, []string{"google.golang.org/grpc"}
	return rpcbench.Stack{
		Name:     name,
		Protocol: "grpc/proto",
		Traits:   traits,
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			return httpapi.NewServer(config, grpcapi.NewServer(config, server...), true), nil
		},
		Dial: func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
			return grpcapi.Dial(config, client...)
		},
	}
}
