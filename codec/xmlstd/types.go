package xmlstd

import (
	"encoding/base64"

	"github.com/rpcbench/rpcbench/message"
)

// Bytes are in base64, as JSON has them: text alone can't carry every byte.
type Bytes []byte

func (b Bytes) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, b), nil
}

func (b *Bytes) UnmarshalText(text []byte) (err error) {
	*b, err = base64.StdEncoding.AppendDecode(nil, text)
	return err
}

// User is rpcbench.User.
type User struct {
	ID       string `json:"id,omitempty" xml:"id,omitempty"`
	Email    string `json:"email" xml:"email"`
	Name     string `json:"name" xml:"name"`
	Password string `json:"password" xml:"password"`
	Avatar   Bytes  `json:"avatar,omitempty" xml:"avatar,omitempty"`
}

// Response is rpcbench.Response.
type Response struct {
	Code    int32  `json:"code" xml:"code"`
	Message string `json:"message" xml:"message"`
	User    *User  `json:"user" xml:"user"`
}

// Flex is message.Flex, whose Pair it shares.
type Flex struct {
	Double   float64         `json:"double,omitempty" xml:"double,omitempty"`
	Float    float32         `json:"float,omitempty" xml:"float,omitempty"`
	Int32    int32           `json:"int32,omitempty" xml:"int32,omitempty"`
	Int64    int64           `json:"int64,omitempty" xml:"int64,omitempty"`
	Uint32   uint32          `json:"uint32,omitempty" xml:"uint32,omitempty"`
	Uint64   uint64          `json:"uint64,omitempty" xml:"uint64,omitempty"`
	Sint32   int32           `json:"sint32,omitempty" xml:"sint32,omitempty"`
	Sint64   int64           `json:"sint64,omitempty" xml:"sint64,omitempty"`
	Fixed32  uint32          `json:"fixed32,omitempty" xml:"fixed32,omitempty"`
	Fixed64  uint64          `json:"fixed64,omitempty" xml:"fixed64,omitempty"`
	Sfixed32 int32           `json:"sfixed32,omitempty" xml:"sfixed32,omitempty"`
	Sfixed64 int64           `json:"sfixed64,omitempty" xml:"sfixed64,omitempty"`
	Bool     bool            `json:"bool,omitempty" xml:"bool,omitempty"`
	String   string          `json:"string,omitempty" xml:"string,omitempty"`
	Bytes    Bytes           `json:"bytes,omitempty" xml:"bytes,omitempty"`
	Message  *message.Pair   `json:"message,omitempty" xml:"message,omitempty"`
	First    []*message.Pair `json:"first,omitempty" xml:"first,omitempty"`
	Second   []*message.Pair `json:"second,omitempty" xml:"second,omitempty"`
	Optional *message.Pair   `json:"optional,omitempty" xml:"optional,omitempty"`
}

// Error is what rpcbench.Error sends.
type Error struct {
	Code       string      `json:"code" xml:"code"`
	Violations []Violation `json:"violations,omitempty" xml:"violations,omitempty"`
	Message    string      `json:"message,omitempty" xml:"message,omitempty"`
}

// Violation is rpcbench.Violation.
type Violation struct {
	Field string `json:"field" xml:"field"`
	Rule  string `json:"rule" xml:"rule"`
}
