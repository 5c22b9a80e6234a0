package conform

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/allocproof"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/environ"
)

// rivals are the libraries that encode and decode somewhere in the line-up. While a stack runs, only its own may be
// seen.
func rivals() []string {
	return []string{
		"encoding/json", "encoding/json/v2", "encoding/xml", "encoding/gob",
		"github.com/json-iterator/go", "github.com/goccy/go-json",
		"google.golang.org/protobuf", "github.com/planetscale/vtprotobuf",
		"github.com/vmihailenco/msgpack", "github.com/tinylib/msgp",
	}
}

// profiled makes the calls in turn, so many times, with every allocation recorded.
func profiled(calls []rpcbench.Call, times int) allocproof.Profile {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))  // each P has pools of its own
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection makes objects beneath any function
	var callErr error
	profile, err := allocproof.Run(func() { callErr = goRound(calls, times) })
	return try(profile, errors.Join(callErr, err))
}

// sides splits amounts by goroutine into the caller's and all others'.
func sides(roots map[string]int64) (client, elsewhere int64) {
	for _, amount := range roots {
		elsewhere += amount
	}
	return roots[allocproof.Client], elsewhere - roots[allocproof.Client]
}

// codecRan proves decoding on both sides, and encoding where the encoder allocates. For encoding/json it also proves
// the engine of this build.
func codecRan(f *session) {
	const rounds = 4
	calls := f.round(1000)
	must(goRound(calls, 1), "call")
	profile := profiled(calls, rounds)
	own := []string{f.Stack.Traits.Codec}
	if own[0] == "encoding/json" {
		own = append(own, environ.JSONEngine())
	}
	ops := int64(rounds * len(calls))
	for _, library := range own {
		busy, roots := 0, profile.Objects(library)
		for _, objects := range roots {
			if objects >= ops {
				busy++
			}
		}
		failIf(busy < 2, "in %d calls functions of %s, the declared codec, allocated these objects by goroutine: %v; "+
			"at least one per call is expected in the client's and in the server's; seen: %v",
			ops, library, roots, profile.Packages())
	}
	transportsRan(f.Stack.Traits, profile, ops)
	for _, rival := range rivals() {
		if slices.ContainsFunc(own, func(path string) bool {
			return allocproof.Within(path, rival) || allocproof.Within(rival, path)
		}) {
			continue
		}
		// grpc-go's ServeHTTP clones its status, a protobuf message, at the end of each call: that is no codec at work.
		roots := profile.Objects(rival, "google.golang.org/grpc/internal/status")
		failIf(len(roots) > 0, "functions of %s allocated these objects by goroutine: %v; the declared codec is %s",
			rival, roots, own[0])
	}
}

// transportsRan proves who moves the bytes. Where client and server are declared to be of one library, its own
// background goroutines may stand in for the server.
func transportsRan(traits rpcbench.Traits, profile allocproof.Profile, ops int64) {
	for _, library := range []string{"net/http", "google.golang.org/grpc", "connectrpc.com/connect"} {
		client, elsewhere := sides(profile.Objects(library))
		inClient, inServer := slices.Contains(traits.Client, library), slices.Contains(traits.Server, library)
		failIf(inClient && client < ops || !inClient && client > 0 ||
			inServer && elsewhere < ops || !inServer && !inClient && elsewhere > 0,
			"in %d calls functions of %s allocated %d objects on the caller's goroutine and %d on others; "+
				"Traits.Client is %q, Traits.Server %q", ops, library, client, elsewhere, traits.Client, traits.Server)
	}
}

// repeats compares what the declared codec allocates for calls that are repeated, for calls of users never seen, and in
// Prepare. So it finds bytes that Prepare has encoded, and a cache of requests, replies or values by their content.
func repeats(f *session) {
	const (
		times   = 5
		fresh   = times * corpus.Round // users never seen; all are of one length
		payload = 4000                 // bytes of each user: encoding and decoding allocate at least as much
		half    = fresh * payload / 2
	)
	skipIf(strings.Contains(environ.Build(), "-race"), "the race detector drops objects from pools at random")
	codec := f.Stack.Traits.Codec
	calls := f.round(payload)
	var creates, unseen []rpcbench.Call
	for i := range calls {
		creates = append(creates, f.create(corpus.Sample(i, payload)))
	}
	must(goRound(calls, 4), "call")
	again := profiled(calls, times)
	for attempt := 1; ; attempt++ { // what libraries pool comes and goes
		// Without what the transport's library allocates beneath generated stubs, which may belong to the codec's path.
		ofCall, _ := sides(again.Objects(codec, f.Stack.Traits.Client...))
		ofCreateUser, _ := sides(profiled(creates, times).Objects(codec, f.Stack.Traits.Client...))
		if ofCreateUser-ofCall < fresh*3/4 { // strings of less than 16 bytes share blocks, and count by chance
			break
		}
		failIf(attempt == 3, "in %d calls %s allocated %d objects in the client for Call, and %d for CreateUser: "+
			"the Call keeps something, such as the value that it decodes into", fresh, codec, ofCall, ofCreateUser)
		again = profiled(calls, times)
	}
	prepared := profiled([]rpcbench.Call{func(context.Context) error {
		for i := range fresh {
			unseen = append(unseen, f.prepare(corpus.Sample(corpus.Round+i, payload)))
		}
		return nil
	}}, 1)
	inClient, _ := sides(prepared.Bytes(codec))
	failIf(inClient > half, "in %d calls of Prepare %s allocated %d bytes: it encodes what each call has to",
		fresh, codec, inClient)
	for root, bytes := range profiled(unseen, 1).Bytes(codec) {
		// Less is the library's own: encoding/json of Go 1.27 keeps short strings that it has seen.
		before := again.Bytes(codec)[root]
		failIf(bytes-before > half, "in %d calls %s allocated %d bytes for users never seen, and %d for users sent "+
			"before, on the goroutine of %s: something is kept from call to call", fresh, codec, bytes, before, root)
	}
}

// validation counts uses of the validator by its objects: it allocates for each email that it parses.
func validation(f *session) {
	check := rpcbench.NewValidator[rpcbench.User]()
	var direct []rpcbench.Call
	for i := range corpus.Round {
		u := corpus.Sample(i, 0)
		direct = append(direct, func(context.Context) error { return check(&u) })
	}
	count := func(calls []rpcbench.Call) (client, server float64) {
		must(goRound(calls, 1), "call")
		inClient, inServer := sides(profiled(calls, 4).Objects("github.com/go-playground/validator/v10"))
		return float64(inClient), float64(inServer)
	}
	once, _ := count(direct)
	inClient, inServer := count(f.round(0))
	times := (inClient + inServer) / once
	failIf(inClient > 0.5*once, "the client validates the user, which is the server's work")
	failIf(times < 0.5 || times > 1.5,
		"a call validates its user %.1f times: the server must do so once, with rpcbench.NewValidator", times)
}
