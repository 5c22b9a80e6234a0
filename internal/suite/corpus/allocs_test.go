//go:build !race

// The race detector allocates on its own account.

package corpus_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/suite/corpus"
)

func TestTraceparentAllocatesItself(t *testing.T) {
	next := corpus.Headers().Traceparent
	require.EqualValues(t, 1, testing.AllocsPerRun(1000, func() { _ = next() }))
}
