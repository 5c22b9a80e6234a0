// Package httpjson serves and calls the create-user API as JSON over HTTP, with net/http and encoding/json. Connections
// are kept alive. Only H2C speaks HTTP/2 and only Gzip compresses, while Default leaves connections and the version of
// HTTP to net/http.
//
// Text that is not UTF-8 arrives as U+FFFD, and a negative zero as zero. JSON has neither NaN nor infinities.
package httpjson

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
	"github.com/rpcbench/rpcbench/internal/transport/codec/jsonstd"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
)

// New reads the whole body, calls json.Unmarshal and json.Marshal, and writes the reply with one Write.
func New() rpcbench.Stack { return stack("httpjson", jsonstd.Codec{}, httpapi.Options{}) }

// Decoder uses a json.Decoder on each body and a json.Encoder on each reply, as many handlers do. It ignores data after
// a complete value, which New refuses.
func Decoder() rpcbench.Stack {
	return stack("httpjson.decoder", jsonstd.Streaming{}, httpapi.Options{})
}

// Gzip compresses requests and replies, with pooled writers and readers. Compare it with New for the price of smaller
// bodies.
func Gzip() rpcbench.Stack {
	return stack("httpjson.gzip", jsonstd.Codec{}, httpapi.Options{Gzip: true})
}

// H2C runs the same handler over HTTP/2, without TLS unless Config asks for it. Compare it with New for the price of
// HTTP/2.
func H2C() rpcbench.Stack {
	return stack("httpjson.h2c", jsonstd.Codec{}, httpapi.Options{HTTP2: true})
}

// Default calls through a copy of the Transport of net/http's own client, which most programs in Go use, and leaves the
// version of HTTP to it. Compare Default with New for the price of net/http's defaults.
//
// The Transport keeps two idle connections, so that with more than two callers it closes connections and dials new ones
// all the time. It asks for gzip, although the server compresses nothing. Over TLS, client and server agree on HTTP/2,
// and callers share a connection. The server has the limits that every server has.
func Default() rpcbench.Stack {
	return stack("httpjson.default", jsonstd.Codec{}, httpapi.Options{Defaults: true})
}

// Tuned calls the Transport directly, reuses request templates and reads into pooled buffers. Each figure is the time
// of a call with all options, divided by the time without that one option, with a 95 % interval, at GOMAXPROCS=1.
//
//   - The Transport is called without the Client above it, which handles redirects and cookies: 0.972 (0.968–0.979).
//   - Requests are copies of a template with URL and header: 0.983 (0.976–0.988).
//   - Replies are read into pooled buffers: 0.989 (0.981–0.993).
//   - Requests are read into pooled buffers: 0.987 (0.982–0.994).
//
// Other options did not help: an Encoder that is kept, no mux, no body limit, other sizes of the Transport's buffers.
// Pooled buffers for writing gained nothing in the server, and with them a call took the client a fifth longer. The
// Date header stays, because every server has to send it. The figures are from tuned.txt of 2026-11-20 in the study,
// made with Go 1.26 by BenchmarkTuned of commit 9a3de1b.
func Tuned() rpcbench.Stack {
	return stack("httpjson.tuned", jsonstd.Codec{}, httpapi.Options{Tuned: true})
}

// Of makes a stack that serves and calls a method of your own as New does, with plain structs.
func Of[Q, A any](m rpcbench.Method[Q, A]) rpcbench.Stack {
	api := binding.Plain()
	return httpapi.Of("httpjson", "http/json", binding.Structs(jsonstd.Codec{}), m, api.FromError, api.ToError,
		httpapi.Options{})
}

func stack(name string, c codec.Codec, options httpapi.Options) rpcbench.Stack {
	return httpapi.Stack(name, "http/json", c, binding.Plain(), options)
}
