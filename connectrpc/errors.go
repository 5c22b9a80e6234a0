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

// codes in both directions, but for InvalidArgument, which is Invalid with details and Malformed without.
var codes = map[rpcbench.Code]connect.Code{
	rpcbench.Invalid:          connect.CodeInvalidArgument,
	rpcbench.Malformed:        connect.CodeInvalidArgument,
	rpcbench.TooLarge:         connect.CodeResourceExhausted,
	rpcbench.Canceled:         connect.CodeCanceled,
	rpcbench.DeadlineExceeded: connect.CodeDeadlineExceeded,
	rpcbench.Unavailable:      connect.CodeUnavailable,
	rpcbench.Internal:         connect.CodeInternal,
}

// toConnect makes connect's error of a service's. Broken rules are details, as google.rpc.BadRequest. Of an error that is
// none of rpcbench's the library makes Unknown, or the code of the context's two errors.
func toConnect(err error) error {
	e, ok := errors.AsType[*rpcbench.Error](err)
	if !ok {
		return err
	}
	failure := connect.NewError(codes[e.Code], e)
	if e.Code == rpcbench.Invalid {
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

// fromConnect turns what a client returns into an *rpcbench.Error.
func fromConnect(ctx context.Context, err error) error {
	failure, _ := errors.AsType[*connect.Error](err) // the library returns no other
	if !connect.IsWireError(err) {
		return own(ctx, failure)
	}
	e := &rpcbench.Error{Code: rpcbench.Internal, Err: err}
	for code, theirs := range codes {
		if theirs == failure.Code() {
			e.Code = code
		}
	}
	if failure.Code() == connect.CodeInvalidArgument || decoding(failure) {
		e.Code = rpcbench.Malformed
	}
	for _, d := range failure.Details() {
		m, _ := d.Value()
		if bad, ok := m.(*errdetails.BadRequest); ok && e.Code == rpcbench.Malformed {
			e.Code = rpcbench.Invalid
			for _, v := range bad.GetFieldViolations() {
				e.Violations = append(e.Violations, rpcbench.Violation{Field: v.GetField(), Rule: v.GetDescription()})
			}
		}
	}
	return e
}

// decoding says whether a grpc-go server failed to decode or encode: it says Internal, and is told by its words.
func decoding(failure *connect.Error) bool {
	words := failure.Message()
	return strings.HasPrefix(words, "grpc: failed to unmarshal") || strings.HasPrefix(words, "grpc: error while marshaling")
}

// own is for what the server did not send. The library says Canceled also when the connection is reset, and Unknown when it
// could not be read or written, which is told by its words: "read message: ...". InvalidArgument is a reply that does not
// decode; Internal is a request that does not encode, a reply against the protocol, or that the server reset the stream.
func own(ctx context.Context, failure *connect.Error) error {
	_, network := errors.AsType[net.Error](failure)
	begins := func(words string) bool { return strings.HasPrefix(failure.Message(), words) }
	e := &rpcbench.Error{Code: rpcbench.Internal, Err: failure}
	switch code := failure.Code(); {
	case code == connect.CodeDeadlineExceeded: // also when net's timer was ahead of the context's
		e.Code = rpcbench.DeadlineExceeded
	case code == connect.CodeInvalidArgument:
		e.Code = rpcbench.Malformed
	case network, errors.Is(failure, io.ErrUnexpectedEOF), code == connect.CodeCanceled, code == connect.CodeUnavailable,
		code == connect.CodeUnknown && (begins("read ") || begins("write ")):
		return rpcbench.CallError(ctx, failure)
	case code == connect.CodeInternal && !begins("stream error: "):
		e.Code = rpcbench.Malformed
	}
	return e
}
