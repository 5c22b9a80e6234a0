// Package corpus makes the users and headers that loops, suite and tests send, and the values that libraries lose.
package corpus

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/rpcbench/rpcbench"
)

// Round is how many users a loop goes round: enough that a reply that sticks is the wrong one at the next call.
const Round = 16

// Sample returns user i with avatar bytes of payload, from a fixed seed: random ones, of which gzip makes no less.
// Users 0 to 99 encode to equal lengths, 36 bytes of protobuf without payload, and differ in every field.
func Sample(i, avatar int) rpcbench.User {
	u := rpcbench.User{
		Email:    fmt.Sprintf("anna.%02d@example.com", i),
		Name:     fmt.Sprintf("Anna%02d", i),
		Password: fmt.Sprintf("pw-%02d", i),
	}
	if avatar > 0 {
		u.Avatar = make([]byte, avatar)
		r := rand.NewChaCha8([32]byte{byte(i)})
		_, _ = r.Read(u.Avatar) // never fails
	}
	return u
}

// Headers returns what a client in production adds to its calls: a bearer token of 722 characters, a traceparent of
// other ids at each call, and a user agent that names program, version and platform. All are from fixed seeds.
func Headers() *rpcbench.Headers {
	return &rpcbench.Headers{
		UserAgent:     "orders-api/4.18.2 (linux; amd64) go/1.26.0 env/production region/eu-central-1",
		Authorization: "Bearer " + token(),
		Traceparent:   traceparents(),
	}
}

// token is random, of the sizes of the example in RFC 9068, section 3, and of an RS256 signature with a key of 2048
// bits, the least that RFC 7518, section 3.3, allows.
func token() string {
	const header, claims, signature = 47, 236, 2048 / 8
	b := make([]byte, header+claims+signature)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails
	encode := base64.RawURLEncoding.EncodeToString
	return encode(b[:header]) + "." + encode(b[header:header+claims]) + "." + encode(b[header+claims:])
}

// traceparents makes headers of W3C Trace Context, version 00, sampled. Their ids are splitmix64 of a counter: they
// share no digits, as random ids don't, and every run has the same.
func traceparents() func() string {
	var made atomic.Uint64
	return func() string {
		const words = 3 // two of the trace's id, one of the parent's
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

// splitmix64 is the n-th number of the generator of that name (Steele, Lea, Flood 2014) seeded with 0. None is twice.
func splitmix64(n uint64) uint64 {
	z := n * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
