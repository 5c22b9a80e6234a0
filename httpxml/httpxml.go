// Package httpxml serves and calls the create-user API as XML over HTTP/1.1 with keep-alive: net/http and encoding/xml,
// no compression. XML has no way to write most control characters, U+FFFE and U+FFFF: they arrive as U+FFFD.
package httpxml

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/xmlstd"
	"github.com/rpcbench/rpcbench/internal/httpapi"
)

// New reads whole bodies and calls xml.Unmarshal's decoder and xml.Marshal: one Write for the reply.
func New() rpcbench.Stack {
	traits := rpcbench.Traits{
		Codec:       "encoding/xml",
		InvalidUTF8: rpcbench.Replaced,
		Lossy:       []string{"control characters and a zero", "a byte order mark and non-characters", "control characters in a string", "negative zero"},
	}
	return httpapi.Stack("httpxml", "http/xml", traits, xmlstd.Codec{}, xmlstd.API(), httpapi.Options{})
}
