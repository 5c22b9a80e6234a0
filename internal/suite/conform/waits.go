package conform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rpcbench/rpcbench"
)

const sideBySide = 4 // calls that wait at a time

// errLate marks the error of calls that took longer than the wait allows. A busy machine may be late too, so they are
// made again with a longer wait, which a handler that waits wrongly exceeds as well.
var errLate = errors.New(", also when the wait was longer")

func waits(s Subject) {
	var err error
	for _, part := range []time.Duration{600, 200, 60} { // 100 ms, 300 ms and a second of a minute
		wait := s.limit() / part
		if err = ended(func() { s.waits(wait) }); !errors.Is(err, errLate) {
			break
		}
	}
	failIf(err != nil, "%w", err)
}

// beside returns how many connections so many calls need that wait beside each other.
func (s Subject) beside(calls int) int {
	if t := s.Stack.Traits; t.Multiplexed && !t.Turns {
		return 1
	}
	return calls
}

// waited makes a call, which must take as long as its handler waits.
func waited(wait time.Duration, call rpcbench.Call) error {
	began := time.Now()
	err := call(context.Background())
	if took := time.Since(began); err == nil && took < wait {
		err = fmt.Errorf("took %v where ServerConfig.Wait is %v: the server hands its ServerConfig to NewUserValidator, and "+
			"all handlers wait", took, wait)
	}
	return err
}

// refused makes a call of a user who breaks rules, and returns how long it took. No sample of a method breaks any.
func (f *session) refused() time.Duration {
	if f.s.own() {
		return 0
	}
	began := time.Now()
	wantError(f.prepare(rpcbench.User{})(context.Background()), rpcbench.CodeInvalid, "a user who breaks rules")
	return time.Since(began)
}

// waits checks calls of a server whose handlers wait so long.
func (s Subject) waits(wait time.Duration) {
	s.with(rpcbench.Config{Conns: s.beside(sideBySide), Wait: wait}, func(f *session) {
		before, made := f.Handled(), int64(sideBySide) // of calls that end well
		one := func(call rpcbench.Call) error { return waited(wait, call) }
		var callers sync.WaitGroup
		var errs [sideBySide]error
		began := time.Now()
		for i := range errs {
			call := f.call(i, 0)
			callers.Go(func() { errs[i] = one(call) })
		}
		callers.Wait()
		must(cmp.Or(errs[:]...), "one of %d calls at a time", sideBySide)
		failIf(time.Since(began) >= sideBySide*wait, "%d calls at a time waited one after the other, %v each%w", sideBySide,
			wait, errLate)
		failIf(f.refused() >= wait, "a user who is refused took %v or longer: a handler waits when it has validated%w", wait,
			errLate)
		if client, ok := f.Client.(rpcbench.Echoer); ok {
			call := try(client.PrepareEcho(&rpcbench.Flex{String: "echo"}))
			if call(context.Background()) == nil { // else its server does not echo: see the check of that
				must(one(call), "an echo")
				made += 2
			}
		}
		if client, ok := f.Client.(rpcbench.Streamer); ok {
			stream := try(client.OpenStream(context.Background()))
			must(one(try(stream.Prepare(rpcbench.SampleUser(0, 0)))), "a call on a stream")
			must(stream.Close(), "close a stream")
			made++
		}
		if !f.s.own() {
			made++ // which was refused
		}
		handled := f.Handled() - before
		failIf(handled < made, "the server counted %d of %d calls: each handler calls what NewUserValidator made of the "+
			"ServerConfig, and that of an echo calls its CountAndWait", handled, made)
	})
}
