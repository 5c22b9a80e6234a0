package workload

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/child"
	"github.com/rpcbench/rpcbench/message/messagepb"
)

// TestMain is also the server of two-processes.
func TestMain(m *testing.M) {
	if child.Serve(os.Stdin, os.Stdout, []rpcbench.Stack{httpjson.New(), grpcprotobuf.New()}) {
		return
	}
	goleak.VerifyTestMain(m)
}

// Each workload makes the calls that it says, over the connections that it says, on both stacks that everybody asks about.
func TestWorkloads(t *testing.T) {
	for _, w := range All() {
		require.Regexp(t, regexp.MustCompile(`^[a-z0-9A-Z-]*[a-zA-Z]$`), w.Name, "benchstat reads -50 as a GOMAXPROCS")
		require.NotEmpty(t, w.Does)
		for _, stack := range []rpcbench.Stack{httpjson.New(), grpcprotobuf.New()} {
			t.Run(w.Name+"/"+stack.Name, func(t *testing.T) {
				if w.link != "" && testing.Short() {
					t.Skip("seconds")
				}
				o, err := w.Open(t.Context(), stack)
				require.NoError(t, err)
				for range 3 {
					require.NoError(t, o.Op())
				}
				require.Equal(t, o.Connections(), o.Fixture.Accepted())
				require.Equal(t, max(1, 4*w.callers), o.Calls)
				require.NoError(t, o.Close())
			})
		}
	}
}

func TestFind(t *testing.T) {
	_, err := Find("smal")
	require.EqualError(t, err, `rpcbench: unknown workload "smal": rpcbench list names them`)
}

func TestStacksThatCannotEcho(t *testing.T) {
	w, err := Find("mixed")
	require.NoError(t, err)
	s := httpjson.New()
	dial := s.Dial
	s.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		c, err := dial(config)
		return struct{ rpcbench.Client }{c}, err
	}
	_, err = w.Open(t.Context(), s)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// The messages have the sizes of their names, on the protobuf wire.
func TestSizes(t *testing.T) {
	for pairs, size := range map[int]int{structured1kB: 1000, structured10kB: 10_000} {
		text, err := json.Marshal(structured(pairs))
		require.NoError(t, err)
		var m messagepb.Flex
		require.NoError(t, protojson.Unmarshal(text, &m))
		require.InDelta(t, size, proto.Size(&m), float64(size)/50)
	}
}

// counting is a client that counts how often each of its calls is made.
type counting struct {
	rpcbench.Client
	made []atomic.Int64
	next int
}

func (c *counting) Prepare(u rpcbench.User) (rpcbench.Call, error) {
	call, err := c.Client.Prepare(u)
	if u.Name == "connect" { // of the start
		return call, err
	}
	i := c.next
	c.next++
	return func(ctx context.Context) error {
		c.made[i].Add(1)
		return call(ctx)
	}, err
}

// With many callers an op makes each caller's calls once, and none of those that only even out the connections.
func TestManyCallers(t *testing.T) {
	w, err := Find("small-50-callers")
	require.NoError(t, err)
	client := &counting{made: make([]atomic.Int64, 240)}
	s := httpjson.New()
	dial := s.Dial
	s.Dial = func(config rpcbench.ClientConfig) (_ rpcbench.Client, err error) {
		client.Client, err = dial(config)
		return client, err
	}
	o, err := w.Open(t.Context(), s)
	require.NoError(t, err)
	require.NoError(t, o.Op())
	require.NoError(t, o.Op())
	require.NoError(t, o.Close())
	for i := range client.made {
		want := int64(2)
		if i%60 >= 50 {
			want = 0
		}
		require.Equal(t, want, client.made[i].Load(), "call %d", i)
	}
}
