package baseline

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/go-playground/validator/v10"

	"github.com/rpcbench/rpcbench"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

// native is what a form does with the types of its library, but for sending them: U is the user, R the reply.
type native[U, R any] struct {
	validate *validator.Validate
	request  func(rpcbench.User) *U
	answer   func(*U) *R            // gives the user its id
	user     func(*U) rpcbench.User // what is compared of one
	parts    func(*R) (code int32, message string, user *U)
}

func (n native[U, R]) requests(asked []rpcbench.User) []*U {
	requests := make([]*U, len(asked))
	for i, u := range asked {
		requests[i] = n.request(u)
	}
	return requests
}

func (n native[U, R]) check(asked *U, reply *R) error {
	code, message, user := n.parts(reply)
	if user != nil && code == rpcbench.OKCode && message == rpcbench.OKMessage {
		want, got := n.user(asked), n.user(user)
		if got.ID == rpcbench.UserID && got.Email == want.Email && got.Name == want.Name &&
			got.Password == want.Password && bytes.Equal(got.Avatar, want.Avatar) {
			return nil
		}
	}
	return fmt.Errorf("asked for %+v, got %+v", asked, reply)
}

// rules are those of the API, by the names of Go's fields.
func rules(user any, id string) *validator.Validate {
	validate := validator.New(validator.WithRequiredStructEnabled())
	validate.RegisterStructValidationMapRules(map[string]string{
		id:         "-",
		"Email":    "required,email,max=254",
		"Name":     "min=4,max=100",
		"Password": "min=4,max=72",
		"Avatar":   "max=" + strconv.Itoa(rpcbench.MaxAvatar),
	}, user)
	return validate
}

func nativeJSON() native[rpcbench.User, rpcbench.Response] {
	return native[rpcbench.User, rpcbench.Response]{
		validate: rules(&rpcbench.User{}, "ID"),
		request:  func(u rpcbench.User) *rpcbench.User { return &u },
		answer: func(u *rpcbench.User) *rpcbench.Response {
			u.ID = rpcbench.UserID
			return &rpcbench.Response{Code: rpcbench.OKCode, Message: rpcbench.OKMessage, User: u}
		},
		user:  func(u *rpcbench.User) rpcbench.User { return *u },
		parts: func(r *rpcbench.Response) (int32, string, *rpcbench.User) { return r.Code, r.Message, r.User },
	}
}

func nativeProtobuf() native[userv1.User, userv1.CreateUserResponse] {
	return native[userv1.User, userv1.CreateUserResponse]{
		validate: rules(&userv1.User{}, "Id"),
		request: func(u rpcbench.User) *userv1.User {
			return &userv1.User{Id: u.ID, Email: u.Email, Name: u.Name, Password: u.Password, Avatar: u.Avatar}
		},
		answer: func(u *userv1.User) *userv1.CreateUserResponse {
			u.Id = rpcbench.UserID
			return &userv1.CreateUserResponse{Code: rpcbench.OKCode, Message: rpcbench.OKMessage, User: u}
		},
		user: func(u *userv1.User) rpcbench.User {
			return rpcbench.User{ID: u.Id, Email: u.Email, Name: u.Name, Password: u.Password, Avatar: u.Avatar}
		},
		parts: func(r *userv1.CreateUserResponse) (int32, string, *userv1.User) { return r.Code, r.Message, r.User },
	}
}
