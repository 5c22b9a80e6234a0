package run

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/stacks/grpcservehttp"
)

// TestAdviceWorks: what is refused as too slow, or as too many calls on a connection, says what to type in its place,
// and each of that is accepted.
func TestAdviceWorks(t *testing.T) {
	const stacks = "-base grpcprotobuf grpcservehttp httpjson.h2c"
	for line, refused := range map[string]bool{
		"-callers 30 -conns 1 -wait 100ms -base grpcprotobuf connectrpc.h2c":            false,
		"-callers 30 -conns 1 -link 40ms/100Mbps -base grpcprotobuf connectrpc.h2c":     false,
		"-callers 300 -conns 1 -wait 10ms -base grpcprotobuf connectrpc.h2c":            false,
		"-callers 30 -conns 1 -wait 100ms connectrpc.h2c":                               true, // JSON's callers take turns
		"-callers 1000 -wait 100ms -apart " + stacks:                                    true,
		"-callers 1000 -conns 4 -wait 100ms -apart " + stacks:                           false,
		"-callers 1000 -conns 1 -wait 100ms -apart " + stacks:                           false,
		"-callers 1000 -wait 100ms grpcservehttp":                                       true,
		"-callers 4 -wait 1s httpxml":                                                   true,
		"-callers 20 -link 1s/100kbps -payload 5kB grpcprotobuf":                        true,
		"-callers 20 -link 40ms/10Mbps -payload 5kB grpcprotobuf":                       false,
		"-callers 200 -link 40ms/10Mbps -payload 100kB -base grpcprotobuf httpprotobuf": true,
	} {
		args := strings.Fields(line)
		o := optionsOf(t, ours(), args...)
		err := o.check(o.plan())
		if !refused {
			require.NoError(t, err, line)
			continue
		}
		require.Error(t, err, line)
		_, advice, found := strings.Cut(err.Error(), ": give ")
		require.True(t, found, "%s: %v", line, err)
		tried := 0
		for _, way := range strings.Split(advice, ", or ") {
			flags := regexp.MustCompile(`^-\w+ \S+( -\w+ \S+)*`).FindString(way)
			if flags == "" { // such as a smaller message
				continue
			}
			tried++
			changed := append(strings.Fields(flags), args...)
			changed = without(changed, flags)
			o := optionsOf(t, ours(), changed...)
			require.NoError(t, o.check(o.plan()), "%s, with %s of: %v", line, flags, err)
		}
		require.Positive(t, tried, "%s: %v", line, err)
	}
}

// without drops what a line has of a flag that advice in front of it has given another value.
func without(args []string, advice string) (all []string) {
	given := strings.Fields(advice)
	all = append(all, given...)
	for rest := args[len(given):]; len(rest) > 0; {
		if strings.HasPrefix(rest[0], "-") && strings.Contains(advice+" ", rest[0]+" ") {
			rest = rest[2:]
			continue
		}
		all, rest = append(all, rest[0]), rest[1:]
	}
	return all
}

// Callers who share a connection on which the server takes fewer calls are told of, where that was read or is known.
func TestCrowds(t *testing.T) {
	f, err := child.ServerOnly(t.Context(), grpcservehttp.New(), rpcbench.Config{})
	require.NoError(t, err)
	defer f.Close()
	for _, c := range []struct {
		reason, args string
		want         string // of the one line; "" for none
	}{
		{"net/http's server, by its SETTINGS", "-callers 300 -conns 1 -base grpcprotobuf httpjson.h2c",
			"300 callers, 1 connection, httpjson.h2c: its server takes 250 calls on a connection at a time, and 300 callers " +
				"share each, so the others wait, unless the client opens more connections: 2 have room for all"},
		{"over TLS it is known", "-callers 300 -conns 1 -tls -base grpcprotobuf httpjson.h2c", "takes 250 calls"},
		{"room for all", "-callers 300 -conns 2 -base grpcprotobuf httpjson.h2c", ""},
		{"grpc-go sets no limit", "-callers 1000 -base grpcprotobuf grpcprotobuf.tuned", ""},
		{"a connection each", "-callers 1000 -base httpjson httpjsoniter", ""},
		{"a server elsewhere that takes fewer than our own would", "-callers 400 -server grpcprotobuf=" + f.Addr +
			",httpjson=h:1 -base httpjson grpcprotobuf", "grpcprotobuf: its server takes 250 calls on a connection"},
	} {
		o := optionsOf(t, ours(), strings.Fields(c.args)...)
		lines := crowds(t.Context(), o.plan())
		if c.want == "" {
			require.Empty(t, lines, c.reason)
			continue
		}
		require.Len(t, lines, 1, c.reason)
		require.Contains(t, lines[0], c.want, c.reason)
	}
}

// What is announced has turns only of stacks whose connections carry a call at a time.
func TestTurnsAreAnnounced(t *testing.T) {
	takes := func(args string) time.Duration {
		o := optionsOf(t, ours(), strings.Fields(args)...)
		return comparing(o.plan())
	}
	const line = "-callers 30 -wait 10ms -base "
	require.Equal(t, takes(line+"grpcprotobuf connectrpc.h2c"), takes("-conns 1 "+line+"grpcprotobuf connectrpc.h2c"))
	require.Greater(t, takes("-conns 1 "+line+"httpjson connectrpc.h2c"), 2*takes(line+"httpjson connectrpc.h2c"))
	require.Greater(t, takes("-conns 1 "+line+"grpcprotobuf httpjson"), 2*takes(line+"grpcprotobuf httpjson"))
}
