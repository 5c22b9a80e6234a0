package conform_test

import (
	"errors"
	"hash/maphash"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/grpcprotobuf"
	"github.com/rpcbench/rpcbench/httpjson"
	"github.com/rpcbench/rpcbench/httpjsoniter"
	"github.com/rpcbench/rpcbench/internal/suite/conform"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/stacks/connectrpc"
	"github.com/rpcbench/rpcbench/stacks/connectrpc2"
)

type word struct {
	Text string `json:"text"`
}

// words is a method whose messages have a text of so many bytes each, which is ASCII in requests and not in replies.
func words(request, reply int) rpcbench.Method[word, word] {
	m := rpcbench.Method[word, word]{Name: "test.v1.Words/Get", MadeOf: "16 samples",
		Key:   func(q *word) uint64 { return maphash.String(seed, q.Text) },
		Equal: func(want, got *word) bool { return *want == *got }}
	for i := range rune(corpus.Round) {
		last := string('à' + i)
		if reply == 1 {
			last = string('a' + i)
		}
		m.Requests = append(m.Requests, &word{strings.Repeat("x", request-1) + string('a'+i)})
		m.Replies = append(m.Replies, &word{strings.Repeat("x", reply-len(last)) + last})
	}
	return m
}

// generatedWords is the same method of a generated type.
func generatedWords(m rpcbench.Method[word, word]) rpcbench.Method[wrapperspb.StringValue, wrapperspb.StringValue] {
	g := rpcbench.Method[wrapperspb.StringValue, wrapperspb.StringValue]{Name: m.Name, MadeOf: m.MadeOf,
		Key:   func(q *wrapperspb.StringValue) uint64 { return maphash.String(seed, q.GetValue()) },
		Equal: func(want, got *wrapperspb.StringValue) bool { return proto.Equal(want, got) }}
	for i := range m.Requests {
		g.Requests = append(g.Requests, wrapperspb.String(m.Requests[i].Text))
		g.Replies = append(g.Replies, wrapperspb.String(m.Replies[i].Text))
	}
	return g
}

// TestShortMessages: the right codec passes however short the messages are, and is skipped only where it allocates no
// object of 16 bytes. A wrong one on either side is red.
func TestShortMessages(t *testing.T) {
	switch {
	case raced():
		t.Skip("the race detector drops objects from pools at random")
	case testing.Short():
		t.Skip("takes seconds")
	}
	skipped := func(err error) bool { return errors.As(err, new(conform.Skip)) }
	sizes := []int{1, 8} // a block of 16 bytes has as many as can be, or two
	if long() {          // each alignment that small objects have, and those about a block
		sizes = []int{1, 2, 4, 5, 8, 9, 12, 15, 16, 17}
	}
	for _, size := range sizes {
		m := words(size, size)
		std, iter := httpjson.Of(m), httpjsoniter.Of(m)
		for _, s := range []rpcbench.Stack{iter, connectrpc.Of(generatedWords(m))} {
			if s.Name != iter.Name && !long() {
				continue // as in TestOneShortMessage
			}
			if err := run("codec", s); size >= 16 || !skipped(err) {
				require.NoError(t, err, "%s: %d bytes", s.Name, size)
			}
		}
		client, server := std, iter
		client.Dial, server.Server = iter.Dial, std.Server
		for _, s := range []rpcbench.Stack{client, server} {
			err := run("codec", s)
			require.Error(t, err, "%s: %d bytes", s.Name, size)
			require.False(t, skipped(err), "%s: %d bytes: %v", s.Name, size, err)
		}
	}
}

// TestOneShortMessage: of the side that decodes the other message the check can tell. Without -long one library is
// asked about each pair.
func TestOneShortMessage(t *testing.T) {
	if raced() {
		t.Skip("the race detector drops objects from pools at random")
	}
	for what, c := range map[string]struct {
		method rpcbench.Method[word, word]
		skips  bool
		asks   string
	}{
		"a short request":   {words(2, 20), false, "grpcprotobuf"},
		"a short reply":     {words(20, 2), false, "connectrpc2"},
		"both of few bytes": {words(5, 5), true, "connectrpc"},
		"both of 15 bytes":  {words(15, 15), true, "connectrpc2"},
		"both of 16 bytes":  {words(16, 16), false, "grpcprotobuf"},
	} {
		for _, s := range []rpcbench.Stack{grpcprotobuf.Of(generatedWords(c.method)),
			connectrpc.Of(generatedWords(c.method)), connectrpc2.Of(generatedWords(c.method))} {
			if s.Name != c.asks && !long() {
				continue
			}
			err := run("codec", s)
			if c.skips {
				require.ErrorContains(t, err, "neither message has an object of 16 bytes", what)
				require.ErrorAs(t, err, new(conform.Skip), what)
			} else {
				require.NoError(t, err, "%s: %s", s.Name, what)
			}
		}
	}
}
