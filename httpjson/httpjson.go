// Package httpjson serves and calls the create-user API as JSON over HTTP with keep-alive: net/http and encoding/json.
// HTTP/1.1 without compression unless a variant says otherwise.
package httpjson

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/codec/jsonstd"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/internal/httpapi"
)

// New reads whole bodies and calls json.Unmarshal and json.Marshal: one Write for the reply.
func New() rpcbench.Stack { return stack("httpjson", jsonstd.Codec{}, httpapi.Options{}) }

// Stream uses a json.Decoder on each body and a json.Encoder on each reply, as many handlers are written. It accepts
// what follows a complete value, which New refuses.
func Stream() rpcbench.Stack { return stack("httpjson.stream", jsonstd.Streaming{}, httpapi.Options{}) }

// Gzip compresses requests and replies, with pooled writers and readers: what saving the bytes costs.
func Gzip() rpcbench.Stack {
	return stack("httpjson.gzip", jsonstd.Codec{}, httpapi.Options{Gzip: true})
}

// H2C is the same handler over HTTP/2, in clear unless the fixture has TLS: what the protocol costs.
func H2C() rpcbench.Stack {
	return stack("httpjson.h2c", jsonstd.Codec{}, httpapi.Options{HTTP2: true})
}

// Tuned does what net/http lets a careful user do. Figures are the tuned stack's time against the same without the one
// option, with its 95 % interval, at GOMAXPROCS=1 (results/2026-11-20-epyc-2vcpu/tuned.txt; BenchmarkTuned of
// commit c16e339).
//
//   - The Transport is called without the Client above it, which is for redirects and cookies: 0.972 (0.968–0.979).
//   - Requests are copies of one made before, with its URL and header: 0.983 (0.976–0.988).
//   - Replies are read into pooled buffers: 0.989 (0.981–0.993).
//   - Requests are read into pooled buffers: 0.987 (0.982–0.994).
//
// Left out: pooled buffers for what is written, which bought nothing in the server and cost the client a fifth, an
// Encoder that stays, no mux, no body limit, other sizes of the Transport's buffers, and dropping the Date header,
// which every server has to send.
func Tuned() rpcbench.Stack {
	return stack("httpjson.tuned", jsonstd.Codec{}, httpapi.Options{Tuned: true})
}

func stack(name string, c codec.Codec, options httpapi.Options) rpcbench.Stack {
	return httpapi.Stack(name, "http/json", c, binding.Plain(), options)
}
