// Package pb implements the API on the types that protoc generates, for the stacks that speak protobuf.
package pb

import (
	"bytes"
	"context"
	"errors"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/codec/protobuf"
	messagepb "github.com/rpcbench/rpcbench/proto/message/v1"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

// Conn is a connection that carries the generated types.
type Conn = binding.Conn[userv1.User, userv1.CreateUserResponse, messagepb.Flex]

// Stream is a stream of the generated types.
type Stream = binding.Stream[userv1.User, userv1.CreateUserResponse]

// Traits returns the traits of a stack that encodes with google.golang.org/protobuf.
func Traits() rpcbench.Traits { return binding.Traits(protobuf.Codec{}.Traits()) }

// VTTraits returns t with vtprotobuf's generated methods as the codec. These methods do not check UTF-8, and turn a
// negative zero into zero.
func VTTraits(t rpcbench.Traits) rpcbench.Traits {
	t.Codec, t.InvalidUTF8 = "github.com/rpcbench/rpcbench/proto/user/v1", rpcbench.UTF8Kept
	t.Lossy = []rpcbench.Loss{rpcbench.LossNegativeZero}
	return t
}

// Message is a pointer to a generated type.
type Message[T any] interface {
	*T
	proto.Message
}

// sorted encodes a message, with the entries of a map in one order.
func sorted(v any) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(v.(proto.Message))
}

// Format is how stacks encode a method's messages with google.golang.org/protobuf.
func Format() binding.Format {
	return binding.Format{Codec: protobuf.Codec{}, Sorted: sorted,
		Clone: func(v any) any { return proto.Clone(v.(proto.Message)) }}
}

// VTMessage has the methods that protoc-gen-go-vtproto adds to a generated type.
type VTMessage interface {
	SizeVT() int
	MarshalToSizedBufferVT([]byte) (int, error)
	UnmarshalVT([]byte) error
}

// Create is the operation of the service.
type Create = func(context.Context, *userv1.User) (*userv1.CreateUserResponse, error)

// Service is the API as generated servers call it.
type Service struct {
	Create  Create
	Failure func(error) error      // turns an error of the service into the library's
	Config  *rpcbench.ServerConfig // of the server, for Echo
}

func (s Service) CreateUser(ctx context.Context, u *userv1.User) (*userv1.CreateUserResponse, error) {
	reply, err := s.Create(ctx, u)
	if err != nil {
		return nil, s.Failure(err)
	}
	return reply, nil
}

func (s Service) Echo(_ context.Context, f *messagepb.Flex) (*messagepb.Flex, error) {
	s.Config.CountAndWait()
	return f, nil
}

// Answer receives the users of a stream and sends a reply to each, in turn.
func (s Service) Answer(ctx context.Context,
	receive func() (*userv1.User, error), send func(*userv1.CreateUserResponse) error) error {
	for {
		u, err := receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		reply, err := s.CreateUser(ctx, u)
		if err != nil {
			return err
		}
		if err := send(reply); err != nil {
			return err
		}
	}
}

// API returns the service on the generated types.
func API() binding.API[userv1.User, userv1.CreateUserResponse, messagepb.Flex, userv1.Error] {
	return binding.API[userv1.User, userv1.CreateUserResponse, messagepb.Flex, userv1.Error]{
		Answer: func(u *userv1.User) *userv1.CreateUserResponse {
			u.Id = rpcbench.UserID
			return &userv1.CreateUserResponse{Code: rpcbench.OKCode, Message: rpcbench.OKMessage, User: u}
		},
		Check: check,
		Equal: (*messagepb.Flex).EqualVT, // field by field, generated
		FromError: func(e *rpcbench.Error) *userv1.Error {
			out := &userv1.Error{Code: string(e.Code), Message: e.Message}
			for _, v := range e.Violations {
				out.Violations = append(out.Violations, &userv1.Violation{Field: v.Field, Rule: v.Rule})
			}
			return out
		},
		ToError: func(e *userv1.Error) *rpcbench.Error {
			out := &rpcbench.Error{Code: rpcbench.Code(e.Code), Message: e.Message}
			for _, v := range e.Violations {
				out.Violations = append(out.Violations, rpcbench.Violation{Field: v.Field, Rule: v.Rule})
			}
			return out
		},
	}
}

// check is rpcbench.CheckUser on the generated types.
func check(asked *userv1.User, r *userv1.CreateUserResponse) error {
	got := r.GetUser()
	if got == nil || r.Code != rpcbench.OKCode || r.Message != rpcbench.OKMessage || got.Id != rpcbench.UserID ||
		got.Email != asked.Email || got.Name != asked.Name || got.Password != asked.Password ||
		!bytes.Equal(got.Avatar, asked.Avatar) {
		return binding.WrongReply("code, message or a field of the user")
	}
	return nil
}
