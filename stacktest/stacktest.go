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
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/stacktest/internal/conform"
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
	if errors.Is(err, errors.ErrUnsupported) {
		tb.Skipf("rpcbench: %s: %v", stack.Name, err)
	}
	orFail(tb, stack.Name, err)
}

// orFail fails a test or a row if there is an error, with the name of the stack before it.
func orFail(tb testing.TB, name string, err error) {
	tb.Helper()
	if prefix := "rpcbench: " + name + ": "; err != nil {
		tb.Fatal(prefix + strings.TrimPrefix(err.Error(), prefix))
	}
}

// Conformance runs the suite over a stack, in clear and with TLS: docs/suite.md says what each check proves. Each is a
// subtest, bounded in time, and skipped with the reason where it does not apply. With -short two things are skipped:
// TLS for a stack that compresses, since gzip is slow under the race detector, and the check of patience, which takes
// five seconds. Conformance must not run in parallel with anything: some checks read the process's allocation profile,
// one its goroutines.
func Conformance(t *testing.T, stack rpcbench.Stack) {
	for _, mode := range []string{"clear", "tls"} {
		t.Run(mode, func(t *testing.T) {
			tls := mode == "tls"
			subject := conform.Subject{Stack: stack, TLS: tls}
			if !testing.Short() {
				subject.Wait = 5 * time.Second
			} else if tls && stack.Traits.Compression != "" {
				t.Skip("takes long under the race detector")
			}
			for _, c := range conform.Checks() {
				if !tls || !c.ClearOnly {
					t.Run(c.Name, func(t *testing.T) { report(t, c.Run(subject)) })
				}
			}
		})
	}
}

func report(t *testing.T, err error) {
	t.Helper()
	if why, ok := errors.AsType[conform.Skip](err); ok {
		t.Skip(string(why))
	}
	if err != nil {
		t.Errorf("%v\nrpcbench's docs/suite.md says what the check proves.", err)
	}
}
