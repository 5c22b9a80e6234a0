// Package httpmsgpack serves and calls the create-user API as MessagePack over HTTP/1.1, with net/http and the methods
// that tinylib/msgp generates. It keeps connections alive and compresses nothing. The generated methods leave out
// fields that are zero or negative zero, and keep text that is not UTF-8 as it is.
package httpmsgpack

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/codec/msgp"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
)

// New reads the whole body, calls UnmarshalMsg and MarshalMsg, and writes the reply with one Write.
func New() rpcbench.Stack {
	api := binding.Alike[msgp.User, msgp.Response, msgp.Flex, msgp.Error]()
	return httpapi.Stack("httpmsgpack", "http/msgpack", msgp.Codec{}, api, httpapi.Options{})
}
