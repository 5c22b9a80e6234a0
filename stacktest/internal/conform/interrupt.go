package conform

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/relay"
	"github.com/rpcbench/rpcbench/internal/users"
)

// interruption ends a call, or a stream under its Call, while the server holds the request.
type interruption struct {
	is       error         // that errors.Is must find in the call's
	deadline time.Duration // of the context; 0 is none
	end      func(context.CancelFunc, *relay.Gate)
}

// interruptions are by the code that a call ends with.
func interruptions() map[rpcbench.Code]interruption {
	return map[rpcbench.Code]interruption{
		rpcbench.DeadlineExceeded: {context.DeadlineExceeded, 50 * time.Millisecond, func(context.CancelFunc, *relay.Gate) {}},
		rpcbench.Canceled:         {context.Canceled, 0, func(cancel context.CancelFunc, _ *relay.Gate) { cancel() }},
		rpcbench.Unavailable:      {nil, 0, func(_ context.CancelFunc, gate *relay.Gate) { gate.Drop() }},
	}
}

// interrupt makes the call of u that open prepares for a context, and ends it.
func (f *session) interrupt(what string, code rpcbench.Code, u rpcbench.User, open func(context.Context) (func() error, error)) {
	i := interruptions()[code]
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if i.deadline > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, i.deadline)
		defer stop()
	}
	call, err := open(ctx)
	skipIf(ctx.Err() != nil, "the machine is too slow to tell")
	must(err)
	result := f.hold(ctx, u, call)
	i.end(cancel, f.gate)
	err = f.within(f.s.patience(), func() error { return <-result })
	failIf(errors.Is(err, errStuck), "the %s ignores its context or connection: that ended as %q and the call did not return within %v",
		what, code, f.s.patience())
	must(wantError(err, code), "the %s, interrupted while the server holds the request", what)
	failIf(i.is != nil && !errors.Is(err, i.is), "the %s: errors.Is(err, %v) does not hold: %w", what, i.is, err)
}

// interrupted makes a check of an interruption, after which the next call works.
func interrupted(code rpcbench.Code) func(Subject) {
	return func(s Subject) {
		for n := range 2 { // a fixture for each form: what comes late of the first would be held in place of the second
			watched(func(f *session) {
				u := users.Sample(0, 0)
				form := f.forms(u)[n]
				f.interrupt(form.name, code, u, func(ctx context.Context) (func() error, error) {
					return func() error { return form.call(ctx) }, nil
				})
				if code != rpcbench.Unavailable {
					f.gate.Release()
					_, _, err := f.record(context.Background(), form.call)
					must(err, "the %s after one that ended as %q", form.name, code)
				}
			})(s)
		}
	}
}

func unavailable(s Subject) {
	if s.readable() { // else what arrives can't be told from a straggler of the call before
		interrupted(rpcbench.Unavailable)(s)
	}
	gone := try(new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0"))
	must(gone.Close())
	var config *tls.Config
	if s.TLS {
		config = new(tls.Config)
	}
	s.outOfReach("nobody listens", gone.Addr().String(), config)
}

// Patient is what Patience proves.
const Patient = "A call that the server answers after five seconds succeeds: the client has no shorter timeout of its own."

// Patience is the check of a client's own timeout. It begins a call, whose request the server is given after wait, and returns the rest
// of the check, so that others can run meanwhile.
func Patience(s Subject, wait time.Duration) (check func() error) {
	var f *session
	var result <-chan error
	began := time.Now()
	err := ended(func() {
		f = try(s.watch(rpcbench.Config{}))
		u := users.Sample(0, 0)
		call := f.prepare(u)
		result = f.hold(context.Background(), u, func() error { return call(context.Background()) })
	})
	return sync.OnceValue(func() error {
		if err != nil {
			return err
		}
		defer f.Close()
		return ended(func() {
			select {
			case err := <-result:
				failIf(true, "a call without a deadline ended before the server had its request: the client has a timeout of its own: %v", err)
			case <-time.After(wait - time.Since(began)):
			}
			f.gate.Release()
			must(f.within(s.patience(), func() error { return <-result }), "a call that was answered after %v", wait)
		})
	})
}
