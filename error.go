package rpcbench

import (
	"context"
	"errors"
)

// Code says how a call failed. It is the same for the same mistake on every stack.
type Code string

const (
	Invalid          Code = "invalid"           // the user breaks a rule; Error.Violations says which
	Malformed        Code = "malformed"         // the request, or the reply, can't be encoded or decoded
	TooLarge         Code = "too large"         // the request is larger than MaxBody
	Canceled         Code = "canceled"          // the caller's context was cancelled; errors.Is(err, context.Canceled)
	DeadlineExceeded Code = "deadline exceeded" // the caller's deadline passed; errors.Is(err, context.DeadlineExceeded)
	Unavailable      Code = "unavailable"       // the server could not be reached, or the connection broke
	Internal         Code = "internal"          // anything else; among them a reply that is not the one asked for
)

// Violation is one broken rule.
type Violation struct {
	Field string `json:"field"` // name on the wire: "email"
	Rule  string `json:"rule"`  // rule and parameter as validator/v10 writes them: "email", "min=4"
}

// Error is the one error of all clients. HTTP stacks send it as the body of a failure, in their own wire format.
type Error struct {
	Code       Code        `json:"code"`
	Violations []Violation `json:"violations,omitempty"` // of Invalid: the first broken rule of each field, in order
	Message    string      `json:"message,omitempty"`    // for people; never compared
	Err        error       `json:"-"`                    // the library's own error, where there is one
}

func (e *Error) Error() string {
	text, separator := "rpcbench: "+string(e.Code), ": "
	for _, v := range e.Violations {
		text += separator + v.Field + " " + v.Rule
		separator = ", "
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is hold between the two context codes and the context's errors, whichever side noticed first.
func (e *Error) Is(target error) bool {
	return e.Code == Canceled && target == context.Canceled ||
		e.Code == DeadlineExceeded && target == context.DeadlineExceeded
}

// CodeOf returns the code of the Error in err's tree. Without one, the context's two errors have their codes, nil has
// "" and any other error is Internal.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	if err == nil {
		return ""
	}
	return contextCode(err, Internal)
}

// CallError makes the Error of a call that its connection or its context ended.
func CallError(ctx context.Context, err error) *Error {
	return &Error{Code: contextCode(errors.Join(ctx.Err(), err), Unavailable), Err: err}
}

func contextCode(err error, otherwise Code) Code {
	switch {
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return DeadlineExceeded
	}
	return otherwise
}
