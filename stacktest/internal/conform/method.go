package conform

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/wire"
)

// A stack may serve a method of one's own. Checks that send users then send its samples: user i stands for call i.

// own tells whether the stack serves a method of one's own.
func (s Subject) own() bool { return s.Stack.Method != "" }

// samples are the Users of a method of one's own.
type samples struct{ rpcbench.Client }

func (c samples) PrepareUser(u rpcbench.User) (rpcbench.Call, error) { return c.Prepare(index(u), 0) }

// index is of the call that a user stands for.
func index(u rpcbench.User) (i int) {
	must(second(fmt.Sscanf(u.Name, "Anna%d", &i)), "%q stands for no call", u.Name)
	return i
}

func second[T any](_ T, err error) error { return err }

func (c samples) CreateUser(ctx context.Context, u rpcbench.User) (r rpcbench.Response, err error) {
	call, err := c.PrepareUser(u)
	if err == nil {
		err = call(ctx)
	}
	return *rpcbench.Answer(&u), err
}

// encoded returns the bodies of call i.
func (f *session) encoded(i int) (request, reply []byte) {
	request, reply, err := f.Stack.Codec.Sorted(i)
	must(err, "encode call %d", i)
	return request, reply
}

// ownTraffic checks that each body on the wire has the bytes that the codec makes of the samples. The entries of a map
// may come in another order, so bytes are counted.
func ownTraffic(f *session) {
	for i, call := range f.round(0) {
		sent, received, err := f.record(context.Background(), call)
		must(err, "call %d", i)
		f.connected(0)
		failIf(len(sent) == 0 || len(received) == 0, "call %d sent %d bytes and received %d: the call did not cross the connection",
			i, len(sent), len(received))
		requests, replies := f.messages()
		if len(requests) == 0 {
			continue // over TLS, or no HTTP
		}
		request, reply := f.encoded(i)
		sameBytes(requests[len(requests)-1], request, "request", i)
		sameBytes(replies[len(replies)-1], reply, "reply", i)
	}
}

func sameBytes(m wire.Message, want []byte, what string, i int) {
	body := m.Body
	if isGRPC(m) && len(body) >= 5 {
		body = body[5:] // the length and a flag
	}
	counts := [256]int{}
	for _, b := range body {
		counts[b]++
	}
	for _, b := range want {
		counts[b]--
	}
	failIf(counts != [256]int{}, "the %s of call %d is not what the declared codec makes of the sample: %d bytes on the wire, %d encoded",
		what, i, len(body), len(want))
}

// mark returns bytes of request i that tell it from the request after it, where any do.
func (f *session) mark(i int) []byte {
	request, _ := f.encoded(i)
	next, _ := f.encoded(i + 1)
	at := len(request) / 2
	for j := range min(len(request), len(next)) {
		if request[j] != next[j] {
			at = j
			break
		}
	}
	return request[max(0, at-7):min(len(request), at+1)]
}

// ofCodec is what the declared codec allocates for the samples of a round, outside of calls: bytes that encoding and
// decoding them takes, and the fewer objects of decoding requests and decoding replies.
type ofCodec struct {
	encoded, decoded map[string]int64 // of requests and of replies
	objects          int64
}

func (f *session) codec() (c ofCodec) {
	library := f.Stack.Traits.Codec
	var encode, requests, replies []rpcbench.Call
	lengths := [2]int64{}
	for i := range corpus.Round {
		request, reply := f.encoded(i)
		lengths[0], lengths[1] = lengths[0]+int64(len(request)), lengths[1]+int64(len(reply))
		encode = append(encode, func(context.Context) error { _, _, err := f.Stack.Codec.Encode(i); return err })
		requests = append(requests, func(context.Context) error { return f.Stack.Codec.DecodeRequest(request) })
		replies = append(replies, func(context.Context) error { return f.Stack.Codec.DecodeReply(reply) })
	}
	must(goRound(append(requests, replies...), 1), "decode a sample")
	ofRequests, ofReplies := profiled(requests, 1), profiled(replies, 1)
	encoded, _ := sides(profiled(encode, 1).Bytes(library))
	inRequests, _ := sides(ofRequests.Bytes(library))
	inReplies, _ := sides(ofReplies.Bytes(library))
	c.decoded = map[string]int64{"requests": inRequests, "replies": inReplies}
	all := max(1, lengths[0]+lengths[1])
	c.encoded = map[string]int64{"requests": encoded * lengths[0] / all, "replies": encoded * lengths[1] / all}
	fewest, _ := sides(ofRequests.Objects(library))
	more, _ := sides(ofReplies.Objects(library))
	c.objects = min(fewest, more)
	for _, rival := range f.s.rivals() {
		objects, _ := sides(ofReplies.Objects(rival))
		failIf(objects > 0,
			"to decode %d replies, functions of %s allocated %d objects; the declared codec is %s", corpus.Round, rival, objects, library)
	}
	none := c.objects < corpus.Round
	skipIf(none && library == "google.golang.org/protobuf", "decoding the samples allocates nothing")
	failIf(none, "to decode %d requests and replies, functions of %s, the declared codec, allocated %d objects: "+
		"something is kept, or another library decodes", corpus.Round, library, c.objects)
	return c
}

// ownRepeats compares what the codec allocates in calls with what it allocates for the samples outside of calls. Less
// would be something that is kept from call to call. RPC libraries encode into pooled buffers, which count nothing.
func ownRepeats(f *session) {
	alone := f.codec()
	codec, calls := f.Stack.Traits.Codec, f.round(0)
	must(goRound(calls, 4), "call")
	prepared := profiled([]rpcbench.Call{func(context.Context) error { f.round(0); return nil }}, 1)
	inPrepare, _ := sides(prepared.Bytes(codec))
	failIf(inPrepare > 0, "in %d calls of Prepare %s allocated %d bytes: it encodes what each Call must encode",
		corpus.Round, codec, inPrepare)
	inClient, inServer := sides(profiled(calls, 1).Bytes(codec))
	for _, side := range []struct {
		name, encodes, decodes string
		allocated              int64
	}{{"client", "requests", "replies", inClient}, {"server", "replies", "requests", inServer}} {
		least := alone.decoded[side.decodes] / 2
		if slices.Equal(f.Stack.Traits.ClientLibraries, []string{"net/http"}) {
			least += alone.encoded[side.encodes] * 9 / 10
		}
		failIf(side.allocated < least, "in %d calls %s allocated %d bytes in the %s, and decoding the %s takes %d, encoding the %s %d: "+
			"something is kept from call to call", corpus.Round, codec, side.allocated, side.name,
			side.decodes, alone.decoded[side.decodes], side.encodes, alone.encoded[side.encodes])
	}
}

// ownChanges lists changes of the reply to call 2: parts of the reply to call 1 where they differ, and letters changed
// in the middle.
func (f *session) ownChanges() (all []change) {
	_, before := f.encoded(1)
	_, reply := f.encoded(2)
	add := func(held string, from, to int, with []byte) {
		if bytes.Count(reply, reply[from:to]) == 1 {
			all = append(all, replaced(held, string(reply[from:to]), string(with)))
		}
	}
	const part = 8
	for i := 0; len(before) == len(reply) && i < len(reply) && len(all) < 3; i++ {
		if from, to := max(0, i-part), min(len(reply), i+1); before[i] != reply[i] {
			add(fmt.Sprintf("byte %d of the reply before", i), from, to, append(bytes.Clone(reply[from:i]), before[i]))
			i += max(1, len(reply)/4)
		}
	}
	for i := len(reply) / 2; i < len(reply)-part; i++ {
		word := reply[i : i+part]
		if len(all) > 3 || bytes.ContainsFunc(word, func(r rune) bool { return r < '0' || r > 'z' }) {
			continue
		}
		changed := bytes.Clone(word)
		if changed[part-1]++; changed[part-1] < 'z' {
			add("one changed letter", i, i+part, changed)
		}
	}
	return all
}
