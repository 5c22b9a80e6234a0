// Package rpcstatus says what a failure is in gRPC and in Connect: the number of its status code, which both share, and
// its details. It imports neither library.
package rpcstatus

import (
	"cmp"
	"errors"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/rpcbench/rpcbench"
)

const internal = 13 // the number of whatever is not in the table

// numbers are of the status codes.
var numbers = map[rpcbench.Code]uint32{
	rpcbench.Canceled:         1,
	rpcbench.Malformed:        3, // InvalidArgument without details
	rpcbench.Invalid:          3, // InvalidArgument with details
	rpcbench.DeadlineExceeded: 4,
	rpcbench.TooLarge:         8,
	rpcbench.Unavailable:      14,
}

// Number returns the number of the status code.
func Number(c rpcbench.Code) uint32 { return cmp.Or(numbers[c], internal) }

// Code returns the code of a status. InvalidArgument is Malformed: only Broken tells it from Invalid.
func Code(number uint32) rpcbench.Code {
	for c, n := range numbers {
		if n == number && c != rpcbench.Invalid {
			return c
		}
	}
	return rpcbench.Internal
}

// Details returns the broken rules as google.rpc.BadRequest, or nil for a failure of another code.
func Details(failure error) *errdetails.BadRequest {
	e, _ := errors.AsType[*rpcbench.Error](failure)
	if e == nil || e.Code != rpcbench.Invalid {
		return nil
	}
	details := new(errdetails.BadRequest)
	for _, v := range e.Violations {
		broken := &errdetails.BadRequest_FieldViolation{Field: v.Field, Description: v.Rule}
		details.FieldViolations = append(details.FieldViolations, broken)
	}
	return details
}

// Broken adds the broken rules to e, and makes its code Invalid, if a detail of the failure is a google.rpc.BadRequest.
func Broken(e *rpcbench.Error, detail any) {
	bad, ok := detail.(*errdetails.BadRequest)
	if !ok {
		return
	}
	e.Code = rpcbench.Invalid
	for _, v := range bad.GetFieldViolations() {
		e.Violations = append(e.Violations, rpcbench.Violation{Field: v.GetField(), Rule: v.GetDescription()})
	}
}

// CodecFailed tells from the message of an Internal of grpc-go, its client's or its server's, that a message could not be
// encoded or decoded.
func CodecFailed(message string) bool {
	return strings.HasPrefix(message, "grpc: failed to unmarshal") || strings.HasPrefix(message, "grpc: error while marshaling")
}
