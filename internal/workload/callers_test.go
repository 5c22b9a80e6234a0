package workload_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/internal/workload"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

// meeting lets nobody go on before all are there, once it is armed.
type meeting struct {
	all      int
	mu       sync.Mutex
	armed    bool
	inside   int
	released chan struct{}
	met      int // times
	missed   bool
}

func (m *meeting) enter() {
	m.mu.Lock()
	if !m.armed {
		m.mu.Unlock()
		return
	}
	if m.inside == 0 {
		m.released = make(chan struct{})
	}
	released := m.released
	if m.inside++; m.inside == m.all {
		m.release()
		m.met++
	}
	m.mu.Unlock()
	select {
	case <-released:
	case <-time.After(10 * time.Second):
		m.mu.Lock()
		defer m.mu.Unlock()
		m.missed = true
	}
}

func (m *meeting) arm(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.armed = on; !on {
		m.release()
	}
}

func (m *meeting) release() {
	if m.inside > 0 {
		m.inside = 0
		close(m.released)
	}
}

// A handler that waits for all callers answers, again and again: each caller calls again when it has its reply. They
// share a connection where the stack's carry many calls, or have one each.
func TestHandlerWaitsForAllCallers(t *testing.T) {
	const callers = 7
	at := &meeting{all: callers}
	users := rpcbench.Method[rpcbench.User, rpcbench.Response]{Name: "test.v1.Users/Get",
		Equal: func(want, got *rpcbench.Response) bool { return *want == *got },
		Key:   func(u *rpcbench.User) uint64 { at.enter(); return uint64(len(u.Name)) }}
	messages := rpcbench.Method[userv1.User, userv1.CreateUserResponse]{Name: users.Name,
		Equal: func(want, got *userv1.CreateUserResponse) bool { return want.Code == got.Code },
		Key:   func(u *userv1.User) uint64 { at.enter(); return uint64(len(u.Name)) }}
	for i := range 16 {
		name := "Anna1000Anna1000"[:i+1]
		users.Requests, users.Replies = append(users.Requests, &rpcbench.User{Name: name}),
			append(users.Replies, &rpcbench.Response{Code: int32(i + 1)})
		messages.Requests, messages.Replies = append(messages.Requests, &userv1.User{Name: name}),
			append(messages.Replies, &userv1.CreateUserResponse{Code: int32(i + 1)})
	}
	for reason, c := range map[string]struct {
		stack rpcbench.Stack
		conns int
	}{
		"JSON, a connection for each caller": {httpjson.Of(users), callers},
		"gRPC, a connection for each caller": {grpcprotobuf.Of(messages), callers},
		"gRPC, one connection":               {grpcprotobuf.Of(messages), 1},
		"gRPC, two connections":              {grpcprotobuf.Of(messages), 2},
	} {
		t.Run(reason, func(t *testing.T) {
			*at = meeting{all: callers}
			o, err := workload.Workload{Callers: callers, Conns: c.conns}.Open(t.Context(), c.stack, rpcbench.Config{})
			require.NoError(t, err)
			defer func() { require.NoError(t, o.Close()) }()
			require.NoError(t, o.Loop.Start(o.Warm))
			at.arm(true)
			_, err = o.Loop.During(t.Context(), 0, 20*time.Millisecond, func(open bool) {
				if !open { // some callers end now
					at.arm(false)
				}
			})
			require.NoError(t, err)
			require.False(t, at.missed, "%d callers called, and the handler waits for %d", at.inside, callers)
			require.Positive(t, at.met, "times that all %d callers were in the handler", callers)
			require.EqualValues(t, c.conns, o.Fixture.Accepted())
			require.GreaterOrEqual(t, o.Loop.Latency.Count(), int64((at.met-1)*callers))
		})
	}
}
