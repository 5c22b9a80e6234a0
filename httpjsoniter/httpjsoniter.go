// Package httpjsoniter serves and calls the create-user API as JSON over HTTP/1.1 with keep-alive: net/http and
// json-iterator, no compression.
package httpjsoniter

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/jsoniter"
	"github.com/rpcbench/rpcbench/internal/httpapi"
)

// New reads whole bodies and calls json-iterator's compatible configuration: one Write for the reply.
func New() rpcbench.Stack {
	traits := rpcbench.Traits{Codec: "github.com/json-iterator/go", InvalidUTF8: rpcbench.Replaced}
	return httpapi.Stack("httpjsoniter", "http/json", traits, httpapi.Plain(jsoniter.Compatible()))
}
