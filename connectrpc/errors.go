package connectrpc

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"connectrpc.com/connect"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/rpcstatus"
)

// toConnect makes the library's error of a service's. Broken rules are details, as google.rpc.BadRequest.
func toConnect(err error) error {
	failure := connect.NewError(connect.Code(rpcstatus.Number(rpcbench.CodeOf(err))), err)
	if details, ok := rpcstatus.Details(err); ok {
		detail, err := connect.NewErrorDetail(details)
		if err != nil {
			return connect.NewError(connect.CodeInternal, err)
		}
		failure.AddDetail(detail)
	}
	return failure
}

// fromConnect turns what a client returns into an *rpcbench.Error. The server's errors keep their code, but where it is
// a grpc-go server whose codec failed. The client's own errors are told by what they wrap, by their code, and by the
// beginning of their message:
//
//	code                   message                                 cause                                          becomes
//	any                    wraps a net.Error or unexpected EOF     the connection broke                           CallError
//	Unknown                read …                                  the connection broke                           CallError
//	Internal               protocol error: incomplete envelope: …  the connection broke                           CallError
//	Unavailable, Canceled                                          no connection, the context, or a reset         CallError
//	Internal               stream error: …                         the server reset the stream                    Internal
//	Internal               any other                               a message that can't be encoded or decoded     Malformed
//	DeadlineExceeded                                               the context, or net's timer ahead of it        DeadlineExceeded
func fromConnect(ctx context.Context, err error) error {
	failure, _ := errors.AsType[*connect.Error](err) // the library returns no other
	code, message := failure.Code(), failure.Message()
	e := &rpcbench.Error{Code: rpcstatus.Code(uint32(code)), Err: err}
	switch {
	case code == connect.CodeDeadlineExceeded:
	case code == connect.CodeInvalidArgument: // without details, either side's own failure to decode
		for _, d := range failure.Details() {
			m, _ := d.Value()
			rpcstatus.Broken(e, m)
		}
	case connect.IsWireError(err): // the server's
		if code == connect.CodeInternal && rpcstatus.CodecFailed(message) {
			e.Code = rpcbench.Malformed
		}
	case broken(err, code, message):
		return rpcbench.CallError(ctx, err)
	case code == connect.CodeInternal && !strings.HasPrefix(message, "stream error: "):
		e.Code = rpcbench.Malformed
	}
	return e
}

// broken tells whether the connection or the context ended the call.
func broken(err error, code connect.Code, message string) bool {
	if _, network := errors.AsType[net.Error](err); network || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	switch code {
	case connect.CodeUnknown:
		return strings.HasPrefix(message, "read ")
	case connect.CodeInternal:
		return strings.HasPrefix(message, "protocol error: incomplete envelope: ")
	}
	return code == connect.CodeUnavailable || code == connect.CodeCanceled
}
