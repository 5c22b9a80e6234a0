package conform

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/suite/allocproof"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/stacks"
)

// TestRivals: while a stack runs, no codec of another stack may, and no library that encodes in none of ours. Code that
// is generated for messages lies beside the types, which all stacks of protobuf have.
func TestRivals(t *testing.T) {
	require.Subset(t, Subject{}.rivals(), []string{"github.com/bytedance/sonic", "github.com/goccy/go-json",
		"github.com/vmihailenco/msgpack", "github.com/fxamacker/cbor", "encoding/gob"})
	knows := func(libraries []string, path string) bool {
		return slices.ContainsFunc(libraries, func(library string) bool {
			return allocproof.Within(path, library) || allocproof.Within(library, path)
		})
	}
	for _, own := range stacks.All() {
		s := Subject{Stack: own}
		for _, other := range stacks.All() {
			codec := other.Traits.Codec
			require.True(t, knows(s.libraries(), codec) || knows(s.rivals(), codec) ||
				strings.Contains(codec, "/rpcbench/proto/"), "%s may encode with %s", own.Name, codec)
		}
	}
}

// TestCodesAreChanged: the code of a reply is found in the formats of all stacks whose bytes can be read.
func TestCodesAreChanged(t *testing.T) {
	for _, stack := range stacks.All() {
		s := Subject{Stack: stack}
		if !s.readable() {
			continue
		}
		require.NoError(t, ended(func() {
			s.with(rpcbench.Config{}, func(f *session) {
				require.Len(t, f.changed(), len(changes())+1, stack.Name)
			})
		}))
	}
}

func TestTurned(t *testing.T) {
	for reason, c := range map[string]struct{ body, want string }{
		"members of JSON":          {`{"a":1,"b":{"c":[2]},"d":3}`, `{"b":{"c":[2]},"a":1,"d":3}`},
		"two members":              {"{\"a\":\"x,y\",\"b\":2}\n", "{\"b\":2,\"a\":\"x,y\"}\n"},
		"a single member":          {`{"a":1}`, ""},
		"no members":               {`{}`, ""},
		"a list":                   {`[1,2]`, ""},
		"fields of protobuf":       {"\x08\xc8\x01\x12\x02OK\x1a\x00", "\x12\x02OK\x08\xc8\x01\x1a\x00"},
		"fields of fixed size":     {"\x0d1234\x1112345678", "\x1112345678\x0d1234"},
		"a single field":           {"\x08\x01", ""},
		"elements of a list":       {"\x0a\x01a\x0a\x01b", ""},
		"a list before a field":    {"\x0a\x01a\x0a\x01b\x10\x05", "\x0a\x01a\x10\x05\x0a\x01b"},
		"bytes that are no fields": {"\x08\x01\x12\x02OK\x1a\x05x", ""},
		"nothing":                  {"", ""},
	} {
		require.Equal(t, c.want, string(turned([]byte(c.body))), reason)
	}
}

// A mark doesn't span two entries of a map, though the two lie beside each other in most of its encodings.
func TestMarksLieWithinAnEntry(t *testing.T) {
	entries := strings.Split("abcd,efgh,ijkl,mnop,qrst,uvwx", ",")
	encodings := 0
	from := func(i int) []byte { return []byte(strings.Join(append(slices.Clone(entries[i:]), entries[:i]...), "")) }
	c := ownMethod{MethodClient: ofRequests{requests: rpcbench.Messages{
		Sorted: func(int) ([]byte, error) { return from(0), nil },
		Encode: func(int) ([]byte, error) {
			const seldom = 2 * corpus.Round
			if encodings++; encodings%seldom == 0 {
				return from(encodings / seldom % len(entries)), nil
			}
			return from(encodings % 2), nil
		},
	}}}
	mark := string(c.mark(0))
	require.NotEmpty(t, mark)
	require.True(t, slices.ContainsFunc(entries, func(entry string) bool { return strings.Contains(entry, mark) }),
		"%q spans two entries", mark)
}

// ofRequests is a client of which only the encoding of requests is asked for.
type ofRequests struct {
	rpcbench.MethodClient
	requests rpcbench.Messages
}

func (c ofRequests) Messages() (requests, replies rpcbench.Messages) {
	return c.requests, rpcbench.Messages{}
}
