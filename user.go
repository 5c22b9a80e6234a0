package rpcbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-playground/validator/v10"
)

// User is the request: the user to create, as a plain struct. A stack whose library needs a type of its own, such as a
// generated one, has an equal type. No stack converts between the two inside a [Call].
type User struct {
	ID       string `json:"id,omitempty" msgpack:"id,omitempty"` // set by the service
	Email    string `json:"email" msgpack:"email"`
	Name     string `json:"name" msgpack:"name"`
	Password string `json:"password" msgpack:"password"`
	Avatar   []byte `json:"avatar,omitempty" msgpack:"avatar,omitempty"` // nil and empty are the same
}

// SampleUser returns user i, whose avatar is payload random bytes that gzip can't shrink. The same i and payload give
// the same user. Users 0 to 99 differ in every field and have equal encoded lengths: 36 bytes of protobuf without
// payload.
func SampleUser(i, payload int) User {
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

// Limits of every server. None bounds the time of a whole call, because only some libraries have such a timer, and it
// would end streams.
const (
	MaxAvatar     = 1 << 20          // bytes of User.Avatar; more is CodeInvalid
	MaxBody       = 2 << 20          // bytes of an encoded request; more is CodeTooLarge
	MaxHeader     = 1 << 20          // bytes of a request's headers
	HeaderTimeout = 10 * time.Second // of a handshake, and of reading the headers of a request
	IdleTimeout   = 5 * time.Minute  // of a connection without a request
)

// AnswerUser is the service: it makes the Response to a valid user. It sets the id of u, and the Response points to u.
func AnswerUser(u *User) *Response {
	u.ID = UserID
	return &Response{Code: OKCode, Message: OKMessage, User: u}
}

// CheckUser compares every field of a reply with the user that was asked for. Its error has the code CodeInternal.
func CheckUser(asked *User, r *Response) error {
	got := r.User
	if r.Code == OKCode && r.Message == OKMessage && got != nil && got.ID == UserID && got.Email == asked.Email &&
		got.Name == asked.Name && got.Password == asked.Password && bytes.Equal(got.Avatar, asked.Avatar) {
		return nil
	}
	return &Error{Code: CodeInternal, Message: "wrong reply: it differs from what was asked"}
}

// rules returns the rules of each field, by its name on the wire, as validator/v10 writes them. Lengths count
// characters of strings and bytes of the avatar. "-" skips a field: a field without a rule would cost an allocation,
// because the library copies each field that it visits, from v10.30.2 on.
func rules() map[string]string {
	return map[string]string{
		"id":       "-", // set by the service
		"email":    "required,email,max=254",
		"name":     "min=4,max=100",
		"password": "min=4,max=72",
		"avatar":   "max=" + strconv.Itoa(MaxAvatar),
	}
}

// NewUserValidator returns the validation that every server runs on a request of type T, the user type of its library.
// The returned function's error is an *Error with the code CodeInvalid. The function counts each user as a call that
// the server has handled, which a Fixture tells. For a valid user it waits for config.Wait, like a handler that asks a
// database. NewUserValidator panics unless T has exactly the fields of User, by their json names, because validator/v10
// would silently ignore a rule for a field that does not exist.
func NewUserValidator[T any](config ServerConfig) func(*T) error {
	byField, rest := map[string]string{}, rules()
	t := reflect.TypeFor[T]()
	for f := range t.Fields() {
		if f.IsExported() {
			byField[f.Name] = rest[jsonName(f)]
			delete(rest, jsonName(f))
		}
	}
	if len(rest) > 0 || len(byField) != len(rules()) {
		panic(fmt.Sprintf("the fields of %v are not those of User, by their json names", t))
	}
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(jsonName)
	v.RegisterStructValidationMapRules(byField, new(T))
	return func(u *T) error {
		err := v.Struct(u)
		if err == nil {
			config.CountAndWait()
			return nil
		}
		config.handled.count()
		fields, _ := errors.AsType[validator.ValidationErrors](err) // no other error, since u is a pointer to a struct
		e := &Error{Code: CodeInvalid}
		for _, f := range fields {
			rule := f.Tag()
			if f.Param() != "" {
				rule += "=" + f.Param()
			}
			e.Violations = append(e.Violations, Violation{Field: f.Field(), Rule: rule})
		}
		return e
	}
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// Code says how a call failed. The same mistake has the same Code on every stack.
type Code string

const (
	CodeInvalid   Code = "invalid"   // the user breaks a rule; Error.Violations says which
	CodeMalformed Code = "malformed" // the request or the reply can't be encoded or decoded
	CodeTooLarge  Code = "too_large" // the request is larger than MaxBody
	CodeCanceled  Code = "canceled"  // the caller's context was cancelled; errors.Is(err, context.Canceled)
	// the caller's deadline passed; errors.Is(err, context.DeadlineExceeded)
	CodeDeadlineExceeded Code = "deadline_exceeded"
	CodeUnavailable      Code = "unavailable" // the server could not be reached, or the connection broke
	CodeInternal         Code = "internal"    // anything else, such as a reply that differs from what was asked
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
	text, separator := string(e.Code), ": "
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

// Is makes errors.Is match CodeCanceled with context.Canceled and CodeDeadlineExceeded with context.DeadlineExceeded,
// whether the client or the server noticed first.
func (e *Error) Is(target error) bool {
	return e.Code == CodeCanceled && target == context.Canceled ||
		e.Code == CodeDeadlineExceeded && target == context.DeadlineExceeded
}

// CodeOf returns the Code of the *Error that err is or wraps. For any other error it returns CodeCanceled or
// CodeDeadlineExceeded if err wraps an error of package context, and otherwise CodeInternal. For nil it returns "".
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	if err == nil {
		return ""
	}
	return contextCode(err, CodeInternal)
}

// CallError turns err, from a call whose connection broke or whose context ended, into an Error. Its Code is
// CodeCanceled or CodeDeadlineExceeded if ctx ended, and otherwise CodeUnavailable. If ctx has a deadline, an err that
// wraps context.DeadlineExceeded counts as well, because a library may notice the deadline a little early. Other
// timeouts, and a context.Canceled, may be the library's own and do not count.
func CallError(ctx context.Context, err error) *Error {
	code := contextCode(ctx.Err(), CodeUnavailable)
	_, bounded := ctx.Deadline()
	if bounded && code == CodeUnavailable && errors.Is(err, context.DeadlineExceeded) {
		code = CodeDeadlineExceeded
	}
	return &Error{Code: code, Err: err}
}

func contextCode(err error, otherwise Code) Code {
	switch {
	case errors.Is(err, context.Canceled):
		return CodeCanceled
	case errors.Is(err, context.DeadlineExceeded):
		return CodeDeadlineExceeded
	}
	return otherwise
}
