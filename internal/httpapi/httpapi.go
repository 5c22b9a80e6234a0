// Package httpapi is the one net/http handler and client that the HTTP stacks share. They differ by a codec, the native
// types it carries, and Options. Unless those say otherwise, both sides are written as net/http's documentation shows
// them: whole bodies, no pools, no buffers kept.
package httpapi

import (
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
	Tuned Tuning
}

// Stack is a stack over net/http, whose traits are the codec's and what options decide.
func Stack[U, R, F, E any](name, protocol string, c codec.Codec, api binding.API[U, R, F, E], options Options) rpcbench.Stack {
	t := c.Traits()
	traits := rpcbench.Traits{
		Codec: t.Library, Lossy: t.Lossy, InvalidUTF8: t.InvalidUTF8.Encoding,
		HTTP: "1.1", Server: []string{"net/http"}, Client: []string{"net/http"},
	}
	if options.HTTP2 {
		traits.HTTP, traits.Multiplexed = "2", true
		protocol += "/h2"
	}
	if options.Gzip {
		traits.Compression = "gzip"
		protocol += "/gzip"
	}
	return rpcbench.Stack{
		Name:     name,
		Protocol: protocol,
		Traits:   traits,
		Server: func(config rpcbench.ServerConfig) (rpcbench.Server, error) {
			return newServer(config, c, api, api.NewService(), options), nil
		},
		Dial: func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
			return newClient(config, c, api, options), nil
		},
	}
}

// Protocols is one HTTP version and no other, in clear as over TLS.
func Protocols(http2 bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(!http2)
	p.SetHTTP2(http2)
	p.SetUnencryptedHTTP2(http2)
	return p
}

// status is the HTTP status of a failure. A cancelled call has none: nobody is left to read it.
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
