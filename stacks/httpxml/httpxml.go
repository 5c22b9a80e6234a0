// Package httpxml serves and calls the create-user API as XML over HTTP/1.1, with net/http and encoding/xml. It keeps
// connections alive and compresses nothing. XML can't express most control characters, U+FFFE and U+FFFF, which arrive
// as U+FFFD, and so does text that is not UTF-8. A negative zero arrives as zero.
package httpxml

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/codec/xmlstd"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
)

// New reads the whole body, calls an xml.Decoder and xml.Marshal, and writes the reply with one Write.
func New() rpcbench.Stack {
	api := binding.Alike[xmlstd.User, xmlstd.Response, xmlstd.Flex, xmlstd.Error]()
	return httpapi.Stack("httpxml", "http/xml", xmlstd.Codec{}, api, httpapi.Options{})
}
