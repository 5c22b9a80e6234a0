// Package stacktest proves that a stack does what it claims, and times it. Stacks of other modules are welcome:
//
//	func TestConformance(t *testing.T)  { stacktest.Conformance(t, mystack.New()) }
//	func BenchmarkMyStack(b *testing.B) { stacktest.Benchmark(b, mystack.New(), rpcbench.Workload{}) }
//
// [Conformance] is the suite. It checks each claim of a stack against the bytes on the wire and the allocation profile.
//
// [Benchmark] times a stack at a workload, and its documentation lists the figures that its rows report. Versions and
// units stand above the rows, as benchstat reads them. To compare stacks, use the command: your own program becomes
// one with [github.com/rpcbench/rpcbench/cli.Main].
//
// [Start] starts a server with its client for a test or a benchmark of your own.
//
// [Main], called from a TestMain, also fails if goroutines are left. No test or benchmark needs it.
package stacktest

import (
	"errors"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/suite/conform"
)

// Start starts a fixture that is closed when the test or benchmark ends. It skips the test if the stack can't do what
// config asks for, which it says by errors.ErrUnsupported.
//
// Start calls Procs for a benchmark, so that its b.Loop runs with the GOMAXPROCS of its label. Start the fixture in the
// benchmark that has the loop. Where several benchmarks share a fixture, each calls Procs itself.
func Start(tb testing.TB, stack rpcbench.Stack, config rpcbench.Config) *rpcbench.Fixture {
	tb.Helper()
	if b, ok := tb.(*testing.B); ok {
		Procs(b)
		current.announce(packages(stack), nil)
	}
	f, err := rpcbench.Start(tb.Context(), stack, config)
	skipOrFail(tb, stack, err)
	closing(tb, stack, f.Close)
	return f
}

// closing closes what a test or benchmark has opened, when it ends.
func closing(tb testing.TB, stack rpcbench.Stack, end func() error) {
	tb.Helper()
	tb.Cleanup(func() {
		if err := end(); err != nil {
			tb.Errorf("%s: close: %v", stack.Name, err)
		}
	})
}

func skipOrFail(tb testing.TB, stack rpcbench.Stack, err error) {
	tb.Helper()
	if errors.Is(err, errors.ErrUnsupported) {
		tb.Skip(prefixed(stack.Name, err))
	}
	orFail(tb, stack.Name, err)
}

// orFail fails a test or a row if err is not nil. The message begins with the name of the stack.
func orFail(tb testing.TB, name string, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(prefixed(name, err))
	}
}

func prefixed(name string, err error) string {
	prefix := name + ": "
	return prefix + strings.TrimPrefix(err.Error(), prefix) // rpcbench.Start names the stack, and a call does not
}

// Conformance runs the suite over a stack, first without TLS and then with TLS. Each check is a subtest with a time
// limit, and says what it proves when it fails. A check that does not apply is skipped with the reason.
//
// With -short, TLS is skipped for a stack that compresses, because gzip is slow under the race detector. With -long, a
// flag of [Main], the check that clients wait for a slow reply takes five seconds in place of half a second. The checks
// that wait, and some that read nothing of the process as a whole, run at the same time, when the first of them has its
// turn.
//
// Conformance must not run in parallel with other tests, because it reads the allocation profile and the goroutines of
// the process.
func Conformance(t *testing.T, stack rpcbench.Stack) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a tenth of the suite's time, which nothing is said of
	inClear := conform.Subject{Stack: stack, Wait: time.Second / 2}
	if current.long {
		inClear.Wait = 5 * time.Second
	}
	overTLS := inClear
	overTLS.TLS = true
	subjects := []conform.Subject{inClear, overTLS}
	if testing.Short() && stack.Traits.Compression != "" {
		subjects = subjects[:1]
	}
	run := conform.Together(subjects...)
	for i, mode := range []string{"clear", "tls"} {
		t.Run(mode, func(t *testing.T) {
			if i == len(subjects) {
				t.Skip("takes long under the race detector")
			}
			for _, c := range conform.Checks() {
				if subject := subjects[i]; !subject.TLS || !c.ClearOnly {
					t.Run(c.Name, func(t *testing.T) { report(t, c, run(c, subject)) })
				}
			}
		})
	}
}

func report(t testing.TB, c conform.Check, err error) {
	t.Helper()
	if why, ok := errors.AsType[conform.Skip](err); ok {
		t.Skip(string(why))
	}
	if err != nil {
		t.Errorf("%v\nThe check %q proves: %s", err, c.Name, c.Proves)
	}
}
