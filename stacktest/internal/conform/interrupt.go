package conform

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/fixture"
	"github.com/rpcbench/rpcbench/internal/netwrap"
	"github.com/rpcbench/rpcbench/internal/users"
)

// interruption ends a call, or a stream under its Call, while the server holds the request.
type interruption struct {
	code     rpcbench.Code
	is       error         // that errors.Is must find in the call's
	deadline time.Duration // of the context; 0 is none
	end      func(context.CancelFunc, *netwrap.Gate)
}

func deadlinePasses() interruption {
	return interruption{rpcbench.DeadlineExceeded, context.DeadlineExceeded, 50 * time.Millisecond, func(context.CancelFunc, *netwrap.Gate) {}}
}

func contextCancelled() interruption {
	return interruption{rpcbench.Canceled, context.Canceled, 0, func(cancel context.CancelFunc, _ *netwrap.Gate) { cancel() }}
}

func connectionDropped() interruption {
	return interruption{rpcbench.Unavailable, nil, 0, func(_ context.CancelFunc, gate *netwrap.Gate) { gate.Drop() }}
}

// interrupt makes the call of u that open prepares for a context, and ends it.
func (f *session) interrupt(i interruption, u rpcbench.User, open func(context.Context) (func() error, error)) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if i.deadline > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, i.deadline)
		defer stop()
	}
	call, err := open(ctx)
	if ctx.Err() != nil {
		return Skip("the machine is too slow to tell")
	}
	if err != nil {
		return err
	}
	result := f.hold(ctx, u, call)
	i.end(cancel, f.gate)
	err = fixture.Within(f.s.patience(), f.Fixture, func() error { return <-result })
	if errors.Is(err, fixture.ErrStuck) {
		return fmt.Errorf("the call ignores its context or connection: that ended as %q and the call did not return within %v", i.code, f.s.patience())
	}
	if err := wantError("interrupted while the server holds the request", err, i.code); err != nil {
		return err
	}
	if i.is != nil && !errors.Is(err, i.is) {
		return fmt.Errorf("errors.Is(err, %v) does not hold: %w", i.is, err)
	}
	return nil
}

// interrupted makes a check of an interruption, after which the next call works.
func interrupted(kind func() interruption) func(Subject) error {
	return func(s Subject) error {
		for n := range 2 { // a fixture for each form: what comes late of the first would be held in place of the second
			err := with(s.watch, rpcbench.Config{}, func(f *session) error {
				u, i := users.Sample(0, 0), kind()
				forms, err := f.forms(u)
				if err != nil {
					return err
				}
				err = f.interrupt(i, u, func(ctx context.Context) (func() error, error) {
					return func() error { return forms[n].call(ctx) }, nil
				})
				if err != nil || i.code == rpcbench.Unavailable {
					return named(forms[n].name, err)
				}
				f.gate.Release()
				_, _, err = f.record(context.Background(), forms[n].call)
				return named("the call after one that ended as "+string(i.code), err)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// named says of an error, if there is one, what it is about.
func named(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

func unavailable(s Subject) error {
	if s.readable() { // else what arrives can't be told from a straggler of the call before
		if err := interrupted(connectionDropped)(s); err != nil {
			return err
		}
	}
	gone, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := gone.Close(); err != nil {
		return err
	}
	var config *tls.Config
	if s.TLS {
		config = new(tls.Config)
	}
	return s.outOfReach("nobody listens", gone.Addr().String(), config)
}

// Patient is what Patience proves.
const Patient = "A call that the server answers after five seconds succeeds: the client has no shorter timeout of its own."

// Patience is the check of a client's own timeout: a call that the server answers after wait succeeds. It begins the call, whose request
// the server is not given, and returns the rest of the check, to be made once, so that others can run meanwhile.
func Patience(s Subject, wait time.Duration) (check func() error) {
	failed := func(err error) func() error { return func() error { return err } }
	f, err := s.watch(rpcbench.Config{})
	if err != nil {
		return failed(err)
	}
	u := users.Sample(0, 0)
	call, err := fixture.Call(f.Fixture, u)
	if err != nil {
		return failed(errors.Join(err, f.Close()))
	}
	began := time.Now()
	result := f.hold(context.Background(), u, func() error { return call(context.Background()) })
	return sync.OnceValue(func() error {
		defer f.Close()
		select {
		case err := <-result:
			return fmt.Errorf("a call without a deadline ended before the server had its request: the client has a timeout of its own: %v", err)
		case <-time.After(wait - time.Since(began)):
		}
		f.gate.Release()
		err := fixture.Within(s.patience(), f.Fixture, func() error { return <-result })
		return named(fmt.Sprintf("a call that was answered after %v", wait), err)
	})
}
