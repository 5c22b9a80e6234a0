// Package httpxml serves and calls the create-user API as XML over HTTP/1.1 with keep-alive: net/http and encoding/xml,
// no compression. XML has no way to write most control characters, U+FFFE and U+FFFF: they arrive as U+FFFD.
package httpxml

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/xmlstd"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/httpapi"
)

// New reads whole bodies and calls xml.Unmarshal's decoder and xml.Marshal: one Write for the reply.
func New() rpcbench.Stack {
	api := binding.Alike[xmlstd.User, xmlstd.Response, xmlstd.Flex, xmlstd.Error]()
	return httpapi.Stack("httpxml", "http/xml", xmlstd.Codec{}, api, httpapi.Options{})
}
