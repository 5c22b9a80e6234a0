// Package httpjsoniter serves and calls the create-user API as JSON over HTTP/1.1, with net/http and json-iterator. It
// keeps connections alive and compresses nothing. The library json-iterator is no longer maintained.
//
// Text that is not UTF-8 arrives as U+FFFD, and a negative zero as zero. JSON has neither NaN nor infinities.
package httpjsoniter

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/codec/jsoniter"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
)

// New reads the whole body, uses json-iterator's compatible configuration, and writes the reply with one Write.
func New() rpcbench.Stack {
	return httpapi.Stack("httpjsoniter", "http/json", jsoniter.Compatible(), binding.Plain(), httpapi.Options{})
}

// Fastest uses json-iterator's fastest configuration, which writes floats with six digits and does not check UTF-8.
func Fastest() rpcbench.Stack {
	return httpapi.Stack("httpjsoniter.fastest", "http/json", jsoniter.Fastest(), binding.Plain(), httpapi.Options{})
}

// Of makes a stack that serves and calls a method of your own as New does, with plain structs. json-iterator ignores
// the tag omitzero and writes small floats as 1e-07, so its JSON may differ from that of httpjson. Rows and reports say
// so if another value is sent.
func Of[Q, A any](m rpcbench.Method[Q, A]) rpcbench.Stack {
	api := binding.Plain()
	return httpapi.Of("httpjsoniter", "http/json", binding.Structs(jsoniter.Compatible()), m, api.FromError, api.ToError,
		httpapi.Options{})
}
