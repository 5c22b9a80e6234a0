package xmlstd

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
		FromUser:   fromUser,
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

func fromUser(u *rpcbench.User) *User {
	return &User{ID: u.ID, Email: u.Email, Name: u.Name, Password: u.Password, Avatar: u.Avatar}
}

func toResponse(r *Response) *rpcbench.Response {
	out := &rpcbench.Response{Code: r.Code, Message: r.Message}
	if u := r.User; u != nil {
		out.User = &rpcbench.User{ID: u.ID, Email: u.Email, Name: u.Name, Password: u.Password, Avatar: u.Avatar}
	}
	return out
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
		Message: f.Message, First: f.First, Second: f.Second, Optional: f.Optional,
	}
}

func toFlex(f *Flex) *message.Flex {
	return &message.Flex{
		Double: f.Double, Float: f.Float, Int32: f.Int32, Int64: f.Int64, Uint32: f.Uint32, Uint64: f.Uint64,
		Sint32: f.Sint32, Sint64: f.Sint64, Fixed32: f.Fixed32, Fixed64: f.Fixed64, Sfixed32: f.Sfixed32, Sfixed64: f.Sfixed64,
		Bool: f.Bool, String: f.String, Bytes: f.Bytes,
		Message: f.Message, First: f.First, Second: f.Second, Optional: f.Optional,
	}
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

func equalPair(p, q *message.Pair) bool { return p == q || p != nil && q != nil && *p == *q }

func fromError(e *rpcbench.Error) *Error {
	out := &Error{Code: string(e.Code), Message: e.Message}
	for _, v := range e.Violations {
		out.Violations = append(out.Violations, Violation(v))
	}
	return out
}

func toError(e *Error) *rpcbench.Error {
	out := &rpcbench.Error{Code: rpcbench.Code(e.Code), Message: e.Message}
	for _, v := range e.Violations {
		out.Violations = append(out.Violations, rpcbench.Violation(v))
	}
	return out
}
