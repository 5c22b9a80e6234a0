package baseline

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/go-playground/validator/v10"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec/msgp"
	"github.com/rpcbench/rpcbench/codec/xmlstd"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

// native is what a form does with the types of its library, but for sending them: U is the user, R the reply.
type native[U, R any] struct {
	validate *validator.Validate
	request  func(rpcbench.User) *U
	answer   func(*U) *R // gives the user its id
	right    func(asked *U, reply *R) bool
}

func (n native[U, R]) requests(asked []rpcbench.User) []*U {
	requests := make([]*U, len(asked))
	for i, u := range asked {
		requests[i] = n.request(u)
	}
	return requests
}

func (n native[U, R]) check(asked *U, reply *R) error {
	if !n.right(asked, reply) {
		return fmt.Errorf("asked for %+v, got %+v", asked, reply)
	}
	return nil
}

type jsonUser struct {
	ID       string `json:"id,omitempty" validate:"-"`
	Email    string `json:"email" validate:"required,email,max=254"`
	Name     string `json:"name" validate:"min=4,max=100"`
	Password string `json:"password" validate:"min=4,max=72"`
	Avatar   []byte `json:"avatar,omitempty" validate:"max=1048576"`
}

type jsonReply struct {
	Code    int32     `json:"code"`
	Message string    `json:"message"`
	User    *jsonUser `json:"user"`
}

func nativeJSON() native[jsonUser, jsonReply] {
	return native[jsonUser, jsonReply]{
		validate: validator.New(validator.WithRequiredStructEnabled()),
		request: func(u rpcbench.User) *jsonUser {
			return &jsonUser{ID: u.ID, Email: u.Email, Name: u.Name, Password: u.Password, Avatar: u.Avatar}
		},
		answer: func(u *jsonUser) *jsonReply {
			u.ID = rpcbench.UserID
			return &jsonReply{Code: rpcbench.OKCode, Message: rpcbench.OKMessage, User: u}
		},
		right: func(asked *jsonUser, reply *jsonReply) bool {
			got := reply.User
			return reply.Code == rpcbench.OKCode && reply.Message == rpcbench.OKMessage && got != nil &&
				got.ID == rpcbench.UserID && got.Email == asked.Email && got.Name == asked.Name &&
				got.Password == asked.Password && bytes.Equal(got.Avatar, asked.Avatar)
		},
	}
}

// rules are those of jsonUser's tags, for a type without them.
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
		right: func(asked *userv1.User, reply *userv1.CreateUserResponse) bool {
			got := reply.GetUser()
			return reply.GetCode() == rpcbench.OKCode && reply.GetMessage() == rpcbench.OKMessage && got != nil &&
				got.GetId() == rpcbench.UserID && got.GetEmail() == asked.GetEmail() && got.GetName() == asked.GetName() &&
				got.GetPassword() == asked.GetPassword() && bytes.Equal(got.GetAvatar(), asked.GetAvatar())
		},
	}
}

func nativeMsgpack() native[msgp.User, msgp.Response] {
	return native[msgp.User, msgp.Response]{
		validate: rules(&msgp.User{}, "ID"),
		request: func(u rpcbench.User) *msgp.User {
			return &msgp.User{ID: u.ID, Email: u.Email, Name: u.Name, Password: u.Password, Avatar: u.Avatar}
		},
		answer: func(u *msgp.User) *msgp.Response {
			u.ID = rpcbench.UserID
			return &msgp.Response{Code: rpcbench.OKCode, Message: rpcbench.OKMessage, User: u}
		},
		right: func(asked *msgp.User, reply *msgp.Response) bool {
			got := reply.User
			return reply.Code == rpcbench.OKCode && reply.Message == rpcbench.OKMessage && got != nil &&
				got.ID == rpcbench.UserID && got.Email == asked.Email && got.Name == asked.Name &&
				got.Password == asked.Password && bytes.Equal(got.Avatar, asked.Avatar)
		},
	}
}

func nativeXML() native[xmlstd.User, xmlstd.Response] {
	return native[xmlstd.User, xmlstd.Response]{
		validate: rules(&xmlstd.User{}, "ID"),
		request: func(u rpcbench.User) *xmlstd.User {
			return &xmlstd.User{ID: u.ID, Email: u.Email, Name: u.Name, Password: u.Password, Avatar: u.Avatar}
		},
		answer: func(u *xmlstd.User) *xmlstd.Response {
			u.ID = rpcbench.UserID
			return &xmlstd.Response{Code: rpcbench.OKCode, Message: rpcbench.OKMessage, User: u}
		},
		right: func(asked *xmlstd.User, reply *xmlstd.Response) bool {
			got := reply.User
			return reply.Code == rpcbench.OKCode && reply.Message == rpcbench.OKMessage && got != nil &&
				got.ID == rpcbench.UserID && got.Email == asked.Email && got.Name == asked.Name &&
				got.Password == asked.Password && bytes.Equal(got.Avatar, asked.Avatar)
		},
	}
}
