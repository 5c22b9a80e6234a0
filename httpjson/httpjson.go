// Package httpjson serves and calls the create-user API as JSON over HTTP/1.1 with keep-alive: net/http and
// encoding/json, no compression.
package httpjson

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/codec/jsonstd"
	"github.com/rpcbench/rpcbench/internal/httpapi"
)

// New reads whole bodies and calls json.Unmarshal and json.Marshal: one Write for the reply.
func New() rpcbench.Stack { return stack("httpjson", jsonstd.Codec{}) }

// Stream uses a json.Decoder on each body and a json.Encoder on each reply, as many handlers are written. It accepts
// what follows a complete value, which New refuses.
func Stream() rpcbench.Stack { return stack("httpjson.stream", jsonstd.Stream{}) }

func stack(name string, c codec.Codec) rpcbench.Stack {
	traits := rpcbench.Traits{Codec: "encoding/json", InvalidUTF8: rpcbench.Replaced}
	return httpapi.Stack(name, "http/json", traits, httpapi.Plain(c))
}
