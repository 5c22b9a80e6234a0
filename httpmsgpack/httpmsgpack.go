// Package httpmsgpack serves and calls the create-user API as MessagePack over HTTP/1.1 with keep-alive: net/http and
// the methods that tinylib/msgp generates, no compression. They leave out zero fields, and take a negative zero for
// one.
package httpmsgpack

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/msgp"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/httpapi"
)

// New reads whole bodies and calls UnmarshalMsg and MarshalMsg: one Write for the reply.
func New() rpcbench.Stack {
	api := binding.Alike[msgp.User, msgp.Response, msgp.Flex, msgp.Error]()
	return httpapi.Stack("httpmsgpack", "http/msgpack", msgp.Codec{}, api, httpapi.Options{})
}
