// Package corpus makes the users and headers that benchmarks, suite and tests send, and the values that libraries lose.
package corpus

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/message"
)

// Round is how many different users a benchmark sends in turn. A reply that is sent again is then a wrong one.
const Round = 16

// Headers returns what a client in production adds to its calls: a bearer token of 722 characters, a traceparent with
// new ids for each call, and a user agent with program, version and platform. Every run has the same headers.
func Headers() *rpcbench.Headers {
	return &rpcbench.Headers{
		UserAgent:     "orders-api/4.18.2 (linux; amd64) go/1.26.0 env/production region/eu-central-1",
		Authorization: "Bearer " + token(),
		Traceparent:   traceparents(),
	}
}

// token returns a random token. Its parts have the sizes of the example in RFC 9068, section 3, and of an RS256
// signature with a key of 2048 bits, the least that RFC 7518, section 3.3, allows.
func token() string {
	const header, claims, signature = 47, 236, 2048 / 8
	b := make([]byte, header+claims+signature)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails
	encode := base64.RawURLEncoding.EncodeToString
	return encode(b[:header]) + "." + encode(b[header:header+claims]) + "." + encode(b[header+claims:])
}

// traceparents returns a function that makes W3C traceparent headers, version 00, sampled. Their ids are splitmix64 of
// a counter: they look random, and every run has the same.
func traceparents() func() string {
	var made atomic.Uint64
	return func() string {
		const words = 3 // two for the trace's id, one for the parent's
		var id [8 * words]byte
		n := made.Add(1) * words
		for i := range uint64(words) {
			binary.BigEndian.PutUint64(id[8*i:], splitmix64(n+i))
		}
		b := append(make([]byte, 0, len("00--")+2*len(id)+len("-01")), "00-"...)
		b = append(hex.AppendEncode(b, id[:16]), '-')
		return string(append(hex.AppendEncode(b, id[16:]), "-01"...))
	}
}

// splitmix64 returns the n-th number of the generator SplitMix64 (Steele, Lea, Flood 2014) with seed 0. No number
// occurs twice.
func splitmix64(n uint64) uint64 {
	z := n * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Flex is a flex message with a name. A message that some library loses is named after the loss, as in Traits.Lossy.
type Flex struct {
	Name rpcbench.Loss
	Flex *rpcbench.Flex
}

// Flexes returns new copies of all messages.
func Flexes() []Flex {
	zero, inf, nan, empty := math.Copysign(0, -1), math.Inf(1), math.NaN(), new(rpcbench.Pair)
	return []Flex{
		{"empty", &rpcbench.Flex{}},
		{rpcbench.LossFloatDigits, message.Complex()},
		{rpcbench.LossFloatDigits, &rpcbench.Flex{Double: 0.30000000000000004, Float: 5592405.5, Message: empty}},
		{rpcbench.LossFloatDigits, &rpcbench.Flex{Double: math.SmallestNonzeroFloat64, Message: empty}},
		{rpcbench.LossFloatDigits, &rpcbench.Flex{Double: math.MaxFloat64, Float: math.SmallestNonzeroFloat32,
			Message: empty}},
		{"largest float32", &rpcbench.Flex{Float: math.MaxFloat32}},
		{rpcbench.LossNegativeZero, &rpcbench.Flex{Double: zero, Float: float32(zero)}},
		{rpcbench.LossNaN, &rpcbench.Flex{Double: nan, Float: float32(nan)}},
		{rpcbench.LossInfinities, &rpcbench.Flex{Double: inf, Float: float32(-inf)}},
		{"largest and smallest integers", &rpcbench.Flex{
			Int32: math.MinInt32, Int64: math.MinInt64, Uint32: math.MaxUint32, Uint64: math.MaxUint64,
			Sint32: math.MinInt32, Sint64: math.MaxInt64, Fixed32: math.MaxUint32, Fixed64: math.MaxUint64,
			Sfixed32: math.MinInt32, Sfixed64: math.MinInt64,
		}},
		{"smallest and largest integers", &rpcbench.Flex{
			Int32: math.MaxInt32, Int64: math.MaxInt64, Sint32: math.MaxInt32, Sint64: math.MinInt64,
			Sfixed32: math.MaxInt32, Sfixed64: math.MaxInt64,
		}},
		{"integers beyond a float's 53 bits", &rpcbench.Flex{
			Int64: 1<<53 + 1, Uint64: 1<<63 + 1, Message: &rpcbench.Pair{Value: -(1<<53 + 1)},
		}},
		{"HTML and line separators in a string", &rpcbench.Flex{String: "<b>&'\"</b>\u2028\u2029"}},
		{rpcbench.LossControlCharacters, &rpcbench.Flex{String: "\x00\x01\t\r\n\x1f\x7f"}},
		{"empty messages against none", &rpcbench.Flex{Message: empty, First: []*rpcbench.Pair{{}, {}}, Optional: empty}},
		{"elements of lists, in their order", &rpcbench.Flex{
			First: []*rpcbench.Pair{{Key: "b"}, {Key: "a"}}, Second: []*rpcbench.Pair{{Value: 2}, {Value: 1}},
		}},
		{"every byte", &rpcbench.Flex{Bytes: everyByte()}},
	}
}

func everyByte() (all []byte) {
	for i := range 256 {
		all = append(all, byte(i))
	}
	return all
}

// User is a user with a name, whose strings are valid UTF-8.
type User struct {
	Name rpcbench.Loss
	User rpcbench.User
}

// InvalidUTF8 is a user's name with invalid UTF-8, which breaks no other rule.
const InvalidUTF8 = "in\xffvalid"

// Users returns new copies of all users.
func Users() []User {
	with := func(name string, avatar []byte) rpcbench.User {
		u := rpcbench.SampleUser(0, 0)
		u.Name, u.Avatar = name, avatar
		return u
	}
	return []User{
		{"characters that JSON encoders escape for HTML", with("<b>&'\"</b>", nil)},
		{"line separators that are no JavaScript", with("a\u2028b\u2029c", nil)},
		{rpcbench.LossControlCharacters, with("\x00\x01\t\r\n\x1f\x7f", nil)},
		{"backslashes and what looks like an escape", with(`\\u0041\n`, nil)},
		{"outside the basic plane, and combining", with("e\u0301 \U0001F600 \U0010FFFF", nil)},
		{rpcbench.LossNonCharacters, with("\ufeff\ufffe\uffff\ufffd", nil)},
		{"white space at the ends", with("  name  ", nil)},
		{"what looks like a number too large for a float", with("9223372036854775807", nil)},
		{"what looks like null", with("null", nil)},
		{"the longest name, of the widest characters", with(strings.Repeat("\U0001F600", 100), nil)},
		{"every byte in the payload", with("bytes", everyByte())},
		{"one byte of payload", with("bytes", []byte{0})},
		{"an empty payload, which is none", with("empty", []byte{})},
		{"an id, which the service replaces", rpcbench.User{ID: "7", Email: "a@b.com", Name: "name", Password: "word"}},
		{"the largest payload", rpcbench.SampleUser(0, rpcbench.MaxAvatar)},
	}
}
