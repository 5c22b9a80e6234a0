package stacktest

import (
	"errors"
	"testing"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/stacktest/internal/conform"
)

// Conformance runs the suite over a stack, in clear and with TLS. docs/suite.md says of each check what it proves, and what it does
// not see. Each check is a subtest, bounded in time, whose error says which property is missing. A check that does not apply is
// skipped with the reason. With -short two things are skipped: TLS for a stack that compresses, since gzip is slow under the race
// detector, and the check of patience, which takes five seconds. Conformance must not run in parallel with anything: some checks read
// the process's allocation profile, one its goroutines.
func Conformance(t *testing.T, stack rpcbench.Stack) {
	patience := func() error { return conform.Skip("takes five seconds") }
	if !testing.Short() {
		patience = conform.Patience(conform.Subject{Stack: stack}, 5*time.Second) // meanwhile the other checks run
		defer func() { _ = patience() }()                                         // also if -run leaves the check out
	}
	for _, mode := range []struct {
		name string
		tls  bool
	}{{"clear", false}, {"tls", true}} {
		t.Run(mode.name, func(t *testing.T) {
			if mode.tls && testing.Short() && stack.Traits.Compression != "" {
				t.Skip("takes long under the race detector")
			}
			for _, c := range conform.Checks() {
				if !mode.tls || !c.ClearOnly {
					t.Run(c.Name, func(t *testing.T) { report(t, c.Proves, c.Run(conform.Subject{Stack: stack, TLS: mode.tls})) })
				}
			}
		})
	}
	t.Run("clear/patience", func(t *testing.T) { report(t, conform.Patient, patience()) })
}

func report(t *testing.T, proves string, err error) {
	t.Helper()
	if why, ok := errors.AsType[conform.Skip](err); ok {
		t.Skip(string(why))
	}
	if err != nil {
		t.Errorf("%v\nThe check proves: %s", err, proves)
	}
}
