// Package httpjsoniter serves and calls the create-user API as JSON over HTTP/1.1 with keep-alive: net/http and
// json-iterator, no compression.
package httpjsoniter

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/jsoniter"
	"github.com/rpcbench/rpcbench/internal/httpapi"
	"github.com/rpcbench/rpcbench/internal/native"
)

// New reads whole bodies and calls json-iterator's compatible configuration: one Write for the reply.
func New() rpcbench.Stack {
	return stack("httpjsoniter", jsoniter.Compatible(), rpcbench.Traits{
		InvalidUTF8: rpcbench.Replaced,
		Lossy:       []string{"NaN", "infinities", "negative zero"},
	})
}

// Fastest uses json-iterator's fastest configuration, which writes floats with six digits and does not look at UTF-8.
func Fastest() rpcbench.Stack {
	return stack("httpjsoniter.fastest", jsoniter.Fastest(), rpcbench.Traits{
		InvalidUTF8: rpcbench.Kept,
		Lossy:       []string{"NaN", "infinities", "negative zero", "complex", "17 digits", "smallest and largest floats", "largest double and smallest float"},
	})
}

func stack(name string, c jsoniter.Codec, traits rpcbench.Traits) rpcbench.Stack {
	traits.Codec = "github.com/json-iterator/go"
	return httpapi.Stack(name, "http/json", traits, c, native.Plain(), httpapi.Options{})
}
