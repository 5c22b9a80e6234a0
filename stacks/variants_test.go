//go:build !race

// The race detector allocates on its own account.

package stacks_test

import (
	"bytes"
	"context"
	"net/http"
	"reflect"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
	"github.com/rpcbench/rpcbench/internal/testkit"
	"github.com/rpcbench/rpcbench/stacks"
	"github.com/rpcbench/rpcbench/stacktest"
)

// TestVariantsDoWhatTheyClaim: a variant whose declared traits are its main value's would pass the suite without doing
// anything. Each has a proof here that it differs from the main value, which fails for the main value itself. Of the
// other variants the suite proves the trait that differs.
func TestVariantsDoWhatTheyClaim(t *testing.T) {
	costs := map[string]cost{}
	costOf := func(t *testing.T, s rpcbench.Stack) cost {
		if _, ok := costs[s.Name]; !ok {
			costs[s.Name] = costOf(t, s)
		}
		return costs[s.Name]
	}
	proofs := map[string]func(t *testing.T, s, main rpcbench.Stack) bool{
		"httpjson.decoder": func(t *testing.T, s, _ rpcbench.Stack) bool { return ignoresWhatFollows(t, s) },
		"httpjson.tuned": func(t *testing.T, s, main rpcbench.Stack) bool {
			return costOf(t, s).Allocs < costOf(t, main).Allocs-5
		},
		"grpcprotobuf.tuned": func(t *testing.T, s, main rpcbench.Stack) bool {
			return hasWorkers(t, s) && costOf(t, s).Sent < costOf(t, main).Sent-40 // no pings
		},
		"grpcprotobuf.windows": func(t *testing.T, s, main rpcbench.Stack) bool {
			return !hasWorkers(t, s) && costOf(t, s).Sent < costOf(t, main).Sent-40
		},
		"connectrpc.grpcweb": func(t *testing.T, s, _ rpcbench.Stack) bool {
			return sends(t, s, "application/grpc-web+proto")
		},
		"connectrpc.json": func(t *testing.T, s, _ rpcbench.Stack) bool { return sends(t, s, `{"email":"`) },
	}
	proofs["connectrpc2.grpcweb"], proofs["connectrpc2.json"] = proofs["connectrpc.grpcweb"], proofs["connectrpc.json"]
	mains := map[string]rpcbench.Stack{}
	for _, s := range stacks.Core() {
		mains[s.Name] = s
	}
	for _, s := range stacks.All() {
		name, variant, _ := strings.Cut(s.Name, ".")
		proof, ok := proofs[s.Name]
		if variant == "" || !ok && !reflect.DeepEqual(s.Traits, mains[name].Traits) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			require.True(t,
				ok, "its traits are those of %s, so the suite does not tell them apart: it needs a proof of what it claims", name)
			require.True(t, proof(t, s, mains[name]), "it does not do what its comment says")
			require.False(t, proof(t, mains[name], mains[name]), "the proof does not tell it from %s", name)
		})
	}
}

// ignoresWhatFollows says whether the server accepts bytes after a complete JSON value, as a json.Decoder does.
func ignoresWhatFollows(t *testing.T, s rpcbench.Stack) bool {
	f := stacktest.Start(t, s, rpcbench.Config{})
	body := `{"email":"anna@example.com","name":"Anna","password":"secret"} and more`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+f.Addr+"/users", strings.NewReader(body))
	require.NoError(t, err)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode == http.StatusOK
}

// hasWorkers says whether grpc-go's server keeps goroutines for its handlers.
func hasWorkers(t *testing.T, s rpcbench.Stack) bool {
	stacktest.Start(t, s, rpcbench.Config{})
	var stacks bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&stacks, 1))
	return strings.Contains(stacks.String(), "google.golang.org/grpc.(*Server).serverWorker")
}

// sends says whether a request has the text.
func sends(t *testing.T, s rpcbench.Stack, text string) bool {
	tap := new(tap.Tap)
	f := stacktest.Start(t, s, rpcbench.Config{WrapClient: tap.Wrap})
	call, err := testkit.As[rpcbench.Users](t, f).PrepareUser(rpcbench.SampleUser(0, 0))
	require.NoError(t, err)
	require.NoError(t, call(context.Background()))
	for _, c := range tap.Conns() {
		if sent, _ := c.Bytes(); bytes.Contains(sent, []byte(text)) {
			return true
		}
	}
	return false
}
