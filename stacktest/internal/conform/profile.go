package conform

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/allocproof"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/fixture"
	"github.com/rpcbench/rpcbench/internal/users"
)

// rivals are the libraries that encode and decode somewhere in the line-up. While a stack runs, only its own may be seen.
func rivals() []string {
	return []string{
		"encoding/json", "encoding/json/v2", "encoding/xml", "encoding/gob",
		"github.com/json-iterator/go", "github.com/goccy/go-json",
		"google.golang.org/protobuf", "github.com/planetscale/vtprotobuf",
		"github.com/vmihailenco/msgpack", "github.com/tinylib/msgp",
	}
}

// profiled runs fn with every allocation recorded.
func profiled(fn func() error) (allocproof.Profile, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))  // each P has pools of its own
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection makes objects beneath whatever function it starts in
	var callErr error
	profile, err := allocproof.Run(func() { callErr = fn() })
	return profile, errors.Join(callErr, err)
}

// goRound makes the calls in turn, so many times. What a library builds once, it builds in the first round.
func goRound(calls []rpcbench.Call, times int) func() error {
	return func() error {
		for range times {
			for _, call := range calls {
				if err := call(context.Background()); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// sides splits amounts by goroutine into the caller's and all others'.
func sides(roots map[string]int64) (client, elsewhere int64) {
	for root, amount := range roots {
		if root == allocproof.Client {
			client += amount
		} else {
			elsewhere += amount
		}
	}
	return client, elsewhere
}

// codecRan proves whose code encodes and decodes: functions of the declared library allocate at least once per call on
// goroutines of two kinds, the client's and the server's, and functions of no rival do. It proves decoding on both
// sides, and encoding where the encoder allocates. For encoding/json it also proves the engine of this build.
func codecRan(f *session) error {
	const rounds = 4
	calls, err := fixture.Calls(f.Fixture, 1000)
	if err != nil {
		return err
	}
	if err := goRound(calls, 1)(); err != nil {
		return err
	}
	profile, err := profiled(goRound(calls, rounds))
	if err != nil {
		return err
	}
	own := []string{f.Stack.Traits.Codec}
	if own[0] == "encoding/json" {
		own = append(own, environ.JSONEngine())
	}
	ops := int64(rounds * len(calls))
	for _, library := range own {
		roots := 0
		for _, objects := range profile.Objects(library) {
			if objects >= ops {
				roots++
			}
		}
		if roots < 2 {
			return fmt.Errorf("in %d calls functions of %s, the declared codec, allocated these objects by goroutine: %v; at least one per call is expected in the client's and in the server's; seen: %s",
				ops, library, profile.Objects(library), strings.Join(profile.Packages(), " "))
		}
	}
	if err := transportsRan(f.Stack.Traits, profile, ops); err != nil {
		return err
	}
	for _, rival := range rivals() {
		if slices.ContainsFunc(own, func(o string) bool { return allocproof.Within(o, rival) || allocproof.Within(rival, o) }) {
			continue
		}
		// grpc-go's ServeHTTP clones its status, a protobuf message, at the end of each call: that is no codec at work.
		if roots := profile.Objects(rival, "google.golang.org/grpc/internal/status"); len(roots) > 0 {
			return fmt.Errorf("functions of %s allocated these objects by goroutine: %v; the declared codec is %s", rival, roots, own[0])
		}
	}
	return nil
}

// transportsRan proves who moves the bytes. Functions of each library that is declared for the client allocate at least once
// per call on the caller's goroutine, those of each one declared for the server on other goroutines, and those of the rest
// nowhere. Where client and server are declared to be of one library, its own background goroutines may stand in for the server.
func transportsRan(traits rpcbench.Traits, profile allocproof.Profile, ops int64) error {
	for _, library := range []string{"net/http", "google.golang.org/grpc", "connectrpc.com/connect"} {
		client, elsewhere := sides(profile.Objects(library))
		inClient, inServer := slices.Contains(traits.Client, library), slices.Contains(traits.Server, library)
		for _, side := range []struct {
			declared, wrong bool
			objects         int64
			where           string
		}{
			{inClient, inClient && client < ops || !inClient && client > 0, client, "on the caller's goroutine; Traits.Client"},
			{inServer, inServer && elsewhere < ops || !inServer && !inClient && elsewhere > 0, elsewhere, "beside the caller's goroutine; Traits.Server"},
		} {
			if side.wrong {
				return fmt.Errorf("in %d calls functions of %s allocated %d objects %s declares it: %t", ops, library, side.objects, side.where, side.declared)
			}
		}
	}
	return nil
}

// repeats compares what the declared codec allocates, on either side, for calls that are repeated, for calls of users never seen, and
// in Prepare. So it finds bytes that Prepare has encoded, and a cache of requests, replies or values by their content.
func repeats(f *session) error {
	const (
		fresh   = 5 * users.Round // users never seen; all are of one length
		payload = 4000            // bytes of each user: encoding and decoding allocate at least as much
		half    = fresh * payload / 2
	)
	if strings.Contains(environ.Build(), "-race") {
		return Skip("the race detector drops at random what libraries put back into their pools")
	}
	calls, err := fixture.Calls(f.Fixture, payload)
	if err != nil {
		return err
	}
	var creates, unseen []rpcbench.Call
	for i := range calls {
		creates = append(creates, f.create(users.Sample(i, payload)))
	}
	if err := goRound(calls, 4)(); err != nil {
		return err
	}
	codec := f.Stack.Traits.Codec
	again, err := profiled(goRound(calls, fresh/users.Round))
	for attempt := 1; err == nil; attempt++ { // what libraries pool comes and goes
		neutral, neutralErr := profiled(goRound(creates, fresh/users.Round))
		if neutralErr != nil {
			return neutralErr
		}
		// Without what the transport's library allocates beneath generated stubs, which may belong to the codec's path.
		transport := f.Stack.Traits.Client
		ofCall, _ := sides(again.Objects(codec, transport...))
		ofCreateUser, _ := sides(neutral.Objects(codec, transport...))
		if ofCreateUser-ofCall < fresh*3/4 { // strings of less than 16 bytes share blocks, and count by chance
			break
		}
		if attempt == 3 {
			return fmt.Errorf("in %d calls %s allocated %d objects in the client for Call, and %d for CreateUser: the Call keeps something, such as the value that it decodes into",
				fresh, codec, ofCall, ofCreateUser)
		}
		again, err = profiled(goRound(calls, fresh/users.Round))
	}
	if err != nil {
		return err
	}
	prepared, err := profiled(func() error {
		for i := range fresh {
			call, err := fixture.Call(f.Fixture, users.Sample(users.Round+i, payload))
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
	if inClient, _ := sides(prepared.Bytes(codec)); inClient > half {
		return fmt.Errorf("in %d calls of Prepare %s allocated %d bytes: it encodes once what each call has to encode", fresh, codec, inClient)
	}
	anew, err := profiled(goRound(unseen, 1))
	for root, bytes := range anew.Bytes(codec) {
		// Less is the library's own: encoding/json of Go 1.27 keeps short strings that it has seen.
		if before := again.Bytes(codec)[root]; bytes-before > half {
			return fmt.Errorf("in %d calls %s allocated %d bytes for users never seen, and %d for users that were sent before, on the goroutine of %s: something is kept from call to call",
				fresh, codec, bytes, before, root)
		}
	}
	return err
}

// validation counts uses of the validator by its objects: it allocates for each email that it parses.
func validation(f *session) error {
	calls, err := fixture.Calls(f.Fixture, 0)
	if err != nil {
		return err
	}
	check := rpcbench.NewValidator[rpcbench.User]()
	direct := make([]rpcbench.Call, len(calls))
	for i := range direct {
		u := users.Sample(i, 0)
		direct[i] = func(context.Context) error { return check(&u) }
	}
	count := func(calls []rpcbench.Call) (client, server float64, err error) {
		if err := goRound(calls, 1)(); err != nil {
			return 0, 0, err
		}
		profile, err := profiled(goRound(calls, 4))
		inClient, inServer := sides(profile.Objects("github.com/go-playground/validator/v10"))
		return float64(inClient), float64(inServer), err
	}
	once, _, directErr := count(direct)
	inClient, inServer, err := count(calls)
	switch times := (inClient + inServer) / once; {
	case directErr != nil || err != nil:
		return errors.Join(directErr, err)
	case inClient > 0.5*once:
		return errors.New("the client validates the user: that is the server's work, and is billed to this stack alone")
	case times < 0.5 || times > 1.5:
		return fmt.Errorf("a call validates its user %.1f times: the server must do so once, with rpcbench.NewValidator", times)
	}
	return nil
}
