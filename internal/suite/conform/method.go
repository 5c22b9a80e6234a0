package conform

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/environ"
	"github.com/rpcbench/rpcbench/internal/suite/allocproof"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
	"github.com/rpcbench/rpcbench/internal/suite/wire"
)

// own tells whether the stack serves a method of one's own. Only checks that differ in kind ask.
func (s Subject) own() bool { return s.Stack.Serves != "" }

// An api makes calls by their index: create-user's of user i, or those of a method of one's own of sample i.
type api interface {
	prepare(i, payload int) (rpcbench.Call, error) // the user has a payload of so many bytes; a sample is as it is
	anew(i, payload int) rpcbench.Call             // makes the call with nothing prepared, as CreateUser does
	mark(i int) []byte                             // bytes by which request i can be told from others
}

// apiOf is that of a client of the stack.
func (s Subject) apiOf(c rpcbench.Client) api {
	if s.own() {
		return ownMethod{c.(rpcbench.MethodClient)}
	}
	return createUser{c.(rpcbench.Users)}
}

type createUser struct{ rpcbench.Users }

func (c createUser) prepare(i, payload int) (rpcbench.Call, error) {
	return c.PrepareUser(rpcbench.SampleUser(i, payload))
}

func (c createUser) anew(i, payload int) rpcbench.Call {
	return c.create(rpcbench.SampleUser(i, payload))
}

func (c createUser) mark(i int) []byte { return []byte(rpcbench.SampleUser(i, 0).Name) }

func (c createUser) create(u rpcbench.User) rpcbench.Call {
	return func(ctx context.Context) error {
		reply, err := c.CreateUser(ctx, u)
		if err != nil {
			return err
		}
		return rpcbench.CheckUser(&u, &reply)
	}
}

type ownMethod struct{ rpcbench.MethodClient }

func (c ownMethod) prepare(i, _ int) (rpcbench.Call, error) { return c.Prepare(i) }

func (c ownMethod) anew(i, _ int) rpcbench.Call {
	return func(ctx context.Context) error {
		call, err := c.Prepare(i)
		if err == nil {
			err = call(ctx)
		}
		return err
	}
}

// handling is a client of a method with a Handle.
type handling interface {
	Again(i int) ([]byte, error) // encodes what Handle answers now, with the entries of maps in one order
}

// varies says whether Handle answers otherwise than the replies that are compared with.
func (f *session) varies() bool {
	client, handles := f.Client.(handling)
	for i := 0; handles && i < corpus.Round; i++ {
		if again, err := client.Again(i); err == nil && !bytes.Equal(again, try(f.replies.Sorted(i))) {
			return true
		}
	}
	return false
}

const tooSmall = "bytes of a request so small can't be told from frames of HTTP/2"

// tiny says whether a marker of the request would be so small.
func (s Subject) tiny() (is bool) {
	if s.own() && !s.TLS && s.Stack.Traits.HTTP == "2" {
		s.with(rpcbench.Config{}, func(f *session) { is = len(try(f.requests.Sorted(1))) < 4 })
	}
	return is
}

// encoded returns the bodies of call i, with the entries of maps in one order.
func (f *session) encoded(i int) (request, reply []byte) {
	return try(f.requests.Sorted(i)), try(f.replies.Sorted(i))
}

// ownTraffic checks that each body on the wire has the bytes that the codec makes of the samples. The entries of a map
// may come in another order, so bytes are counted.
func ownTraffic(f *session) {
	vary := false
	for i, call := range f.round(0) {
		sent, received, err := f.record(context.Background(), call)
		must(err, "call %d", i)
		f.connected(0)
		failIf(len(sent) == 0 || len(received) == 0,
			"call %d sent %d bytes and received %d: the call did not cross the connection", i, len(sent), len(received))
		if i == 0 {
			f.each("call", call)
		}
		requests, replies := f.messages()
		if len(requests) == 0 {
			continue // over TLS, or no HTTP
		}
		request, reply := f.encoded(i)
		sameBytes(requests[len(requests)-1], request, "request", i)
		err = ended(func() { sameBytes(replies[len(replies)-1], reply, "reply", i) })
		vary = vary || err != nil && f.varies()
		failIf(err != nil && !vary, "%w", err)
	}
	skipIf(vary, "the answers of Handle vary, so the bytes of replies can't be foretold. Those of requests were checked")
}

func sameBytes(m wire.Message, want []byte, what string, i int) {
	body := m.Body
	if isGRPC(m) && len(body) >= 5 {
		body = body[5:] // the length and a flag
	}
	sorted := func(b []byte) []byte { return slices.Sorted(slices.Values(b)) }
	failIf(!bytes.Equal(sorted(body), sorted(want)),
		"the %s of call %d is not what the declared codec makes of the sample: %d bytes on the wire, %d encoded", what, i,
		len(body), len(want))
}

// mark returns bytes about the first that tells request i from the one after it, where any does. They stand together
// however the entries of maps come.
func (c ownMethod) mark(i int) []byte {
	requests, _ := c.Messages()
	request, next := try(requests.Sorted(i)), try(requests.Sorted(i+1))
	at := len(request) / 2
	for j := range min(len(request), len(next)) {
		if request[j] != next[j] {
			at = j
			break
		}
	}
	var sent [][]byte
	varies := func(b []byte) bool { return !bytes.Equal(b, sent[0]) }
	// A map's entries come in the order that they lie in, from any of them on: two neighbours are parted seldom.
	for n := 0; n < corpus.Round || n < 20*corpus.Round && slices.ContainsFunc(sent, varies); n++ {
		sent = append(sent, try(requests.Encode(i)))
	}
	for size := min(8, len(request)); size > 0; size-- {
		for k := range request {
			from := (at + k) % len(request)
			piece := request[max(0, from-size+1) : from+1]
			lacks := func(b []byte) bool { return !bytes.Contains(b, piece) }
			if len(piece) == size && !slices.ContainsFunc(sent, lacks) {
				return piece
			}
		}
	}
	return nil
}

// outside is a round's requests or replies, encoded and decoded outside of calls.
type outside struct {
	encode, decode []rpcbench.Call
	seen           []rpcbench.Call // decode, of which a profile has what it has wherever samples are decoded
	nothing        bool            // decoding allocates nothing
}

func (f *session) outside(m rpcbench.Messages) (o outside) {
	var each []rpcbench.Call // decode, of which a profile has something if anything is allocated
	for i := range corpus.Round {
		data := try(m.Encode(i))
		decode := func(context.Context) error { return m.Decode(data) }
		o.encode = append(o.encode, func(context.Context) error { _, err := m.Encode(i); return err })
		o.decode, o.seen = append(o.decode, decode), append(o.seen, leaving(allocproof.Most, decode))
		each = append(each, leaving(0, decode))
	}
	own := f.Stack.Traits.Codec
	first, _ := sides(f.profiled(each, 1).Objects(own)) // which a stack that keeps values decodes too
	must(goRound(slices.Concat(o.encode, o.decode), 1), "encode and decode a sample")
	decoding := f.profiled(each, 1)
	objects, _ := sides(decoding.Objects(own))
	for _, rival := range f.s.rivals() {
		objects, _ := sides(decoding.Objects(rival))
		failIf(objects > 0, "to decode %d samples, functions of %s allocated %d objects; the declared codec is %s",
			corpus.Round, rival, objects, own)
	}
	none := objects < corpus.Round/4 // a few may be of a pool
	o.nothing = none && first < corpus.Round/2
	failIf(none && !o.nothing, "to decode %d samples, functions of %s, the declared codec, allocated %d objects: "+
		"something is kept, or another library decodes", corpus.Round, own, objects)
	return o
}

// leaving leaves so much room for the small objects of a call.
func leaving(room int, call rpcbench.Call) rpcbench.Call {
	return func(ctx context.Context) error { allocproof.Room(room); return call(ctx) }
}

const stray = 16 * corpus.Round // bytes: a profile may have a few objects of others

// ofARound returns what is allocated in one round of calls: what two rounds take more than one. The first call fills
// pools, which profiled empties, and does so on either side.
func (f *session) ofARound(calls []rpcbench.Call, amount func(allocproof.Profile) map[string]int64,
) (client, elsewhere int64) {
	profiles := f.profiledEach(func() error { return goRound(calls, 2) }, func() error { return goRound(calls, 1) })
	client2, elsewhere2 := sides(amount(profiles[0]))
	client, elsewhere = sides(amount(profiles[1]))
	return client2 - client, elsewhere2 - elsewhere
}

// ownCodecRan checks that the declared codec allocated in rounds of calls what it surely allocates to decode the
// samples: replies on the caller's goroutine, requests on others. It tells whether that is nothing.
func (f *session) ownCodecRan(calls allocproof.Profile, rounds int64) (blind bool) {
	blind = true
	requests, replies := f.outside(f.requests), f.outside(f.replies)
	for _, library := range f.s.libraries() {
		least := func(o outside) int64 {
			objects, _ := f.ofARound(o.seen, func(p allocproof.Profile) map[string]int64 { return p.Objects(library) })
			return rounds * max(0, min(objects, corpus.Round)-corpus.Round/4) // a few may be of a pool
		}
		ofReplies, ofRequests := least(replies), least(requests)
		blind = blind && ofReplies+ofRequests == 0
		inClient, inServer := sides(calls.Objects(library))
		failIf(inClient < ofReplies || inServer < ofRequests,
			"in %d calls functions of %s, the declared codec, allocated %d objects on the caller's goroutine and %d on others; "+
				"at least %d and %d are expected, to decode replies and requests; seen: %v", rounds*corpus.Round, library,
			inClient, inServer, ofReplies, ofRequests, calls.Packages())
	}
	return blind
}

// ownRepeats compares what the codec allocates in calls with what it allocates for the samples outside of calls. Less
// would be something that is kept from call to call. RPC libraries encode into pooled buffers, which count nothing.
func ownRepeats(f *session) {
	requests, replies := f.outside(f.requests), f.outside(f.replies)
	skipIf(requests.nothing || replies.nothing,
		"decoding the samples allocates nothing, so what is kept from call to call can't be told")
	codec, calls := f.Stack.Traits.Codec, f.round(0)
	must(goRound(calls, 4), "call")
	prepared := f.profiled([]rpcbench.Call{func(context.Context) error { f.round(0); return nil }}, 1)
	inPrepare, _ := sides(prepared.Bytes(codec))
	failIf(inPrepare > 0, "in %d calls of Prepare %s allocated %d bytes: it encodes what each Call must encode",
		corpus.Round, codec, inPrepare)
	whole := func(p allocproof.Profile) map[string]int64 { return p.Whole(codec) }
	inClient, inServer := f.ofARound(calls, whole)
	blind := false
	for _, side := range []struct {
		name             string
		allocated        int64
		encodes, decodes outside
	}{{"client", inClient, requests, replies}, {"server", inServer, replies, requests}} {
		encoded, _ := f.ofARound(side.encodes.encode, whole)
		decoded, _ := f.ofARound(side.decodes.decode, whole)
		least := decoded/2 - stray
		if slices.Equal(f.Stack.Traits.ClientLibraries, []string{"net/http"}) {
			least += encoded * 9 / 10
		}
		blind = blind || decoded < stray
		failIf(side.allocated < least,
			"in %d calls %s allocated %d bytes in the %s, where decoding takes %d and encoding %d: "+
				"something is kept from call to call",
			corpus.Round, codec, side.allocated, side.name, decoded, encoded)
	}
	skipIf(blind, "a sample decodes into so few bytes that what is kept from call to call can't be told")
}

// keptRequests checks that a client encodes in each call: every reply is broken at its first byte, so what the codec
// then allocates in the client is of encoding. Beside decoding, which may allocate more, a kept request is not seen.
func keptRequests(f *session) {
	skipIf(strings.Contains(environ.Build(), "-race"), "the race detector drops objects from pools at random")
	if !f.s.own() || !slices.Equal(f.Stack.Traits.ClientLibraries, []string{"net/http"}) ||
		f.Stack.Traits.Compression != "" {
		return // RPC libraries encode into pooled buffers
	}
	var broken, refused, encode []rpcbench.Call
	calls := f.round(0)
	for i, call := range calls {
		must(call(context.Background()), "call %d", i)
		_, replies := f.messages()
		if len(replies) == 0 || len(replies[len(replies)-1].Body) == 0 {
			return
		}
		body := replies[len(replies)-1].Body
		other := append([]byte{7}, body[1:]...) // no value of JSON, and no field of protobuf
		filter := tap.Replace(body, other)
		encode = append(encode, func(context.Context) error { _, err := f.requests.Encode(i); return err })
		refused = append(refused, func(context.Context) error { _ = f.replies.Decode(other); return nil })
		broken = append(broken, func(ctx context.Context) error {
			f.tap.SetFilter(filter)
			defer f.tap.SetFilter(nil)
			skipIf(call(ctx) == nil, "a reply that is broken at its first byte is taken: its bytes differ from call to call")
			return nil
		})
	}
	request, reply := f.encoded(0) // all that was recorded is read for each reply above, so these calls come after them
	must(goRound(calls, max(4, min(often, 1<<20/(1+len(request)+len(reply))))), "call")
	whole := func(p allocproof.Profile) map[string]int64 { return p.Whole(f.Stack.Traits.Codec) }
	inClient, _ := f.ofARound(broken, whole)
	refusing, _ := f.ofARound(refused, whole)
	encoded, _ := f.ofARound(encode, whole)
	failIf(inClient < refusing*3/4+encoded*9/10-stray,
		"in %d calls with broken replies %s allocated %d bytes in the client, where encoding takes %d and refusing a "+
			"reply %d: a request is kept from call to call", corpus.Round, f.Stack.Traits.Codec, inClient, encoded, refusing)
}

// ownChanges lists changes of the reply to call 2: letters and digits as the reply to call 1 has them, and letters
// changed in the middle. They stand in one value, since entries of a map come in any order.
func (f *session) ownChanges() (all []change) {
	_, before := f.encoded(1)
	_, reply := f.encoded(2)
	add := func(held string, from, to int, with []byte) {
		if bytes.Count(reply, reply[from:to]) == 1 {
			all = append(all, replaced(held, string(reply[from:to]), string(with)))
		}
	}
	word := func(b byte) bool { return '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' }
	const part = 8
	for i := 0; len(before) == len(reply) && i < len(reply) && len(all) < 3; i++ {
		if before[i] == reply[i] || !word(reply[i]) {
			continue
		}
		from := i
		for from > 0 && i-from < part && word(reply[from-1]) {
			from--
		}
		add(fmt.Sprintf("byte %d of the reply before", i), from, i+1, append(bytes.Clone(reply[from:i]), before[i]))
		i += max(1, len(reply)/4)
	}
	for i := len(reply) / 2; i < len(reply)-part && len(all) < 4; i++ {
		piece := reply[i : i+part]
		if changed := bytes.Clone(piece); !slices.ContainsFunc(piece, func(b byte) bool { return !word(b) }) {
			if changed[part-1]++; word(changed[part-1]) {
				add("one changed letter", i, i+part, changed)
			}
		}
	}
	for range corpus.Round { // entries of a map come in any order: what may stand across two of them can't be changed
		_, received, err := f.record(context.Background(), f.call(2, 0))
		must(err, "a call whose reply is not changed")
		all = slices.DeleteFunc(all, func(c change) bool { return !bytes.Contains(received, c.old) })
	}
	return all
}
