// Package httpapi is the one net/http handler and client that the HTTP stacks share. They differ by a codec, the native
// types it carries, and Options. Without options both sides are written as net/http's documentation shows them: whole
// bodies, no pools, no buffers kept. A call goes from caller.call in client.go to handler.ServeHTTP in server.go and back.
// What a variant does otherwise is a type of its own in bodies.go, or caller.tuned. NewServer and HTTPClients are for every
// stack over net/http.
package httpapi

import (
	"cmp"
	"net/http"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/internal/binding"
)

// Paths of the operations.
const (
	usersPath = "/users"
	echoPath  = "/echo"
)

// Options are what variants change. The zero value is HTTP/1.1 with keep-alive, in identity.
type Options struct {
	HTTP2 bool // HTTP/2 instead, in clear or over TLS
	Gzip  bool // requests and replies compressed, with pooled writers and readers
	Tuned bool // pooled buffers and a client that calls the Transport; over HTTP/1.1 and in identity
}

// Stack is a stack over net/http, whose traits are the codec's and what options decide.
func Stack[U, R, F, E any](name, protocol string, c codec.Codec, api binding.API[U, R, F, E], options Options) rpcbench.Stack {
	t := binding.Traits(c.Traits())
	t.HTTP, t.Server, t.Client = "1.1", []string{"net/http"}, []string{"net/http"}
	if options.HTTP2 {
		t.HTTP, t.Multiplexed = "2", true
		protocol += "/h2"
	}
	if options.Gzip {
		t.Compression = "gzip"
		protocol += "/gzip"
	}
	return rpcbench.Stack{
		Name: name, Protocol: protocol, Traits: t,
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			return newServer(config, c, api, api.NewService(), options), nil
		},
		Dial: func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
			return newClient(config, c, api, options), nil
		},
	}
}

// statuses are of the failures that have one of their own.
var statuses = map[rpcbench.Code]int{
	rpcbench.Invalid:          http.StatusBadRequest,
	rpcbench.Malformed:        http.StatusBadRequest,
	rpcbench.TooLarge:         http.StatusRequestEntityTooLarge,
	rpcbench.DeadlineExceeded: http.StatusGatewayTimeout,
	rpcbench.Unavailable:      http.StatusServiceUnavailable,
}

func status(c rpcbench.Code) int { return cmp.Or(statuses[c], http.StatusInternalServerError) }
