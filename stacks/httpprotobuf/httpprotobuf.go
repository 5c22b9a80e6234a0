// Package httpprotobuf serves and calls the create-user API as protobuf over HTTP/1.1, with net/http and
// google.golang.org/protobuf. It uses no gRPC, keeps connections alive and compresses nothing. Protobuf refuses a
// string that is not UTF-8.
package httpprotobuf

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding/pb"
	"github.com/rpcbench/rpcbench/internal/transport/codec/protobuf"
	"github.com/rpcbench/rpcbench/internal/transport/httpapi"
)

// New reads the whole body, calls proto.Unmarshal and proto.Marshal, and writes the reply with one Write.
func New() rpcbench.Stack {
	return httpapi.Stack("httpprotobuf", "http/proto", protobuf.Codec{}, pb.API(), httpapi.Options{})
}

// Of makes a stack that serves and calls a method of your own as New does, with generated messages.
func Of[Q, A any, PQ pb.Message[Q], PA pb.Message[A]](m rpcbench.Method[Q, A]) rpcbench.Stack {
	api := pb.API()
	return httpapi.Of("httpprotobuf", "http/proto", pb.Format(), m, api.FromError, api.ToError, httpapi.Options{})
}
