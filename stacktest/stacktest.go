// Package stacktest proves a stack and times it. Conformance is the suite: it takes nobody's word, reads the wire and
// the allocation profile, and fails a stack whose row would not be what its name says. The Benchmark… functions are the
// loops; Main prints what a result needs beside it. A stack from outside this module gets all of it:
//
//	func TestConformance(t *testing.T)        { stacktest.Conformance(t, mystack.New()) }
//	func BenchmarkMyStack(b *testing.B)       { stacktest.BenchmarkCreateUser(b, mystack.New(), rpcbench.Config{}) }
//	func TestMain(m *testing.M)               { stacktest.Main(m) }
package stacktest

import (
	"testing"

	"github.com/rpcbench/rpcbench"
)

// Start starts a fixture that is closed when the test or benchmark ends.
func Start(tb testing.TB, stack rpcbench.Stack, config rpcbench.Config) *rpcbench.Fixture {
	tb.Helper()
	f, err := rpcbench.Start(tb.Context(), stack, config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := f.Close(); err != nil {
			tb.Errorf("rpcbench: %s: close: %v", stack.Name, err)
		}
	})
	return f
}
