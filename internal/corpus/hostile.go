package corpus

import (
	"math"
	"strings"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/message"
)

// Flex is a flex message. One that a format or library loses has the name of the loss, as Traits.Lossy declares it.
type Flex struct {
	Name string
	Flex *message.Flex
}

// Flexes returns new messages at each call.
func Flexes() []Flex {
	zero, inf, nan, empty := math.Copysign(0, -1), math.Inf(1), math.NaN(), new(message.Pair)
	return []Flex{
		{"empty", &message.Flex{}},
		{codec.FloatDigits, message.Complex()},
		{codec.FloatDigits, &message.Flex{Double: 0.30000000000000004, Float: 5592405.5, Message: empty}},
		{codec.FloatDigits, &message.Flex{Double: math.SmallestNonzeroFloat64, Message: empty}},
		{codec.FloatDigits, &message.Flex{Double: math.MaxFloat64, Float: math.SmallestNonzeroFloat32, Message: empty}},
		{codec.LargestFloat, &message.Flex{Float: math.MaxFloat32}},
		{codec.NegativeZero, &message.Flex{Double: zero, Float: float32(zero)}},
		{codec.NaN, &message.Flex{Double: nan, Float: float32(nan)}},
		{codec.Infinities, &message.Flex{Double: inf, Float: float32(-inf)}},
		{"largest and smallest integers", &message.Flex{
			Int32: math.MinInt32, Int64: math.MinInt64, Uint32: math.MaxUint32, Uint64: math.MaxUint64,
			Sint32: math.MinInt32, Sint64: math.MaxInt64, Fixed32: math.MaxUint32, Fixed64: math.MaxUint64,
			Sfixed32: math.MinInt32, Sfixed64: math.MinInt64,
		}},
		{"smallest and largest integers", &message.Flex{
			Int32: math.MaxInt32, Int64: math.MaxInt64, Sint32: math.MaxInt32, Sint64: math.MinInt64,
			Sfixed32: math.MaxInt32, Sfixed64: math.MaxInt64,
		}},
		{"integers beyond a float's 53 bits", &message.Flex{
			Int64: 1<<53 + 1, Uint64: 1<<63 + 1, Message: &message.Pair{Value: -(1<<53 + 1)},
		}},
		{"HTML and line separators in a string", &message.Flex{String: "<b>&'\"</b>\u2028\u2029"}},
		{codec.ControlCharacters, &message.Flex{String: "\x00\x01\t\r\n\x1f\x7f"}},
		{"empty messages against none", &message.Flex{Message: empty, First: []*message.Pair{{}, {}}, Optional: empty}},
		{"every byte", &message.Flex{Bytes: everyByte()}},
	}
}

func everyByte() (all []byte) {
	for i := range 256 {
		all = append(all, byte(i))
	}
	return all
}

// User is a user whose strings are valid UTF-8.
type User struct {
	Name string
	User rpcbench.User
}

// InvalidUTF8 is a name that would be valid, but for its UTF-8.
const InvalidUTF8 = "in\xffvalid"

// Users returns new users at each call.
func Users() []User {
	with := func(name string, avatar []byte) rpcbench.User {
		u := Sample(0, 0)
		u.Name, u.Avatar = name, avatar
		return u
	}
	return []User{
		{"characters that JSON encoders escape for HTML", with("<b>&'\"</b>", nil)},
		{"line separators that are no JavaScript", with("a\u2028b\u2029c", nil)},
		{codec.ControlCharacters, with("\x00\x01\t\r\n\x1f\x7f", nil)},
		{"backslashes and what looks like an escape", with(`\\u0041\n`, nil)},
		{"outside the basic plane, and combining", with("e\u0301 \U0001F600 \U0010FFFF", nil)},
		{codec.NonCharacters, with("\ufeff\ufffe\uffff\ufffd", nil)},
		{"white space at the ends", with("  name  ", nil)},
		{"what looks like a number too large for a float", with("9223372036854775807", nil)},
		{"what looks like null", with("null", nil)},
		{"the longest name, of the widest characters", with(strings.Repeat("\U0001F600", 100), nil)},
		{"every byte in the payload", with("bytes", everyByte())},
		{"one byte of payload", with("bytes", []byte{0})},
		{"an empty payload, which is none", with("empty", []byte{})},
		{"an id, which the service replaces", rpcbench.User{ID: "7", Email: "a@b.com", Name: "name", Password: "word"}},
		{"the largest payload", Sample(0, rpcbench.MaxAvatar)},
	}
}
