package users

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"sync/atomic"

	"github.com/rpcbench/rpcbench"
)

// Bytes of an access token's three parts, before base64: header and claims of the example in RFC 9068, section 3, and an
// RS256 signature with a key of 2048 bits, the least that RFC 7518, section 3.3, allows.
const (
	tokenHeader    = 47
	tokenClaims    = 236
	tokenSignature = 2048 / 8
)

// Headers returns what a client in production adds to its calls: a bearer token of 722 characters, a traceparent of other
// ids at each call, and a user agent that names program, version and platform. All are from fixed seeds, and no secret: the
// token's parts are random.
func Headers() *rpcbench.Headers {
	return &rpcbench.Headers{
		UserAgent:     "orders-api/4.18.2 (linux; amd64) go/1.26.0 env/production region/eu-central-1",
		Authorization: "Bearer " + token(),
		Traceparent:   traceparents(),
	}
}

func token() string {
	r := rand.NewChaCha8([32]byte{})
	part := func(size int) string {
		b := make([]byte, size)
		_, _ = r.Read(b) // never fails
		return base64.RawURLEncoding.EncodeToString(b)
	}
	return part(tokenHeader) + "." + part(tokenClaims) + "." + part(tokenSignature)
}

// traceparents makes headers of W3C Trace Context, version 00, sampled. Their ids are splitmix64 of a counter: they share
// no digits, as random ids don't, and every run has the same.
func traceparents() func() string {
	var made atomic.Uint64
	return func() string {
		const ids = 3 // words in a header: two of the trace, one of the parent
		n := made.Add(1) * ids
		var trace [16]byte
		var parent [8]byte
		binary.BigEndian.PutUint64(trace[:8], splitmix64(n))
		binary.BigEndian.PutUint64(trace[8:], splitmix64(n+1))
		binary.BigEndian.PutUint64(parent[:], splitmix64(n+2))
		b := append(make([]byte, 0, len("00-")+2*len(trace)+len("-")+2*len(parent)+len("-01")), "00-"...)
		b = hex.AppendEncode(b, trace[:])
		b = append(b, '-')
		b = hex.AppendEncode(b, parent[:])
		return string(append(b, "-01"...))
	}
}

// splitmix64 is the n-th number of the generator of that name (Steele, Lea, Flood 2014) seeded with 0. None is twice.
func splitmix64(n uint64) uint64 {
	z := n * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
