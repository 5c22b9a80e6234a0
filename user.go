package rpcbench

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"time"
)

// User is the request: the user to create, as a plain struct. Stacks whose library needs types of its own (protobuf)
// have an equal type. No stack converts between the two inside a [Call].
type User struct {
	ID       string `json:"id,omitempty" msgpack:"id,omitempty"` // set by the service
	Email    string `json:"email" msgpack:"email"`
	Name     string `json:"name" msgpack:"name"`
	Password string `json:"password" msgpack:"password"`
	Avatar   []byte `json:"avatar,omitempty" msgpack:"avatar,omitempty"` // nil and empty are the same
}

// Sample returns user i, with random bytes as avatar that gzip can't shrink. The same i and payload give the same user.
// Users 0 to 99 differ in every field and encode to equal lengths: 36 bytes of protobuf without payload.
func Sample(i, payload int) User {
	u := User{
		Email:    fmt.Sprintf("anna.%02d@example.com", i),
		Name:     fmt.Sprintf("Anna%02d", i),
		Password: fmt.Sprintf("pw-%02d", i),
	}
	if payload > 0 {
		u.Avatar = make([]byte, payload)
		r := rand.NewChaCha8([32]byte{byte(i)})
		_, _ = r.Read(u.Avatar) // never fails
	}
	return u
}

// Response is the service's reply to a valid user: OKCode, OKMessage, and the user with UserID.
type Response struct {
	Code    int32  `json:"code"`
	Message string `json:"message"`
	User    *User  `json:"user"`
}

// What every Response contains.
const (
	OKCode    = 200
	OKMessage = "OK"
	UserID    = "1000000"
)

// Limits of every server. None bounds the time of a whole call: only some libraries have such a timer, and it would end
// streams.
const (
	MaxAvatar     = 1 << 20          // bytes of User.Avatar; more is Invalid
	MaxBody       = 2 << 20          // bytes of an encoded request; more is TooLarge
	MaxHeader     = 1 << 20          // bytes of a request's headers
	HeaderTimeout = 10 * time.Second // of a handshake, and of reading the headers of a request
	IdleTimeout   = 5 * time.Minute  // of a connection without a request
)

// Answer is the service: it makes the Response to a valid user. It sets the id of u and keeps u.
func Answer(u *User) *Response {
	u.ID = UserID
	return &Response{Code: OKCode, Message: OKMessage, User: u}
}

// Check compares every field of a reply with the user that was asked for. Its error has the code Internal.
func Check(asked *User, r *Response) error {
	got := r.User
	if r.Code == OKCode && r.Message == OKMessage && got != nil && got.ID == UserID && got.Email == asked.Email &&
		got.Name == asked.Name && got.Password == asked.Password && bytes.Equal(got.Avatar, asked.Avatar) {
		return nil
	}
	return &Error{Code: Internal, Message: "wrong reply: it differs from what was asked"}
}
