package connectapi

import (
	"testing"

	"connectrpc.com/connect"
	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The stacks as package connectrpc makes them.

func plain() rpcbench.Stack { return Stack("connectrpc", "connect/proto", Traits("1.1"), nil) }
func h2c() rpcbench.Stack   { return Stack("connectrpc.h2c", "connect/proto/h2", Traits("2"), nil) }

func overGRPC() rpcbench.Stack {
	return Stack("connectrpc.grpc", "grpc/proto", Traits("2"), nil, connect.WithGRPC())
}

func grpcWeb() rpcbench.Stack {
	return Stack("connectrpc.grpcweb", "grpcweb/proto", Traits("1.1"), nil, connect.WithGRPCWeb())
}

func asJSON() rpcbench.Stack {
	return Stack("connectrpc.json", "connect/json", Traits("1.1"), nil, connect.WithProtoJSON())
}

func withGzip() rpcbench.Stack {
	t := Traits("1.1")
	t.Compression = rpcbench.GzipReplies
	return Stack("connectrpc.gzip", "connect/proto", t, nil)
}
