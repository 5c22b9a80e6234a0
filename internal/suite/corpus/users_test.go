package corpus_test

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"html"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

func TestUsersDifferInEveryField(t *testing.T) {
	seen := map[string]int{}
	validate := rpcbench.NewUserValidator[rpcbench.User](rpcbench.ServerConfig{})
	for i := range 100 {
		u := rpcbench.SampleUser(i, 16)
		require.NoError(t, validate(&u))
		require.Empty(t, u.ID, "the service sets it")
		for field, value := range map[string]string{"email": u.Email, "name": u.Name, "password": u.Password,
			"avatar": string(u.Avatar)} {
			before, ok := seen[field+value]
			require.False(t, ok, "users %d and %d have the same %s", before, i, field)
			seen[field+value] = i
		}
	}
	require.Less(t, corpus.Round, 100)
}

// So that ops differ in nothing but the content, and a row's bytes on the wire do not depend on how many ops it has.
func TestUsersEncodeToOneLength(t *testing.T) {
	lengths := func(i, avatar int) (asJSON, asProtobuf int) {
		u := rpcbench.SampleUser(i, avatar)
		j, err := json.Marshal(u)
		require.NoError(t, err)
		p, err := proto.Marshal(binding.Convert[userv1.User](&u))
		require.NoError(t, err)
		return len(j), len(p)
	}
	for _, avatar := range []int{0, 1, 1000} {
		wantJSON, wantProtobuf := lengths(0, avatar)
		for i := range 100 {
			asJSON, asProtobuf := lengths(i, avatar)
			require.Equal(t, wantJSON, asJSON, "JSON of user %d", i)
			require.Equal(t, wantProtobuf, asProtobuf, "protobuf of user %d", i)
		}
		require.True(t, avatar > 0 || wantProtobuf == 36, "%d bytes of protobuf", wantProtobuf)
	}
}

func TestUsersComeFromASeed(t *testing.T) {
	require.Equal(t, rpcbench.SampleUser(7, 1000), rpcbench.SampleUser(7, 1000))
	require.Equal(t, "0e42d4cae8864908", hex.EncodeToString(rpcbench.SampleUser(7, 8).Avatar),
		"bytes of user 7 in every process and version")
	require.Nil(t, rpcbench.SampleUser(7, 0).Avatar)
}

// As Sample declares. A payload that gzip shrinks would flatter whoever compresses.
func TestPayloadIsIncompressible(t *testing.T) {
	for _, n := range []int{100, 1000, 100_000, rpcbench.MaxAvatar} {
		u := rpcbench.SampleUser(3, n)
		require.Len(t, u.Avatar, n)
		var buf bytes.Buffer
		z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
		require.NoError(t, err)
		_, err = z.Write(u.Avatar)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		require.GreaterOrEqual(t, buf.Len(), n, "%d bytes", n)
	}
}

// TestHostileUsers: what libraries do to strings and bytes changes one of the users.
func TestHostileUsers(t *testing.T) {
	replaced := func(old, with string) func(*rpcbench.User) {
		return func(u *rpcbench.User) { u.Name = strings.ReplaceAll(u.Name, old, with) }
	}
	for fault, change := range map[string]func(*rpcbench.User){
		"HTML is escaped, and not unescaped": func(u *rpcbench.User) { u.Name = html.EscapeString(u.Name) },
		"a separator of JavaScript is lost":  replaced("\u2028", "\n"),
		"zeros end strings":                  func(u *rpcbench.User) { u.Name, _, _ = strings.Cut(u.Name, "\x00") },
		"carriage returns are lost":          replaced("\r", ""),
		"DEL is lost":                        replaced("\x7f", ""),
		"a backslash is an escape":           replaced(`\n`, "\n"),
		"an escape within a string is read":  replaced(`\u0041`, "A"),
		"combining characters are composed":  replaced("e\u0301", "\u00e9"),
		"characters have 16 bits":            replaced("\U0001F600", "\uF600"),
		"a byte order mark is lost":          replaced("\ufeff", ""),
		"a non-character is replaced":        replaced("\uffff", "\ufffd"),
		"white space is trimmed":             func(u *rpcbench.User) { u.Name = strings.TrimSpace(u.Name) },
		"white space is folded":              replaced("  ", " "),
		"a string of digits is a number":     replaced("9223372036854775807", "9.223372036854775807e18"),
		"null is nothing":                    replaced("null", ""),
		"strings have 255 bytes":             func(u *rpcbench.User) { u.Name = u.Name[:min(len(u.Name), 255)] },
		"bytes end at zero":                  func(u *rpcbench.User) { u.Avatar, _, _ = bytes.Cut(u.Avatar, []byte{0}) },
		"bytes are text": func(u *rpcbench.User) {
			u.Avatar = bytes.ToValidUTF8(u.Avatar, []byte("\ufffd"))
		},
		"the largest payload is cut": func(u *rpcbench.User) { u.Avatar = u.Avatar[:min(len(u.Avatar), 1<<20-1)] },
		"the client's id is kept":    func(u *rpcbench.User) { u.ID = "" },
	} {
		require.True(t, slices.ContainsFunc(corpus.Users(), func(c corpus.User) bool {
			before := c.User
			change(&c.User)
			return c.User.ID != before.ID || c.User.Name != before.Name || !bytes.Equal(c.User.Avatar, before.Avatar)
		}), fault)
	}
}

// TestHostileFlexes: what libraries do to numbers, lists and messages changes one of the flex messages.
func TestHostileFlexes(t *testing.T) {
	float := func(i int64) int64 { return int64(float64(i)) }
	for fault, change := range map[string]func(*rpcbench.Flex){
		"int64 is a float":             func(f *rpcbench.Flex) { f.Int64 = float(f.Int64) },
		"uint64 is a float":            func(f *rpcbench.Flex) { f.Uint64 = uint64(float64(f.Uint64)) },
		"uint64 is an int64":           func(f *rpcbench.Flex) { f.Uint64 = min(f.Uint64, 1<<63-1) },
		"a value within is a float":    func(f *rpcbench.Flex) { f.Message.Value = float(f.Message.Value) },
		"int64 has 32 bits":            func(f *rpcbench.Flex) { f.Int64 = int64(int32(f.Int64)) },
		"uint32 is an int32":           func(f *rpcbench.Flex) { f.Uint32 = min(f.Uint32, 1<<31-1) },
		"fixed32 is an int32":          func(f *rpcbench.Flex) { f.Fixed32 = min(f.Fixed32, 1<<31-1) },
		"the smallest int32 overflows": func(f *rpcbench.Flex) { f.Int32 = max(f.Int32, -1<<31+1) },
		"the smallest int64 overflows": func(f *rpcbench.Flex) { f.Sfixed64 = max(f.Sfixed64, -1<<63+1) },
		"zigzag of the smallest":       func(f *rpcbench.Flex) { f.Sint64 = max(f.Sint64, -1<<63+1) },
		"a double is a float":          func(f *rpcbench.Flex) { f.Double = float64(float32(f.Double)) },
		"a double has 16 digits": func(f *rpcbench.Flex) {
			f.Double, _ = strconv.ParseFloat(strconv.FormatFloat(f.Double, 'g', 16, 64), 64)
		},
		"elements of a list are in another order":    func(f *rpcbench.Flex) { slices.Reverse(f.First) },
		"elements of the other are in another order": func(f *rpcbench.Flex) { slices.Reverse(f.Second) },
		"an empty element is left out": func(f *rpcbench.Flex) {
			f.First = slices.DeleteFunc(f.First, func(p *rpcbench.Pair) bool { return *p == rpcbench.Pair{} })
		},
		"an empty message is none": func(f *rpcbench.Flex) {
			if f.Message != nil && *f.Message == (rpcbench.Pair{}) {
				f.Message = nil
			}
		},
		"an absent message is empty": func(f *rpcbench.Flex) {
			if f.Optional == nil {
				f.Optional = new(rpcbench.Pair)
			}
		},
		"a list is the other one": func(f *rpcbench.Flex) { f.First, f.Second = f.Second, f.First },
		"true is false":           func(f *rpcbench.Flex) { f.Bool = false },
	} {
		before := corpus.Flexes()
		require.True(t, slices.ContainsFunc(corpus.Flexes(), func(c corpus.Flex) bool {
			i := slices.IndexFunc(before, func(b corpus.Flex) bool { return b.Flex.Equal(c.Flex) })
			if strings.Contains(fault, "within") && c.Flex.Message == nil {
				return false
			}
			change(c.Flex)
			return !before[i].Flex.Equal(c.Flex)
		}), fault)
	}
}
