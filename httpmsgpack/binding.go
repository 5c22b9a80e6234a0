package httpmsgpack

import (
	"bytes"
	"math"
	"slices"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/msgp"
	"github.com/rpcbench/rpcbench/internal/binding"
)

// api binds the service to the codec's types.
func api() binding.API[msgp.User, msgp.Response, msgp.Flex, msgp.Error] {
	return binding.API[msgp.User, msgp.Response, msgp.Flex, msgp.Error]{Answer: answer, Check: check, Equal: equal, FromError: fromError, ToError: toError}
}

func answer(u *msgp.User) *msgp.Response {
	u.ID = rpcbench.UserID
	return &msgp.Response{Code: rpcbench.OKCode, Message: rpcbench.OKMessage, User: u}
}

func check(asked *msgp.User, r *msgp.Response) error {
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

func equal(f, g *msgp.Flex) bool {
	return math.Float64bits(f.Double) == math.Float64bits(g.Double) && math.Float32bits(f.Float) == math.Float32bits(g.Float) &&
		f.Int32 == g.Int32 && f.Int64 == g.Int64 && f.Uint32 == g.Uint32 && f.Uint64 == g.Uint64 &&
		f.Sint32 == g.Sint32 && f.Sint64 == g.Sint64 && f.Fixed32 == g.Fixed32 && f.Fixed64 == g.Fixed64 &&
		f.Sfixed32 == g.Sfixed32 && f.Sfixed64 == g.Sfixed64 && f.Bool == g.Bool && f.String == g.String &&
		bytes.Equal(f.Bytes, g.Bytes) && equalPair(f.Message, g.Message) && slices.EqualFunc(f.First, g.First, equalPair) &&
		slices.EqualFunc(f.Second, g.Second, equalPair) && equalPair(f.Optional, g.Optional)
}

func equalPair(p, q *msgp.Pair) bool { return p == q || p != nil && q != nil && *p == *q }

func fromError(e *rpcbench.Error) *msgp.Error {
	out := &msgp.Error{Code: string(e.Code), Message: e.Message}
	for _, v := range e.Violations {
		out.Violations = append(out.Violations, msgp.Violation(v))
	}
	return out
}

func toError(e *msgp.Error) *rpcbench.Error {
	out := &rpcbench.Error{Code: rpcbench.Code(e.Code), Message: e.Message}
	for _, v := range e.Violations {
		out.Violations = append(out.Violations, rpcbench.Violation(v))
	}
	return out
}
