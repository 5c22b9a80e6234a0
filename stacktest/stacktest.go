// Package stacktest proves a stack and times it. Conformance is the suite: it takes nobody's word, reads the wire and
// the allocation profile, and fails a stack whose row would not be what its name says. The Benchmark… functions are the
// loops; Main prints what a result needs beside it. A stack from outside this module gets all of it:
//
//	func TestConformance(t *testing.T)        { stacktest.Conformance(t, mystack.New()) }
//	func BenchmarkMyStack(b *testing.B)       { stacktest.BenchmarkCreateUser(b, mystack.New(), rpcbench.Config{}) }
//	func TestMain(m *testing.M)               { stacktest.Main(m, mystack.New()) }
package stacktest

import (
	"errors"
	"strings"
	"testing"

	"github.com/rpcbench/rpcbench"
)

// Start starts a fixture that is closed when the test or benchmark ends. It skips what the stack says it can't do: an
// error that is errors.ErrUnsupported.
func Start(tb testing.TB, stack rpcbench.Stack, config rpcbench.Config) *rpcbench.Fixture {
	tb.Helper()
	f, err := rpcbench.Start(tb.Context(), stack, config)
	skipOrFail(tb, stack, err)
	tb.Cleanup(func() {
		if err := f.Close(); err != nil {
			tb.Errorf("rpcbench: %s: close: %v", stack.Name, err)
		}
	})
	return f
}

func skipOrFail(tb testing.TB, stack rpcbench.Stack, err error) {
	tb.Helper()
	if err == nil {
		return
	}
	text := err.Error()
	if prefix := "rpcbench: " + stack.Name + ": "; !strings.HasPrefix(text, prefix) {
		text = prefix + text
	}
	if errors.Is(err, errors.ErrUnsupported) {
		tb.Skip(text)
	}
	tb.Fatal(text)
}
