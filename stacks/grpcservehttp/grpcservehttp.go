// Package grpcservehttp serves and calls the create-user API with grpc-go inside net/http's HTTP/2 server. It uses
// protobuf, grpc-go's ServeHTTP and grpc-go's own client. Nothing is compressed. Protobuf refuses a string that is no
// UTF-8.
package grpcservehttp

import (
	"google.golang.org/grpc"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/grpcapi"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
)

// New uses the defaults of both libraries, with the limits that every server has.
func New() rpcbench.Stack { return transport().Stack("grpcservehttp", nil) }

// VT encodes and decodes with vtprotobuf's generated methods instead of reflection. These methods do not check UTF-8,
// and turn a negative zero into zero.
func VT() rpcbench.Stack { return transport().VT("grpcservehttp.vt") }

func transport() grpcapi.Transport {
	serve := func(config rpcbench.ServerConfig, options ...grpc.ServerOption) rpcbench.Server {
		return httpapi.NewServer(config, grpcapi.NewServer(config, options...), true)
	}
	return grpcapi.Transport{Libraries: []string{"google.golang.org/grpc", "net/http"}, Serve: serve}
}
