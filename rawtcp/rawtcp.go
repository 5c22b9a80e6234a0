// Package rawtcp serves and calls the create-user API with length-prefixed protobuf frames on a TCP connection and no
// framework: the floor of the line-up. Any extra time of another protobuf stack is the cost of its protocol and its library.
//
// A client sends a frame and reads the reply's frame, in turns. A frame is 4 bytes with the length of its payload,
// big-endian, a byte with its kind, and the payload, which is a generated type.
package rawtcp

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
)

// New makes fresh buffers for every call: one for the frame it sends, one for the payload it reads.
func New() rpcbench.Stack {
	return rpcbench.Stack{
		Name:     "rawtcp",
		Protocol: "tcp/proto",
		Traits: rpcbench.Traits{
			Codec:       "google.golang.org/protobuf",
			Multiplexed: true, // callers on one connection take turns
			InvalidUTF8: codec.Rejected,
		},
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			return rpcbench.ServeConns(config, newServer(config).serve), nil
		},
		Dial: dial,
	}
}
