// Package pbnative is the service on generated types, for the stacks that speak protobuf.
package pbnative

import (
	"bytes"
	"context"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/native"
	"github.com/rpcbench/rpcbench/message"
	"github.com/rpcbench/rpcbench/message/messagepb"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

// API is the service's description.
func API() native.API[userv1.User, userv1.CreateUserResponse, messagepb.Flex, userv1.Error] {
	return native.API[userv1.User, userv1.CreateUserResponse, messagepb.Flex, userv1.Error]{
		NewService: newService,
		FromUser:   fromUser,
		ToResponse: toResponse,
		Check:      check,
		FromFlex:   fromFlex,
		ToFlex:     toFlex,
		Equal:      (*messagepb.Flex).EqualVT, // field by field, generated
		FromError:  fromError,
		ToError:    toError,
	}
}

func newService() func(context.Context, *userv1.User) (*userv1.CreateUserResponse, error) {
	validate := rpcbench.NewValidator[userv1.User]()
	return func(_ context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
		if err := validate(u); err != nil {
			return nil, err
		}
		u.Id = rpcbench.UserID
		return &userv1.CreateUserResponse{Code: rpcbench.OKCode, Message: rpcbench.OKMessage, User: u}, nil
	}
}

func fromUser(u *rpcbench.User) *userv1.User {
	return &userv1.User{Id: u.ID, Email: u.Email, Name: u.Name, Password: u.Password, Avatar: u.Avatar}
}

func toResponse(r *userv1.CreateUserResponse) *rpcbench.Response {
	out := &rpcbench.Response{Code: r.GetCode(), Message: r.GetMessage()}
	if u := r.GetUser(); u != nil {
		out.User = &rpcbench.User{ID: u.Id, Email: u.Email, Name: u.Name, Password: u.Password, Avatar: u.Avatar}
	}
	return out
}

// check is rpcbench.Check on the generated types.
func check(asked *userv1.User, r *userv1.CreateUserResponse) error {
	if r.GetCode() != rpcbench.OKCode || r.GetMessage() != rpcbench.OKMessage || r.GetUser() == nil {
		return rpcbench.WrongReply("code, message or user")
	}
	got := r.GetUser()
	if got.GetId() != rpcbench.UserID || got.GetEmail() != asked.GetEmail() || got.GetName() != asked.GetName() ||
		got.GetPassword() != asked.GetPassword() || !bytes.Equal(got.GetAvatar(), asked.GetAvatar()) {
		return rpcbench.WrongReply("a field of the user")
	}
	return nil
}

func fromFlex(f *message.Flex) *messagepb.Flex {
	return &messagepb.Flex{
		Double: f.Double, Float: f.Float, Int32: f.Int32, Int64: f.Int64, Uint32: f.Uint32, Uint64: f.Uint64,
		Sint32: f.Sint32, Sint64: f.Sint64, Fixed32: f.Fixed32, Fixed64: f.Fixed64, Sfixed32: f.Sfixed32, Sfixed64: f.Sfixed64,
		Bool: f.Bool, String_: f.String, Bytes: f.Bytes,
		Message: fromPair(f.Message), First: each(f.First, fromPair), Second: each(f.Second, fromPair), Optional: fromPair(f.Optional),
	}
}

func toFlex(f *messagepb.Flex) *message.Flex {
	return &message.Flex{
		Double: f.Double, Float: f.Float, Int32: f.Int32, Int64: f.Int64, Uint32: f.Uint32, Uint64: f.Uint64,
		Sint32: f.Sint32, Sint64: f.Sint64, Fixed32: f.Fixed32, Fixed64: f.Fixed64, Sfixed32: f.Sfixed32, Sfixed64: f.Sfixed64,
		Bool: f.Bool, String: f.String_, Bytes: f.Bytes,
		Message: toPair(f.Message), First: each(f.First, toPair), Second: each(f.Second, toPair), Optional: toPair(f.Optional),
	}
}

func fromPair(p *message.Pair) *messagepb.Pair {
	if p == nil {
		return nil
	}
	return &messagepb.Pair{Key: p.Key, Value: p.Value}
}

func toPair(p *messagepb.Pair) *message.Pair {
	if p == nil {
		return nil
	}
	return &message.Pair{Key: p.Key, Value: p.Value}
}

func each[A, B any](in []A, convert func(A) B) []B {
	var out []B
	for _, v := range in {
		out = append(out, convert(v))
	}
	return out
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

// Uploaded is the answer to so many valid users.
func Uploaded(users int64) *userv1.UploadUsersResponse {
	return &userv1.UploadUsersResponse{Code: rpcbench.OKCode, Message: rpcbench.OKMessage, Users: users}
}

// CheckUpload compares the reply to an upload with what was sent.
func CheckUpload(sent int, r *userv1.UploadUsersResponse) error {
	if r.GetCode() != rpcbench.OKCode || r.GetMessage() != rpcbench.OKMessage {
		return rpcbench.WrongReply("code or message")
	}
	if r.GetUsers() != int64(sent) {
		return rpcbench.WrongReply("the number of users")
	}
	return nil
}
