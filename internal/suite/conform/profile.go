package conform

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/suite/allocproof"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
)

// libraries are those of the declared codec: for encoding/json also the engine of this build.
func (s Subject) libraries() []string {
	if s.Stack.Traits.Codec == "encoding/json" {
		return []string{s.Stack.Traits.Codec, environ.JSONEngine()}
	}
	return []string{s.Stack.Traits.Codec}
}

// rivals lists the libraries that encode and decode in other stacks. While a stack runs, only its own may allocate.
func (s Subject) rivals() []string {
	own := func(library string) bool {
		return slices.ContainsFunc(s.libraries(), func(path string) bool {
			return allocproof.Within(path, library) || allocproof.Within(library, path)
		})
	}
	return slices.DeleteFunc([]string{
		"encoding/json", "encoding/json/v2", "encoding/xml", "encoding/gob",
		"github.com/json-iterator/go", "github.com/goccy/go-json",
		"google.golang.org/protobuf", "github.com/planetscale/vtprotobuf",
		"github.com/vmihailenco/msgpack", "github.com/vmihailenco/msgpack/v4", "github.com/vmihailenco/msgpack/v5",
		"github.com/tinylib/msgp", "github.com/bytedance/sonic", "github.com/fxamacker/cbor", "github.com/fxamacker/cbor/v2",
	}, own)
}

// profiled makes all calls in turn, several times, and records every allocation.
func (f *session) profiled(calls []rpcbench.Call, times int) allocproof.Profile {
	return f.profiledEach(func() error { return goRound(calls, times) })[0]
}

// profiledEach records every allocation of each function, one after the other.
func (f *session) profiledEach(rounds ...func() error) []allocproof.Profile {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // with several Ps, pools would fill several times
	var callErr error
	var without []string
	_, handles := f.Client.(handling)
	if handles {
		without = []string{binding.Handled()}
	}
	var fns []func()
	for _, round := range rounds {
		fns = append(fns, func() { callErr = cmp.Or(callErr, round()) })
	}
	profiles, err := allocproof.Runs(without, fns...)
	if t := f.Stack.Traits; handles { // whose handler may have goroutines of its own
		for i, p := range profiles {
			profiles[i] = p.Beneath(slices.Concat(t.ClientLibraries, t.ServerLibraries)...)
		}
	}
	skipIf(f.s.own() && errors.Is(err, allocproof.ErrDeep), "samples are nested so deeply that profiles cut stacks off")
	return try(profiles, errors.Join(callErr, err))
}

// sides splits amounts into those of the caller's goroutine and those of all others.
func sides(roots map[string]int64) (client, elsewhere int64) {
	for _, amount := range roots {
		elsewhere += amount
	}
	return roots[allocproof.Client], elsewhere - roots[allocproof.Client]
}

// codecRan checks that the declared codec decoded on both sides, and encoded where its encoder allocates. For
// encoding/json it also checks the engine of this build.
func codecRan(f *session) {
	const rounds = 4
	calls := f.round(1000)
	must(goRound(calls, 1), "call")
	for i, call := range calls { // or each call would hide the same small objects
		calls[i] = leaving(i%(allocproof.Most+1), call)
	}
	profile := f.profiled(calls, rounds)
	ops, blind := int64(rounds*len(calls)), false
	if f.s.own() { // its messages may be too small to count their objects
		blind = f.ownCodecRan(profile, rounds)
	} else {
		f.codecIn(profile, ops)
	}
	f.noRivalIn(profile)
	err := ended(func() { transportsRan(f.Stack.Traits, profile, ops) })
	for range 2 {
		if errors.Is(err, errStray) {
			err = ended(func() { transportsRan(f.Stack.Traits, f.profiled(calls, rounds), ops) })
		}
	}
	failIf(err != nil, "%w", err)
	skipIf(blind, "neither message has an object of 16 bytes, and the profile sees one of many smaller ones: "+
		"that no other codec ran was checked, and not that the declared one did")
}

// codecIn checks a profile of so many calls for the declared codec.
func (f *session) codecIn(profile allocproof.Profile, ops int64) {
	for _, library := range f.s.libraries() {
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
}

// noRivalIn checks a profile for all other codecs.
func (f *session) noRivalIn(profile allocproof.Profile) {
	for _, rival := range f.s.rivals() {
		// grpc-go's ServeHTTP clones its status, a protobuf message, after each call, which is no encoding. grpc-gateway
		// looks for the end of a request with encoding/json, and decodes it with protojson.
		roots := profile.Objects(rival,
			"google.golang.org/grpc/internal/status", "github.com/grpc-ecosystem/grpc-gateway/v2/runtime")
		failIf(len(roots) > 0, "functions of %s allocated these objects by goroutine: %v; the declared codec is %s",
			rival, roots, f.Stack.Traits.Codec)
	}
}

// errStray marks the error of a library of which no call allocated: net/http keeps a connection that its server has
// refused for half a second, and a goroutine of another fixture with it.
var errStray = errors.New(" (fewer than one per call)")

// transportsRan checks which libraries moved the bytes. If client and server declare the same library, its background
// goroutines count for either.
func transportsRan(traits rpcbench.Traits, profile allocproof.Profile, ops int64) {
	for _, library := range []string{"net/http", "google.golang.org/grpc", "connectrpc.com/connect",
		"connectrpc.com/connect/v2", "storj.io/drpc"} {
		client, elsewhere := sides(profile.Objects(library))
		inClient, inServer := slices.Contains(traits.ClientLibraries, library),
			slices.Contains(traits.ServerLibraries, library)
		lacks, strange := inClient && client < ops || inServer && elsewhere < ops, !inServer && !inClient && elsewhere > 0
		stray := errors.New("")
		if strange && client == 0 && elsewhere < ops {
			stray = errStray
		}
		failIf(lacks || strange || !inClient && client > 0,
			"in %d calls functions of %s allocated %d objects on the caller's goroutine and %d on others; "+
				"Traits.ClientLibraries is %q, Traits.ServerLibraries %q%w", ops, library, client, elsewhere,
			traits.ClientLibraries, traits.ServerLibraries, stray)
	}
}

// often is how many times a Call is made before it is compared, so that what it keeps after a hundred times is seen.
const often = 104

const keptForUsers = "in %d calls %s allocated %d bytes for users never seen, and %d for users sent before, on the " +
	"goroutine of %s: something is kept from call to call"

// repeats compares what the declared codec allocates in repeated calls, in calls with new users, and in PrepareUser. It
// finds bytes that PrepareUser has encoded, and caches of requests, replies or values.
func repeats(f *session) {
	const (
		few     = 2           // users that are sent often: each call costs time
		times   = 20          // of each
		fresh   = few * times // new users, all of one length
		payload = 4000        // bytes of each user: encoding and decoding allocate at least as much
		half    = fresh * payload / 2
	)
	skipIf(strings.Contains(environ.Build(), "-race"), "the race detector drops objects from pools at random")
	if f.s.own() {
		ownRepeats(f)
		return
	}
	codec := f.Stack.Traits.Codec
	var calls, creates, unseen []rpcbench.Call
	for i := range few {
		u := rpcbench.SampleUser(i, payload)
		calls, creates = append(calls, f.prepare(u)), append(creates, f.create(u))
	}
	must(goRound(calls, often), "call")
	profiles := f.profiledEach(func() error {
		for i := range fresh {
			unseen = append(unseen, f.prepare(rpcbench.SampleUser(corpus.Round+i, payload)))
		}
		return nil
	}, func() error { return goRound(calls, times) }, func() error { return goRound(creates, times) },
		func() error { return goRound(unseen, 1) })
	again, byCreateUser, anew := profiles[1], profiles[2], profiles[3]
	inClient, _ := sides(profiles[0].Bytes(codec))
	failIf(inClient > half, "in %d calls of PrepareUser %s allocated %d bytes: it encodes what each Call must encode",
		fresh, codec, inClient)
	for attempt := 1; ; attempt++ { // pools of the libraries may fill meanwhile
		// Generated stubs may belong to the codec's path: leave out what the transport allocates beneath them.
		ofCall, _ := sides(again.Objects(codec, f.Stack.Traits.ClientLibraries...))
		ofCreateUser, _ := sides(byCreateUser.Objects(codec, f.Stack.Traits.ClientLibraries...))
		if ofCreateUser-ofCall < fresh*3/4 { // strings of less than 16 bytes share blocks, and count by chance
			break
		}
		failIf(attempt == 3, "in %d calls %s allocated %d objects in the client for Call, and %d for CreateUser: "+
			"the Call keeps something, such as what it has encoded or the value that it decodes into",
			fresh, codec, ofCall, ofCreateUser)
		again, byCreateUser = f.profiled(calls, times), f.profiled(creates, times)
	}
	for root, bytes := range anew.Bytes(codec) {
		// A little less is the library's own doing: encoding/json of Go 1.27 caches short strings.
		before := again.Bytes(codec)[root]
		failIf(bytes-before > half, keptForUsers, fresh, codec, bytes, before, root)
	}
}

const validatorPath = "github.com/go-playground/validator/v10"

// directly is what the validator allocates for one user, which no stack changes: once per process is enough.
var directly struct {
	sync.Mutex
	objects float64
}

// oneValidation returns that, and may take a profile.
func (f *session) oneValidation() float64 {
	directly.Lock()
	defer directly.Unlock()
	if directly.objects == 0 {
		check := rpcbench.NewUserValidator[rpcbench.User](rpcbench.ServerConfig{})
		var direct []rpcbench.Call
		for i := range corpus.Round {
			u := rpcbench.SampleUser(i, 0)
			direct = append(direct, func(context.Context) error { return check(&u) })
		}
		must(goRound(direct, 1), "validate")
		objects, _ := sides(f.profiled(direct, 4).Objects(validatorPath))
		directly.objects = float64(objects) / float64(4*len(direct))
	}
	return directly.objects
}

// validation counts how often the validator ran, by the objects that it allocates for each email.
func validation(f *session) {
	calls := f.round(0)
	must(goRound(calls, 1), "call")
	f.validatedIn(f.profiled(calls, 1), len(calls))
}

// validatedIn checks a profile of so many calls for one validation each.
func (f *session) validatedIn(profile allocproof.Profile, ops int) {
	once := float64(ops) * f.oneValidation()
	client, elsewhere := sides(profile.Objects(validatorPath))
	inClient, inServer := float64(client), float64(elsewhere)
	times := (inClient + inServer) / once
	failIf(inClient > 0.5*once, "the client validates the user, which is the server's work")
	failIf(times < 0.5 || times > 1.5,
		"a call validates its user %.1f times: the server must do so once, with rpcbench.NewUserValidator", times)
}
