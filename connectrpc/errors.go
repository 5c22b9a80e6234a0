package connectrpc

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/rpcbench/rpcbench"
)

// codes for all but Internal, which is connect's of the same name, as is what has no code.
var codes = map[rpcbench.Code]connect.Code{
	rpcbench.Invalid:          connect.CodeInvalidArgument,
	rpcbench.Malformed:        connect.CodeInvalidArgument,
	rpcbench.TooLarge:         connect.CodeResourceExhausted,
	rpcbench.Canceled:         connect.CodeCanceled,
	rpcbench.DeadlineExceeded: connect.CodeDeadlineExceeded,
	rpcbench.Unavailable:      connect.CodeUnavailable,
}

// toConnect makes the library's error of a service's. Broken rules are details, as google.rpc.BadRequest.
func toConnect(err error) error {
	code, ok := codes[rpcbench.CodeOf(err)]
	if !ok {
		code = connect.CodeInternal
	}
	failure := connect.NewError(code, err)
	if e, ok := errors.AsType[*rpcbench.Error](err); ok && e.Code == rpcbench.Invalid {
		bad := new(errdetails.BadRequest)
		for _, v := range e.Violations {
			bad.FieldViolations = append(bad.FieldViolations, &errdetails.BadRequest_FieldViolation{Field: v.Field, Description: v.Rule})
		}
		detail, err := connect.NewErrorDetail(bad)
		if err != nil {
			return connect.NewError(connect.CodeInternal, err)
		}
		failure.AddDetail(detail)
	}
	return failure
}

// fromConnect turns what a client returns into an *rpcbench.Error. What the server sent is told from the client's own, and
// four things by words alone: of the client's Unknown, that it could not read from the connection; of its Internal, that
// it could not read the beginning of a message, or that the server reset the stream (else it is a request that does not
// encode, or a reply against the protocol); of a grpc-go server's Internal, that it could not decode or encode.
func fromConnect(ctx context.Context, err error) error {
	failure, _ := errors.AsType[*connect.Error](err) // the library returns no other
	words := func(begin string) bool { return strings.HasPrefix(failure.Message(), begin) }
	_, network := errors.AsType[net.Error](err)
	e := &rpcbench.Error{Code: rpcbench.Internal, Err: err}
	switch code, sent := failure.Code(), connect.IsWireError(err); {
	case code == connect.CodeInvalidArgument:
		e.Code = rpcbench.Malformed // without details, either side's own failure to decode is one
		for _, d := range failure.Details() {
			m, _ := d.Value()
			if bad, ok := m.(*errdetails.BadRequest); ok {
				e.Code = rpcbench.Invalid
				for _, v := range bad.GetFieldViolations() {
					e.Violations = append(e.Violations, rpcbench.Violation{Field: v.GetField(), Rule: v.GetDescription()})
				}
			}
		}
	case code == connect.CodeDeadlineExceeded: // also when net's timer was ahead of the context's
		e.Code = rpcbench.DeadlineExceeded
	case !sent && (network || errors.Is(err, io.ErrUnexpectedEOF) || code == connect.CodeUnknown && words("read ")),
		!sent && code == connect.CodeInternal && words("protocol error: incomplete envelope: "),
		!sent && (code == connect.CodeUnavailable || code == connect.CodeCanceled): // Canceled is also a connection that was reset
		return rpcbench.CallError(ctx, err)
	case code == connect.CodeCanceled:
		e.Code = rpcbench.Canceled
	case code == connect.CodeUnavailable:
		e.Code = rpcbench.Unavailable
	case code == connect.CodeResourceExhausted:
		e.Code = rpcbench.TooLarge
	case code == connect.CodeInternal && !sent && !words("stream error: "),
		code == connect.CodeInternal && sent && (words("grpc: failed to unmarshal") || words("grpc: error while marshaling")):
		e.Code = rpcbench.Malformed
	}
	return e
}
