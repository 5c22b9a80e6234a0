package msgp

import (
	"bytes"
	"context"
	"math"
	"slices"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/native"
	"github.com/rpcbench/rpcbench/message"
)

// API is the service on this package's types.
func API() native.API[User, Response, Flex, Error] {
	return native.API[User, Response, Flex, Error]{
		NewService: newService,
		FromUser:   func(u *rpcbench.User) *User { return (*User)(u) },
		ToResponse: toResponse,
		Check:      check,
		FromFlex:   fromFlex,
		ToFlex:     toFlex,
		Equal:      equal,
		FromError:  fromError,
		ToError:    toError,
	}
}

func newService() func(context.Context, *User) (*Response, error) {
	validate := rpcbench.NewValidator[User]()
	return func(_ context.Context, u *User) (*Response, error) {
		if err := validate(u); err != nil {
			return nil, err
		}
		u.ID = rpcbench.UserID
		return &Response{Code: rpcbench.OKCode, Message: rpcbench.OKMessage, User: u}, nil
	}
}

func toResponse(r *Response) *rpcbench.Response {
	return &rpcbench.Response{Code: r.Code, Message: r.Message, User: (*rpcbench.User)(r.User)}
}

// check is rpcbench.Check on the native types.
func check(asked *User, r *Response) error {
	if r.Code != rpcbench.OKCode || r.Message != rpcbench.OKMessage || r.User == nil {
		return rpcbench.WrongReply("code, message or user")
	}
	got := r.User
	if got.ID != rpcbench.UserID || got.Email != asked.Email || got.Name != asked.Name || got.Password != asked.Password ||
		!bytes.Equal(got.Avatar, asked.Avatar) {
		return rpcbench.WrongReply("a field of the user")
	}
	return nil
}

func fromFlex(f *message.Flex) *Flex {
	return &Flex{
		Double: f.Double, Float: f.Float, Int32: f.Int32, Int64: f.Int64, Uint32: f.Uint32, Uint64: f.Uint64,
		Sint32: f.Sint32, Sint64: f.Sint64, Fixed32: f.Fixed32, Fixed64: f.Fixed64, Sfixed32: f.Sfixed32, Sfixed64: f.Sfixed64,
		Bool: f.Bool, String: f.String, Bytes: f.Bytes,
		Message: (*Pair)(f.Message), First: each(f.First, fromPair), Second: each(f.Second, fromPair), Optional: (*Pair)(f.Optional),
	}
}

func toFlex(f *Flex) *message.Flex {
	return &message.Flex{
		Double: f.Double, Float: f.Float, Int32: f.Int32, Int64: f.Int64, Uint32: f.Uint32, Uint64: f.Uint64,
		Sint32: f.Sint32, Sint64: f.Sint64, Fixed32: f.Fixed32, Fixed64: f.Fixed64, Sfixed32: f.Sfixed32, Sfixed64: f.Sfixed64,
		Bool: f.Bool, String: f.String, Bytes: f.Bytes,
		Message: (*message.Pair)(f.Message), First: each(f.First, toPair), Second: each(f.Second, toPair), Optional: (*message.Pair)(f.Optional),
	}
}

func fromPair(p *message.Pair) *Pair { return (*Pair)(p) }
func toPair(p *Pair) *message.Pair   { return (*message.Pair)(p) }

func each[A, B any](in []A, convert func(A) B) []B {
	var out []B
	for _, v := range in {
		out = append(out, convert(v))
	}
	return out
}

// equal is message.Flex's Equal on the native type.
func equal(f, g *Flex) bool {
	return math.Float64bits(f.Double) == math.Float64bits(g.Double) && math.Float32bits(f.Float) == math.Float32bits(g.Float) &&
		f.Int32 == g.Int32 && f.Int64 == g.Int64 && f.Uint32 == g.Uint32 && f.Uint64 == g.Uint64 &&
		f.Sint32 == g.Sint32 && f.Sint64 == g.Sint64 && f.Fixed32 == g.Fixed32 && f.Fixed64 == g.Fixed64 &&
		f.Sfixed32 == g.Sfixed32 && f.Sfixed64 == g.Sfixed64 && f.Bool == g.Bool && f.String == g.String &&
		bytes.Equal(f.Bytes, g.Bytes) && equalPair(f.Message, g.Message) && slices.EqualFunc(f.First, g.First, equalPair) &&
		slices.EqualFunc(f.Second, g.Second, equalPair) && equalPair(f.Optional, g.Optional)
}

func equalPair(p, q *Pair) bool { return p == q || p != nil && q != nil && *p == *q }

func fromError(e *rpcbench.Error) *Error {
	return &Error{
		Code: string(e.Code), Message: e.Message,
		Violations: each(e.Violations, func(v rpcbench.Violation) Violation { return Violation(v) }),
	}
}

func toError(e *Error) *rpcbench.Error {
	return &rpcbench.Error{
		Code: rpcbench.Code(e.Code), Message: e.Message,
		Violations: each(e.Violations, func(v Violation) rpcbench.Violation { return rpcbench.Violation(v) }),
	}
}
