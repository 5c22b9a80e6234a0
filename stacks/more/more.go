// Package more lists the stacks of this module, which the main module does without.
package more

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/stacks/more/chain"
	"github.com/rpcbench/rpcbench/stacks/more/drpc"
	"github.com/rpcbench/rpcbench/stacks/more/fasthttpjson"
	"github.com/rpcbench/rpcbench/stacks/more/grpcgateway"
	"github.com/rpcbench/rpcbench/stacks/more/grpcpooled"
	"github.com/rpcbench/rpcbench/stacks/more/otel"
)

// All returns every stack of this module.
func All() []rpcbench.Stack {
	return []rpcbench.Stack{
		fasthttpjson.New(), drpc.New(), grpcpooled.New(), grpcgateway.New(), grpcgateway.Proxy(),
		otel.GRPC(), otel.GRPCUnsampled(), otel.HTTP(), otel.HTTPUnsampled(), otel.Connect(), otel.ConnectUnsampled(),
		chain.GRPC(), chain.HTTP(),
	}
}
