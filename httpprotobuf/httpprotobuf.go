// Package httpprotobuf serves and calls the create-user API as protobuf over HTTP/1.1 with keep-alive: net/http and
// google.golang.org/protobuf, no compression and no gRPC.
package httpprotobuf

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/protobuf"
	"github.com/rpcbench/rpcbench/internal/binding/pb"
	"github.com/rpcbench/rpcbench/internal/httpapi"
)

// New reads whole bodies and calls proto.Unmarshal and proto.Marshal: one Write for the reply.
func New() rpcbench.Stack {
	return httpapi.Stack("httpprotobuf", "http/proto", protobuf.Codec{}, pb.API(), httpapi.Options{})
}
