// Package pbnative is the service and its native types for the stacks that speak protobuf.
package pbnative

import (
	"bytes"
	"context"

	"github.com/rpcbench/rpcbench"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

// NewService makes the operation a server runs: it validates and answers.
func NewService() func(context.Context, *userv1.User) (*userv1.CreateUserResponse, error) {
	validate := rpcbench.NewValidator[userv1.User]()
	return func(_ context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
		if err := validate(u); err != nil {
			return nil, err
		}
		u.Id = rpcbench.UserID
		return &userv1.CreateUserResponse{Code: rpcbench.OKCode, Message: rpcbench.OKMessage, User: u}, nil
	}
}

// FromUser converts a request, outside of any timed call.
func FromUser(u rpcbench.User) *userv1.User {
	return &userv1.User{Id: u.ID, Email: u.Email, Name: u.Name, Password: u.Password, Avatar: u.Avatar}
}

// ToResponse converts a reply, outside of any timed call.
func ToResponse(r *userv1.CreateUserResponse) rpcbench.Response {
	out := rpcbench.Response{Code: r.GetCode(), Message: r.GetMessage()}
	if u := r.GetUser(); u != nil {
		out.User = &rpcbench.User{ID: u.Id, Email: u.Email, Name: u.Name, Password: u.Password, Avatar: u.Avatar}
	}
	return out
}

// Check is rpcbench.Check on the generated types.
func Check(asked *userv1.User, r *userv1.CreateUserResponse) error {
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
