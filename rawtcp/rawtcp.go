// Package rawtcp serves and calls the create-user API with length-prefixed protobuf frames on a TCP connection and no
// framework: the floor of the line-up. What another protobuf stack takes longer, its protocol and its library take.
package rawtcp

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/frames"
)

// New makes fresh buffers for every call: one for the frame it sends, one for the payload it reads.
func New() rpcbench.Stack {
	return rpcbench.Stack{
		Name:     "rawtcp",
		Protocol: "tcp/proto",
		Traits: rpcbench.Traits{
			Codec:       "google.golang.org/protobuf",
			Multiplexed: true, // callers on one connection take turns
			InvalidUTF8: rpcbench.Rejected,
		},
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) { return frames.NewServer(config), nil },
		Dial:   frames.Dial,
	}
}
