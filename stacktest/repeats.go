package stacktest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/allocproof"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/users"
)

// repeats proves that encoding and decoding are done anew for a user that was sent before. On either side the declared codec
// allocates as much for calls that are repeated as for calls of users never seen, and nothing in Prepare. So the check
// finds bytes that Prepare has encoded, and a cache of requests, replies or values by their content, on either side. It does not
// find what doesn't allocate: a cached encoding of a library that encodes into a buffer it was given.
func repeats(s subject) error {
	const (
		fresh   = 80   // users never seen; all are of one length
		known   = 16   // users that were sent before, and will be five times more
		payload = 4000 // bytes of each user: encoding and decoding allocate at least as much
		half    = fresh * payload / 2
	)
	if strings.Contains(environ.Build(), "-race") {
		return nil // the race detector drops at random what libraries put back into their pools
	}
	f, err := s.start(rpcbench.Config{})
	if err != nil {
		return err
	}
	defer f.Close()
	var calls []rpcbench.Call
	for i := range known {
		call, err := prepareOne(f, users.Sample(i, payload))
		if err != nil {
			return err
		}
		calls = append(calls, call)
	}
	round := func() (err error) {
		for _, call := range calls {
			err = errors.Join(err, call(context.Background()))
		}
		return err
	}
	for range 4 { // what a library builds once, it builds now
		if err := round(); err != nil {
			return err
		}
	}
	measure := func(fn func() error) (map[string]int64, error) {
		defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection makes objects beneath whatever function it starts in
		var callErr error
		profile, err := allocproof.Run(func() { callErr = fn() })
		return profile.Bytes(s.stack.Traits.Codec), errors.Join(err, callErr)
	}
	again, err := measure(func() (err error) {
		for range fresh / known {
			err = errors.Join(err, round())
		}
		return err
	})
	if err != nil {
		return err
	}
	var unseen []rpcbench.Call
	prepared, err := measure(func() error {
		for i := range fresh {
			call, err := prepareOne(f, users.Sample(known+i, payload))
			if err != nil {
				return err
			}
			unseen = append(unseen, call)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if bytes := prepared[allocproof.Client]; bytes > half {
		return fmt.Errorf("in %d calls of Prepare %s allocated %d bytes: it encodes once what each call has to encode", fresh, s.stack.Traits.Codec, bytes)
	}
	anew, err := measure(func() (err error) {
		for _, call := range unseen {
			err = errors.Join(err, call(context.Background()))
		}
		return err
	})
	if err != nil {
		return err
	}
	for root, bytes := range anew {
		// Less is the library's own: encoding/json of Go 1.27 keeps short strings that it has seen.
		if bytes-again[root] > half {
			return fmt.Errorf("in %d calls %s allocated %d bytes for users never seen, and %d for users that were sent before, on the goroutine of %s: something is kept from call to call",
				fresh, s.stack.Traits.Codec, bytes, again[root], root)
		}
	}
	return nil
}
