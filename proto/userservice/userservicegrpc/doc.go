// Package userservicegrpc has the client and the server of the user service that grpc-go's generator makes.
package userservicegrpc

import _ "github.com/rpcbench/rpcbench/proto/userservice" // the descriptor, which server reflection looks up by name
