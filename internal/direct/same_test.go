package direct

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		{"an id is not validated, and replaced", func(u *rpcbench.User) { u.ID = strings.Repeat("7", 1000) }, true},
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
		{"a body too large", func(u *rpcbench.User) { u.Avatar = make([]byte, rpcbench.MaxBody+1) }, false},
	}
	asked := []rpcbench.User{users.Sample(1, 0)}
	for _, test := range tests {
		u := users.Sample(0, 0)
		test.change(&u)
		asked = append(asked, u)
	}
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

// email returns a valid address of n characters: up to 64 before the @, labels of up to 63 after it.
func email(n int) string {
	domain := strings.Repeat(strings.Repeat("d", 60)+".", 3) + "com"
	return strings.Repeat("e", n-1-len(domain)-2) + "@" + "d." + domain
}

// A reply that isn't the one asked for is an error of both, whichever field differs.
func TestSameRepliesRefused(t *testing.T) {
	u, other := users.Sample(0, 1000), users.Sample(1, 1000)
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			var directTap, stackTap netwrap.Tap
			asked := []rpcbench.User{u}
			creates := map[string]create{
				"direct": f.directTapped(t, &directTap, asked),
				"stack":  f.viaStack(t, stackTap.Wrap, asked),
			}
			for name, tap := range map[string]*netwrap.Tap{"direct": &directTap, "stack": &stackTap} {
				create := creates[name]
				require.NoError(t, create(t.Context(), 0), name)
				for _, field := range []struct{ name, old, with string }{
					{"message", rpcbench.OKMessage, "KO"},
					{"id", rpcbench.UserID, "1000001"},
					{"email", u.Email, other.Email},
					{"name", u.Name, other.Name},
					{"password", u.Password, other.Password},
				} {
					tap.SetFilter(netwrap.Replace([]byte(field.old), []byte(field.with)))
					assert.Error(t, create(t.Context(), 0), "%s: another %s", name, field.name)
					tap.SetFilter(nil)
					assert.NoError(t, create(t.Context(), 0), "%s: after another %s", name, field.name)
				}
				tap.SetFilter(changeMiddle)
				assert.Error(t, create(t.Context(), 0), "%s: another avatar", name)
			}
		})
	}
}
