package direct

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/netwrap"
	"github.com/rpcbench/rpcbench/internal/users"
	"github.com/rpcbench/rpcbench/internal/wire"
)

// directTapped starts the direct form with its connections wrapped as viaStack wraps the stack's.
func (f form) directTapped(t *testing.T, tap *netwrap.Tap, asked []rpcbench.User) create {
	t.Helper()
	dial := bare()
	return f.direct(t, func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return tap.Wrap(c), nil
	}, asked)
}

// The direct form sends what the stack sends and is answered the same, header by header and byte by byte.
func TestSameMessages(t *testing.T) {
	asked := append(sample(), users.Sample(0, 1000), users.Sample(1, 100_000))
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			var directTap, stackTap netwrap.Tap
			direct, stack := f.directTapped(t, &directTap, asked), f.viaStack(t, stackTap.Wrap, asked)
			for i := range asked {
				require.NoError(t, direct(t.Context(), i))
				require.NoError(t, stack(t.Context(), i))
			}
			directRequests, directReplies := lastMessages(t, &directTap, len(asked))
			stackRequests, stackReplies := lastMessages(t, &stackTap, len(asked))
			assert.Equal(t, stackRequests, directRequests)
			assert.Equal(t, stackReplies, directReplies)
		})
	}
}

// lastMessages returns the last n of a tap's one connection: the first of a stack are of its start. The address and the
// time, which can't be the same, are taken out.
func lastMessages(t *testing.T, tap *netwrap.Tap, n int) (requests, replies []wire.Message) {
	t.Helper()
	conns := tap.Conns()
	require.Len(t, conns, 1)
	requests, replies, err := wire.Read(conns[0].Sent(), conns[0].Received())
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(requests), n)
	require.Len(t, replies, len(requests))
	requests, replies = requests[len(requests)-n:], replies[len(replies)-n:]
	for i := range n {
		require.NotEmpty(t, requests[i].Header[":authority"])
		delete(requests[i].Header, ":authority")
		delete(replies[i].Header, "Date")
	}
	return requests, replies
}

// The direct form refuses what the stack refuses, and takes the next call after it.
func TestSameOutcomes(t *testing.T) {
	tests := []struct {
		why    string
		change func(*rpcbench.User)
		ok     bool
	}{
		{"nothing is wrong", func(*rpcbench.User) {}, true},
		{"an id has no rule, and is replaced", func(u *rpcbench.User) { u.ID = "7" }, true},
		{"no email", func(u *rpcbench.User) { u.Email = "" }, false},
		{"an email that is none", func(u *rpcbench.User) { u.Email = "nobody" }, false},
		{"the longest email", func(u *rpcbench.User) { u.Email = email(254) }, true},
		{"an email too long", func(u *rpcbench.User) { u.Email = email(255) }, false},
		{"the shortest name, in characters", func(u *rpcbench.User) { u.Name = "Änne" }, true},
		{"a name too short", func(u *rpcbench.User) { u.Name = "Änn" }, false},
		{"the longest name", func(u *rpcbench.User) { u.Name = strings.Repeat("ä", 100) }, true},
		{"a name too long", func(u *rpcbench.User) { u.Name = strings.Repeat("n", 101) }, false},
		{"the shortest password", func(u *rpcbench.User) { u.Password = "abcd" }, true},
		{"a password too short", func(u *rpcbench.User) { u.Password = "abc" }, false},
		{"the longest password", func(u *rpcbench.User) { u.Password = strings.Repeat("p", 72) }, true},
		{"a password too long", func(u *rpcbench.User) { u.Password = strings.Repeat("p", 73) }, false},
		{"the largest payload", func(u *rpcbench.User) { u.Avatar = make([]byte, rpcbench.MaxAvatar) }, true},
		{"a payload too large", func(u *rpcbench.User) { u.Avatar = make([]byte, rpcbench.MaxAvatar+1) }, false},
		{"a body almost too large", func(u *rpcbench.User) { u.ID = strings.Repeat("7", rpcbench.MaxBody-1000) }, true},
		{"a body too large, of a user whom no rule forbids", func(u *rpcbench.User) { u.ID = strings.Repeat("7", rpcbench.MaxBody) }, false},
	}
	asked := []rpcbench.User{users.Sample(1, 0)}
	for _, test := range tests {
		u := users.Sample(0, 0)
		test.change(&u)
		asked = append(asked, u)
	}
	// After a body too large net/http's server keeps the connection for half a second, for longer than TestMain waits.
	t.Cleanup(func() {
		err := goleak.Find()
		for deadline := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(deadline); {
			err = goleak.Find()
		}
		assert.NoError(t, err)
	})
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			direct, stack := f.direct(t, bare(), asked), f.viaStack(t, nil, asked)
			for i, test := range tests {
				for name, create := range map[string]create{"direct": direct, "stack": stack} {
					err := create(t.Context(), i+1)
					assert.Equal(t, test.ok, err == nil, "%s: %s: %v", test.why, name, err)
					assert.NoError(t, create(t.Context(), 0), "%s: %s: the call after it", test.why, name)
				}
			}
		})
	}
}

// email returns a valid address of n characters, for lengths about the limit: at most 64 are allowed before the @.
func email(n int) string {
	domain := strings.Repeat(strings.Repeat("d", 62)+".", 3) + "com"
	return strings.Repeat("e", n-len(domain)-1) + "@" + domain
}

// A reply that isn't the one asked for is an error of both, whichever field differs, and so is one with more after it:
// some libraries don't look at that unless they are made to.
func TestSameRepliesRefused(t *testing.T) {
	u, other := users.Sample(0, 0), users.Sample(1, 0)
	u.Avatar, other.Avatar = []byte("an avatar"), []byte("no avatar")
	// Some fields stand differently in each format: a reply holds one of them, and the other filters change nothing.
	fields := []struct {
		name    string
		filters []netwrap.Filter
	}{
		{"code", []netwrap.Filter{swap(`"code":200`, `"code":201`), swap("<code>200", "<code>201"),
			swap("\x08\xc8\x01", "\x08\xc9\x01"), swap("code\xd1\x00\xc8", "code\xd1\x00\xc9")}},
		{"message", []netwrap.Filter{swap(rpcbench.OKMessage, "KO")}},
		{"id", []netwrap.Filter{swap(rpcbench.UserID, "1000001")}},
		{"email", []netwrap.Filter{swap(u.Email, other.Email)}},
		{"name", []netwrap.Filter{swap(u.Name, other.Name)}},
		{"password", []netwrap.Filter{swap(u.Password, other.Password)}},
		{"avatar", []netwrap.Filter{swap(base64.StdEncoding.EncodeToString(u.Avatar), base64.StdEncoding.EncodeToString(other.Avatar)),
			swap(string(u.Avatar), string(other.Avatar))}},
		{"end", []netwrap.Filter{longer}},
	}
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			var directTap, stackTap netwrap.Tap
			asked := []rpcbench.User{u}
			for _, side := range []struct {
				name   string
				tap    *netwrap.Tap
				create create
			}{
				{"direct", &directTap, f.directTapped(t, &directTap, asked)},
				{"stack", &stackTap, f.viaStack(t, stackTap.Wrap, asked)},
			} {
				require.NoError(t, side.create(t.Context(), 0), side.name)
				for _, field := range fields {
					if field.name == "end" && f.stack.Traits.HTTP != "1.1" {
						continue
					}
					refused := 0
					for _, filter := range field.filters {
						side.tap.SetFilter(filter)
						if side.create(t.Context(), 0) != nil {
							refused++
						}
						side.tap.SetFilter(nil)
						assert.NoError(t, side.create(t.Context(), 0), "%s: after another %s", side.name, field.name)
					}
					assert.Equal(t, 1, refused, "%s: replies with another %s", side.name, field.name)
				}
			}
		})
	}
}

func swap(old, with string) netwrap.Filter { return netwrap.Replace([]byte(old), []byte(with)) }

// longer adds a byte to the body of a reply over HTTP/1.1.
func longer(_ *netwrap.TapConn, p []byte) ([]byte, error) {
	_, body, _ := bytes.Cut(p, []byte("\r\n\r\n"))
	length := func(n int) []byte { return fmt.Appendf(nil, "\r\nContent-Length: %d\r\n", n) }
	return append(bytes.Replace(p, length(len(body)), length(len(body)+1), 1), 'x'), nil
}
