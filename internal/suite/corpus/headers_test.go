package corpus_test

import (
	"encoding/base64"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/suite/corpus"
)

func TestHeadersAreOfRealForm(t *testing.T) {
	h := corpus.Headers()
	token, ok := strings.CutPrefix(h.Authorization, "Bearer ")
	require.True(t, ok)
	require.Len(t, token, 722)
	parts := strings.Split(token, ".")
	require.Len(t, parts, 3)
	for _, p := range parts {
		_, err := base64.RawURLEncoding.DecodeString(p)
		require.NoError(t, err)
	}
	require.Regexp(t, `^[a-z-]+/[0-9.]+ [ -~]{50,}$`, h.UserAgent)

	again := corpus.Headers()
	require.Equal(t, h.UserAgent, again.UserAgent)
	require.Equal(t, h.Authorization, again.Authorization)
	first, second := h.Traceparent(), h.Traceparent()
	require.Equal(t, "00-06c45d188009454ff88bb8a8724c81ec-1b39896a51a8749b-01", first, "in every process and version")
	require.NotEqual(t, first, second)
	require.Equal(t, first, again.Traceparent(), "each client begins anew")
}

func TestTraceparentsDiffer(t *testing.T) {
	const callers, calls = 4, 1000
	next := corpus.Headers().Traceparent
	form := regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-01$`)
	var made [callers][]string
	var group sync.WaitGroup
	for i := range made {
		group.Go(func() {
			for range calls {
				made[i] = append(made[i], next())
			}
		})
	}
	group.Wait()
	seen := map[string]bool{strings.Repeat("0", 32): true, strings.Repeat("0", 16): true} // those are invalid
	for _, some := range made {
		for _, s := range some {
			ids := form.FindStringSubmatch(s)
			require.NotNil(t, ids, s)
			for _, id := range ids[1:] {
				require.False(t, seen[id], "%s again, or invalid", id)
				seen[id] = true
			}
		}
	}
}
