package rpcbench

import (
	"context"
	"errors"
)

// Code says how a call failed. The same mistake has the same Code on every stack.
type Code string

const (
	Invalid          Code = "invalid"           // the user breaks a rule; Error.Violations says which
	Malformed        Code = "malformed"         // the request or the reply can't be encoded or decoded
	TooLarge         Code = "too large"         // the request is larger than MaxBody
	Canceled         Code = "canceled"          // the caller's context was cancelled; errors.Is(err, context.Canceled)
	DeadlineExceeded Code = "deadline exceeded" // the caller's deadline passed; errors.Is(err, context.DeadlineExceeded)
	Unavailable      Code = "unavailable"       // the server could not be reached, or the connection broke
	Internal         Code = "internal"          // anything else, such as a reply that differs from what was asked
)

// Violation is one broken rule.
type Violation struct {
	Field string `json:"field"` // name on the wire: "email"
	Rule  string `json:"rule"`  // rule and parameter as validator/v10 writes them: "email", "min=4"
}

// Error is the error of every client. HTTP stacks send it as the body of a failed reply, in their own wire format.
type Error struct {
	Code       Code        `json:"code"`
	Violations []Violation `json:"violations,omitempty"` // with Invalid: the first broken rule of each field, in order
	Message    string      `json:"message,omitempty"`    // for people; the suite ignores it
	Err        error       `json:"-"`                    // the library's own error, or nil
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

// Is makes errors.Is match Canceled with context.Canceled and DeadlineExceeded with context.DeadlineExceeded, whether
// the client or the server noticed first.
func (e *Error) Is(target error) bool {
	return e.Code == Canceled && target == context.Canceled ||
		e.Code == DeadlineExceeded && target == context.DeadlineExceeded
}

// CodeOf returns the Code of the *Error that err is or wraps. For other errors it returns Canceled or DeadlineExceeded
// if err wraps an error of a context, and else Internal. For nil it returns "".
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	if err == nil {
		return ""
	}
	return contextCode(err, Internal)
}

// CallError turns err, from a call whose connection broke or whose context ended, into an Error. Its Code is Canceled
// or DeadlineExceeded if ctx ended, and else Unavailable. A library may notice ctx's deadline a little early, and wrap
// context.DeadlineExceeded. A context.Canceled or a timeout of the library's own says nothing about ctx.
func CallError(ctx context.Context, err error) *Error {
	code := contextCode(ctx.Err(), Unavailable)
	_, bounded := ctx.Deadline()
	if bounded && code == Unavailable && errors.Is(err, context.DeadlineExceeded) {
		code = DeadlineExceeded
	}
	return &Error{Code: code, Err: err}
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
