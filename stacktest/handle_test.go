package stacktest

import (
	"context"
	"sync/atomic"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
)

// handlingAfter is gRPC with a handler that does something else after so many answers, the one at Dial not counted.
func handlingAfter(n int64, fault func()) rpcbench.Stack {
	answered := new(atomic.Int64)
	return grpcprotobuf.Of(rpcbench.Method[wrapperspb.UInt64Value, wrapperspb.UInt64Value]{
		Name: "test.v1.Numbers/Get", Requests: []*wrapperspb.UInt64Value{{Value: 7}},
		Handle: func(_ context.Context, q *wrapperspb.UInt64Value) (*wrapperspb.UInt64Value, error) {
			if answered.Add(1) > n+1 {
				fault()
			}
			return q, nil
		},
		Equal: func(want, got *wrapperspb.UInt64Value) bool { return want.Value == got.Value },
	})
}
