package stacktest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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
		return skipped("the race detector drops at random what libraries put back into their pools")
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
	codec := s.stack.Traits.Codec
	measure := func(fn func() error) (allocproof.Profile, error) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))  // each P has pools of its own
		defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection makes objects beneath whatever function it starts in
		var callErr error
		profile, err := allocproof.Run(func() { callErr = fn() })
		return profile, errors.Join(err, callErr)
	}
	repeated := func() (allocproof.Profile, error) {
		return measure(func() (err error) {
			for range fresh / known {
				err = errors.Join(err, round())
			}
			return err
		})
	}
	again, err := repeated()
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ { // what libraries pool comes and goes
		neutral, err := measure(func() error {
			for i := range fresh {
				if _, err := f.Client.CreateUser(context.Background(), users.Sample(i%known, payload)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		// Without what the transport's library allocates beneath generated stubs, which may belong to the codec's path.
		transport := s.stack.Traits.Client
		ofCall, ofCreateUser := again.Objects(codec, transport...)[allocproof.Client], neutral.Objects(codec, transport...)[allocproof.Client]
		if ofCreateUser-ofCall < fresh*3/4 { // strings of less than 16 bytes share blocks, and count by chance
			break
		}
		if attempt == 3 {
			return fmt.Errorf("in %d calls %s allocated %d objects in the client for Call, and %d for CreateUser: the Call keeps something, such as the value that it decodes into",
				fresh, codec, ofCall, ofCreateUser)
		}
		if again, err = repeated(); err != nil {
			return err
		}
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
	if bytes := prepared.Bytes(codec)[allocproof.Client]; bytes > half {
		return fmt.Errorf("in %d calls of Prepare %s allocated %d bytes: it encodes once what each call has to encode", fresh, codec, bytes)
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
	for root, bytes := range anew.Bytes(codec) {
		// Less is the library's own: encoding/json of Go 1.27 keeps short strings that it has seen.
		if before := again.Bytes(codec)[root]; bytes-before > half {
			return fmt.Errorf("in %d calls %s allocated %d bytes for users never seen, and %d for users that were sent before, on the goroutine of %s: something is kept from call to call",
				fresh, codec, bytes, before, root)
		}
	}
	return nil
}
