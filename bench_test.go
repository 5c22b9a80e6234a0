package rpcbench_test

import (
	"testing"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/httpjsoniter"
	"github.com/rpcbench/rpcbench/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func BenchmarkGRPCProtobuf(b *testing.B) {
	stacktest.BenchmarkCreateUser(b, grpcprotobuf.New(), rpcbench.Config{})
}

func BenchmarkHTTPJSON(b *testing.B) {
	stacktest.BenchmarkCreateUser(b, httpjson.New(), rpcbench.Config{})
}

func BenchmarkHTTPJSONIter(b *testing.B) {
	stacktest.BenchmarkCreateUser(b, httpjsoniter.New(), rpcbench.Config{})
}
