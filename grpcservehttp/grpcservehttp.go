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
func New() rpcbench.Stack { return transport().Stack("grpcservehttp", nil) }

// VT encodes and decodes with vtprotobuf's generated methods instead of reflection. They don't look at UTF-8, and they
// leave out a negative zero.
func VT() rpcbench.Stack { return transport().VT("grpcservehttp.vt") }

func transport() grpcapi.Transport {
	serve := func(config rpcbench.ServerConfig, options ...grpc.ServerOption) rpcbench.Server {
		return httpapi.NewServer(config, grpcapi.NewServer(config, options...), true)
	}
	return grpcapi.Transport{Libraries: []string{"google.golang.org/grpc", "net/http"}, Serve: serve}
}
