// Package corpus makes the users and headers that loops, suite and tests send, and the values that libraries lose.
package corpus

import (
	"fmt"
	"math/rand/v2"

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
