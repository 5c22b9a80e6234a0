// Package userservicegrpc is the user service for grpc-go: what its generator makes of the .proto file.
package userservicegrpc

import _ "github.com/rpcbench/rpcbench/proto/userservice" // the descriptor, which server reflection looks up by name
