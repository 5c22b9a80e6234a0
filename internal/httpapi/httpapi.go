// Package httpapi is the one net/http handler and client that the HTTP stacks share. They differ by a Format: a codec
// and the native types it carries. Both sides are written as net/http's documentation shows them: whole bodies, no
// pools, no buffers kept.
package httpapi

import (
	"context"
	"net/http"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
)

// path is where the one operation is served.
const path = "/users"

// Format is a wire format: a codec, its native user and response types, and the service on them.
type Format[U, R any] struct {
	Codec codec.Codec
	// NewService makes the operation a server runs: it validates and answers.
	NewService func() func(context.Context, *U) (*R, error)
	FromUser   func(rpcbench.User) *U
	ToResponse func(*R) rpcbench.Response
	// Check compares a reply with the user it answers.
	Check func(asked *U, r *R) error
}

// Plain is the format of a codec that carries the plain structs.
func Plain(c codec.Codec) Format[rpcbench.User, rpcbench.Response] {
	return Format[rpcbench.User, rpcbench.Response]{
		Codec: c,
		NewService: func() func(context.Context, *rpcbench.User) (*rpcbench.Response, error) {
			validate := rpcbench.NewValidator[rpcbench.User]()
			return func(_ context.Context, u *rpcbench.User) (*rpcbench.Response, error) {
				if err := validate(u); err != nil {
					return nil, err
				}
				return rpcbench.Answer(u), nil
			}
		},
		FromUser:   func(u rpcbench.User) *rpcbench.User { return &u },
		ToResponse: func(r *rpcbench.Response) rpcbench.Response { return *r },
		Check:      rpcbench.Check,
	}
}

// Stack is a stack over HTTP/1.1 with keep-alive and no compression.
func Stack[U, R any](name, protocol string, traits rpcbench.Traits, format Format[U, R]) rpcbench.Stack {
	traits.HTTP = "1.1"
	return rpcbench.Stack{
		Name:     name,
		Protocol: protocol,
		Traits:   traits,
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			return newServer(config, format), nil
		},
		Dial: func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
			return newClient(config, format), nil
		},
	}
}

func http1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}

// statuses are the HTTP statuses of failures. A cancelled call has none: nobody is left to read it.
func status(c rpcbench.Code) int {
	switch c {
	case rpcbench.Invalid, rpcbench.Malformed:
		return http.StatusBadRequest
	case rpcbench.TooLarge:
		return http.StatusRequestEntityTooLarge
	case rpcbench.DeadlineExceeded:
		return http.StatusGatewayTimeout
	case rpcbench.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
