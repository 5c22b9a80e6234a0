// Package pb binds the API to the generated types, for the stacks that speak protobuf.
package pb

import (
	"bytes"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/protobuf"
	"github.com/rpcbench/rpcbench/internal/binding"
	"github.com/rpcbench/rpcbench/message/messagepb"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

// Traits are those of a stack that encodes with google.golang.org/protobuf.
func Traits() rpcbench.Traits { return binding.Traits(protobuf.Codec{}.Traits()) }

// VTTraits are t with vtprotobuf's generated methods as the codec. They don't look at UTF-8, and take a negative zero for a zero.
func VTTraits(t rpcbench.Traits) rpcbench.Traits {
	t.Codec, t.InvalidUTF8 = "github.com/rpcbench/rpcbench/proto/user/v1", rpcbench.Kept
	t.Lossy = []string{rpcbench.NegativeZero}
	return t
}

// VTMessage is what protoc-gen-go-vtproto adds to a generated type.
type VTMessage interface {
	SizeVT() int
	MarshalToSizedBufferVT([]byte) (int, error)
	UnmarshalVT([]byte) error
}

// API is the service's description.
func API() binding.API[userv1.User, userv1.CreateUserResponse, messagepb.Flex, userv1.Error] {
	return binding.API[userv1.User, userv1.CreateUserResponse, messagepb.Flex, userv1.Error]{
		Answer:    answer,
		Check:     check,
		Equal:     (*messagepb.Flex).EqualVT, // field by field, generated
		FromError: fromError,
		ToError:   toError,
	}
}

func answer(u *userv1.User) *userv1.CreateUserResponse {
	u.Id = rpcbench.UserID
	return &userv1.CreateUserResponse{Code: rpcbench.OKCode, Message: rpcbench.OKMessage, User: u}
}

// check is rpcbench.Check on the generated types.
func check(asked *userv1.User, r *userv1.CreateUserResponse) error {
	if r.GetCode() != rpcbench.OKCode || r.GetMessage() != rpcbench.OKMessage || r.GetUser() == nil {
		return binding.WrongReply("code, message or user")
	}
	got := r.GetUser()
	if got.GetId() != rpcbench.UserID || got.GetEmail() != asked.GetEmail() || got.GetName() != asked.GetName() ||
		got.GetPassword() != asked.GetPassword() || !bytes.Equal(got.GetAvatar(), asked.GetAvatar()) {
		return binding.WrongReply("a field of the user")
	}
	return nil
}

func fromError(e *rpcbench.Error) *userv1.Error {
	out := &userv1.Error{Code: string(e.Code), Message: e.Message}
	for _, v := range e.Violations {
		out.Violations = append(out.Violations, &userv1.Violation{Field: v.Field, Rule: v.Rule})
	}
	return out
}

func toError(e *userv1.Error) *rpcbench.Error {
	out := &rpcbench.Error{Code: rpcbench.Code(e.GetCode()), Message: e.GetMessage()}
	for _, v := range e.GetViolations() {
		out.Violations = append(out.Violations, rpcbench.Violation{Field: v.GetField(), Rule: v.GetRule()})
	}
	return out
}
