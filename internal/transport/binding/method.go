package binding

import (
	"context"
	"errors"
	"fmt"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
)

func messages[T any](
	madeOf string, all []*T, c codec.Codec, sorted func(any) ([]byte, error)) rpcbench.Messages {
	return rpcbench.Messages{
		MadeOf: madeOf,
		Encode: func(i int) ([]byte, error) { return c.Marshal(all[i%len(all)]) },
		Sorted: func(i int) ([]byte, error) { return sorted(all[i%len(all)]) },
		Decode: func(data []byte) error { return c.Unmarshal(data, new(T)) },
	}
}

// Serve makes the operation that a server of m runs. It finds the reply by the request's key.
func Serve[Q, A any](
	config rpcbench.ServerConfig, m rpcbench.Method[Q, A]) (func(context.Context, *Q) (*A, error), error) {
	wait := config.Wait
	switch {
	case m.Name == "" || m.Equal == nil:
		return nil, errors.New("a Method has a Name, and Equal to compare replies")
	case len(m.Requests) == 0 || len(m.Requests) != len(m.Replies):
		return nil, fmt.Errorf("%s: each request has a reply, and there are %d requests and %d replies",
			m.Name, len(m.Requests), len(m.Replies))
	case m.Key == nil:
		return func(context.Context, *Q) (*A, error) {
			Wait(wait)
			return m.Replies[0], nil
		}, nil
	}
	replies := map[uint64]*A{}
	for i, q := range m.Requests {
		key := m.Key(q)
		if replies[key] != nil {
			return nil, fmt.Errorf("%s: request %d has the key of an earlier one", m.Name, i)
		}
		replies[key] = m.Replies[i]
	}
	return func(_ context.Context, q *Q) (*A, error) {
		if reply := replies[m.Key(q)]; reply != nil {
			Wait(wait)
			return reply, nil
		}
		return nil, &rpcbench.Error{Code: rpcbench.Invalid, Message: "no sample has this request"}
	}, nil
}

// NewCaller makes a client that binds calls of m to conns in turn. c encodes and decodes as the calls do; sorted
// encodes the entries of maps in one order.
func NewCaller[Q, A any](m rpcbench.Method[Q, A], conns []*Conn[Q, A, struct{}],
	c codec.Codec, sorted func(any) ([]byte, error)) rpcbench.Client {
	return &methodClient[Q, A]{m, ring[Q, A, struct{}]{conns: conns}, messages(m.MadeOf, m.Requests, c, sorted),
		messages(m.MadeOf, m.Replies, c, sorted)}
}

type methodClient[Q, A any] struct {
	m rpcbench.Method[Q, A]
	ring[Q, A, struct{}]
	requests, replies rpcbench.Messages
}

func (c *methodClient[Q, A]) Messages() (requests, replies rpcbench.Messages) {
	return c.requests, c.replies
}

func (c *methodClient[Q, A]) Prepare(i int) (rpcbench.Call, error) {
	conn, equal := c.conn(), c.m.Equal
	asked, want := c.m.Requests[i%len(c.m.Requests)], c.m.Replies[i%len(c.m.Replies)]
	if c.m.Key == nil {
		want = c.m.Replies[0]
	}
	return func(ctx context.Context) error {
		got, err := conn.Call(ctx, asked)
		if err != nil {
			return conn.Failure(ctx, err)
		}
		if !equal(want, got) {
			return WrongReply("a field")
		}
		return nil
	}, nil
}
