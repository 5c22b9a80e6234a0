// Package native describes a service by the Go types that a library encodes, and makes clients on them, so that no
// stack converts anything inside a call.
package native

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/message"
)

// API is the service on one set of native types: user, response, flex message, error body. From… and To… convert
// neutral values outside of timed calls.
type API[U, R, F, E any] struct {
	// NewService makes the operation that a server runs: it validates and answers.
	NewService func() func(context.Context, *U) (*R, error)
	FromUser   func(*rpcbench.User) *U
	ToResponse func(*R) *rpcbench.Response
	Check      func(asked *U, r *R) error // as rpcbench.Check

	FromFlex func(*message.Flex) *F
	ToFlex   func(*F) *message.Flex
	Equal    func(a, b *F) bool

	FromError func(*rpcbench.Error) *E
	ToError   func(*E) *rpcbench.Error
}

// Plain is the service on the plain structs.
func Plain() API[rpcbench.User, rpcbench.Response, message.Flex, rpcbench.Error] {
	return API[rpcbench.User, rpcbench.Response, message.Flex, rpcbench.Error]{
		NewService: func() func(context.Context, *rpcbench.User) (*rpcbench.Response, error) {
			validate := rpcbench.NewValidator[rpcbench.User]()
			return func(_ context.Context, u *rpcbench.User) (*rpcbench.Response, error) {
				if err := validate(u); err != nil {
					return nil, err
				}
				return rpcbench.Answer(u), nil
			}
		},
		FromUser:   same[rpcbench.User],
		ToResponse: same[rpcbench.Response],
		Check:      rpcbench.Check,
		FromFlex:   same[message.Flex],
		ToFlex:     same[message.Flex],
		Equal:      (*message.Flex).Equal,
		FromError:  same[rpcbench.Error],
		ToError:    same[rpcbench.Error],
	}
}

func same[T any](v *T) *T { return v }

// Echo is the other operation that a server runs.
func Echo[F any](_ context.Context, f *F) (*F, error) { return f, nil }

// Conn calls over one connection, or over any of several where calls are not bound. Errors are *rpcbench.Error.
type Conn[U, R, F any] interface {
	CreateUser(context.Context, *U) (*R, error)
	Echo(context.Context, *F) (*F, error)
}

// NewClient makes a client that binds its calls to conns in turn.
func NewClient[U, R, F, E any, C Conn[U, R, F]](api API[U, R, F, E], conns []C, closers ...func() error) rpcbench.Client {
	return &client[U, R, F, E, C]{api: api, conns: conns, closers: closers}
}

type client[U, R, F, E any, C Conn[U, R, F]] struct {
	api     API[U, R, F, E]
	conns   []C
	next    atomic.Uint64
	closers []func() error
}

func (c *client[U, R, F, E, C]) conn() C {
	return c.conns[(c.next.Add(1)-1)%uint64(len(c.conns))]
}

func (c *client[U, R, F, E, C]) CreateUser(ctx context.Context, u rpcbench.User) (rpcbench.Response, error) {
	r, err := c.conn().CreateUser(ctx, c.api.FromUser(&u))
	if err != nil {
		return rpcbench.Response{}, err
	}
	return *c.api.ToResponse(r), nil
}

func (c *client[U, R, F, E, C]) Prepare(u rpcbench.User) (rpcbench.Call, error) {
	asked, conn, check := c.api.FromUser(&u), c.conn(), c.api.Check
	return func(ctx context.Context) error {
		r, err := conn.CreateUser(ctx, asked)
		if err != nil {
			return err
		}
		return check(asked, r)
	}, nil
}

func (c *client[U, R, F, E, C]) Echo(ctx context.Context, m *message.Flex) (*message.Flex, error) {
	f, err := c.conn().Echo(ctx, c.api.FromFlex(m))
	if err != nil {
		return nil, err
	}
	return c.api.ToFlex(f), nil
}

func (c *client[U, R, F, E, C]) PrepareEcho(m *message.Flex) (rpcbench.Call, error) {
	asked, conn, equal := c.api.FromFlex(m), c.conn(), c.api.Equal
	return func(ctx context.Context) error {
		f, err := conn.Echo(ctx, asked)
		if err != nil {
			return err
		}
		if !equal(asked, f) {
			return rpcbench.WrongReply("the echo")
		}
		return nil
	}, nil
}

func (c *client[U, R, F, E, C]) Close() error {
	var errs []error
	for _, closer := range c.closers {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}
