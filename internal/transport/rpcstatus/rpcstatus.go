// Package rpcstatus translates failures for gRPC and Connect, which share the numbers and details of a status. It
// imports neither library.
package rpcstatus

import (
	"cmp"
	"errors"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/rpcbench/rpcbench"
)

const internal = 13 // the number of any code that is not in the table

// numbers maps codes to the numbers of status codes.
var numbers = map[rpcbench.Code]uint32{
	rpcbench.CodeCanceled:         1,
	rpcbench.CodeMalformed:        3, // InvalidArgument without details
	rpcbench.CodeInvalid:          3, // InvalidArgument with details
	rpcbench.CodeDeadlineExceeded: 4,
	rpcbench.CodeTooLarge:         8,
	rpcbench.CodeUnavailable:      14,
}

// Status returns the number of a failure's status code, and the broken rules if the failure is Invalid.
func Status(failure error) (number uint32, details *errdetails.BadRequest) {
	number = cmp.Or(numbers[rpcbench.CodeOf(failure)], internal)
	if e, ok := errors.AsType[*rpcbench.Error](failure); ok && e.Code == rpcbench.CodeInvalid {
		details = new(errdetails.BadRequest)
		for _, v := range e.Violations {
			broken := &errdetails.BadRequest_FieldViolation{Field: v.Field, Description: v.Rule}
			details.FieldViolations = append(details.FieldViolations, broken)
		}
	}
	return number, details
}

// Error turns a status without details into an error. InvalidArgument becomes Malformed. So does Internal, if its text
// is grpc-go's for a message that could not be encoded or decoded.
func Error(err error, number uint32, message string) *rpcbench.Error {
	e := &rpcbench.Error{Code: rpcbench.CodeInternal, Err: err}
	for c, n := range numbers {
		if n == number && c != rpcbench.CodeInvalid {
			e.Code = c
		}
	}
	if number == internal && (strings.HasPrefix(message, "grpc: failed to unmarshal") ||
		strings.HasPrefix(message, "grpc: error while marshaling")) {
		e.Code = rpcbench.CodeMalformed
	}
	return e
}

// AddDetail adds a detail of the status to e: with a google.rpc.BadRequest, e gets its broken rules and the code
// Invalid.
func AddDetail(e *rpcbench.Error, detail any) {
	if bad, ok := detail.(*errdetails.BadRequest); ok {
		e.Code = rpcbench.CodeInvalid
		for _, v := range bad.GetFieldViolations() {
			e.Violations = append(e.Violations, rpcbench.Violation{Field: v.GetField(), Rule: v.GetDescription()})
		}
	}
}
