// Package httpprotobuf serves and calls the create-user API as protobuf over HTTP/1.1 with keep-alive: net/http and
// google.golang.org/protobuf, no compression and no gRPC.
package httpprotobuf

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/protobuf"
	"github.com/rpcbench/rpcbench/internal/httpapi"
	"github.com/rpcbench/rpcbench/internal/pbnative"
)

// New reads whole bodies and calls proto.Unmarshal and proto.Marshal: one Write for the reply.
func New() rpcbench.Stack {
	traits := rpcbench.Traits{Codec: "google.golang.org/protobuf", InvalidUTF8: rpcbench.Rejected}
	return httpapi.Stack("httpprotobuf", "http/proto", traits, protobuf.Codec{}, pbnative.API(), httpapi.Options{})
}
