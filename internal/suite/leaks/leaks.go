// Package leaks finds goroutines that are left behind. The conformance suite and the benchmark loops share it. It
// does not import package testing.
package leaks

import (
	"time"

	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
)

// Background returns options that ignore the goroutines in Traits.Background.
func Background(stacks ...rpcbench.Stack) (options []goleak.Option) {
	for _, s := range stacks {
		for _, function := range s.Traits.Background {
			options = append(options, goleak.IgnoreAnyFunction(function))
		}
	}
	return options
}

// Grace is how long goroutines have to end. goleak's own limit is too short: net/http keeps a connection for half a
// second after it refused a body that was too large.
const Grace = 3 * time.Second

// LeftBehind returns an error if goroutines are left after the grace.
func LeftBehind(grace time.Duration, options ...goleak.Option) (err error) {
	for start := time.Now(); time.Since(start) < grace; {
		if err = goleak.Find(options...); err == nil {
			break
		}
	}
	return err
}
