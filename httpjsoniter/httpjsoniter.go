// Package httpjsoniter serves and calls the create-user API as JSON over HTTP/1.1 with keep-alive: net/http and
// json-iterator, no compression.
package httpjsoniter

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/jsoniter"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/httpapi"
)

// New reads whole bodies and calls json-iterator's compatible configuration: one Write for the reply.
func New() rpcbench.Stack {
	return httpapi.Stack("httpjsoniter", "http/json", jsoniter.Compatible(), binding.Plain(), httpapi.Options{})
}

// Fastest uses json-iterator's fastest configuration, which writes floats with six digits and does not look at UTF-8.
func Fastest() rpcbench.Stack {
	return httpapi.Stack("httpjsoniter.fastest", "http/json", jsoniter.Fastest(), binding.Plain(), httpapi.Options{})
}
