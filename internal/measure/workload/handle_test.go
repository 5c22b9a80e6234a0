package workload_test

import (
	"context"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
)

// handling are stacks whose handler answers with a number and its process, in which equal replies may differ. answered
// is told the processes.
func handling(answered func(process int)) []rpcbench.Stack {
	type question struct{ Number uint64 }
	type answer struct {
		Number  uint64
		Process int
	}
	m := rpcbench.Method[question, answer]{
		Name: "test.v1.Numbers/Get", Requests: []*question{{1}, {2}, {3}},
		Handle: func(_ context.Context, q *question) (*answer, error) { return &answer{q.Number, os.Getpid()}, nil },
		Equal: func(want, got *answer) bool {
			answered(got.Process)
			return want.Number == got.Number
		},
	}
	const processes = 1 << 32
	all := []rpcbench.Stack{httpjson.Of(m), grpcprotobuf.Of(rpcbench.Converted(m,
		func(q *question) *wrapperspb.UInt64Value { return wrapperspb.UInt64(q.Number) },
		func(q *wrapperspb.UInt64Value) *question { return &question{q.Value} },
		func(a *answer) *wrapperspb.UInt64Value {
			return wrapperspb.UInt64(a.Number*processes + uint64(a.Process))
		},
		func(want, got *wrapperspb.UInt64Value) bool {
			answered(int(got.Value % processes))
			return want.Value/processes == got.Value/processes
		}))}
	for i := range all {
		all[i].Name += ".handling"
	}
	return all
}

// A handler of a server apart runs in the server's process, and the client's own answers are compared with what comes.
func TestHandlersApart(t *testing.T) {
	for _, apart := range []bool{false, true} {
		var newest, replies atomic.Int64
		for _, s := range handling(func(process int) { newest.Store(int64(process)); replies.Add(1) }) {
			o, err := workload.Workload{Callers: 10, TLS: true, Apart: apart}.Open(t.Context(), s, workload.Setup{})
			require.NoError(t, err, s.Name)
			replies.Store(0)
			require.NoError(t, o.Start(o.Warm), s.Name)
			o.Loop.Finish()
			require.GreaterOrEqual(t, replies.Load(), int64(10), s.Name)
			require.Equal(t, apart, newest.Load() != int64(os.Getpid()), s.Name)
			require.NoError(t, o.Close(), s.Name)
		}
	}
}
