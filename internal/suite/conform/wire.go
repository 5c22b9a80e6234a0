package conform

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
	"github.com/rpcbench/rpcbench/internal/suite/wire"
)

// connections makes calls with one caller, then with many, and counts connections after the fixture is closed.
func connections(s Subject) {
	for _, conns := range []int{1, 4} {
		for _, c := range []struct{ avatar, times int }{{0, 3}, {1000, 3}, {100_000, 1}} {
			if c.avatar > 0 && s.own() {
				break
			}
			s.with(rpcbench.Config{Conns: conns}, func(f *session) {
				host, _, err := net.SplitHostPort(f.Addr)
				failIf(err != nil || !net.ParseIP(host).IsLoopback(), "%s is not on the loopback interface", f.Addr)
				f.callAtOnce(1, c.times, c.avatar)
				f.callAtOnce(3*conns, c.times, c.avatar)
				must(f.Close(), "close")
				f.connected(3 * c.avatar)
			})
		}
	}
}

func traffic(f *session) {
	if f.s.own() {
		ownTraffic(f)
		return
	}
	f.each("call", f.call(0, 0))
	if echoer, ok := f.Client.(rpcbench.Echoer); ok {
		call, err := echoer.PrepareEcho(new(rpcbench.Flex))
		if err == nil && call(context.Background()) == nil { // else the check of echoes says why
			f.each("echo", call)
		}
	}
	skipIf(f.Stack.Traits.Compression != "" && !f.s.TLS, "names can't be read off compressed bodies")
	for i, call := range f.round(0) {
		f.crosses(rpcbench.SampleUser(i, 0), call)
	}
}

// each makes a prepared call some hundred times, as measuring does. Every one must cross the connection: a Call that
// remembers its reply answers from memory after a while.
func (f *session) each(what string, call rpcbench.Call) {
	for i := range 100 + rand.IntN(200) {
		sent, received, err := f.record(context.Background(), call)
		must(err, "%s %d of one request", what, i+1)
		failIf(len(sent) == 0 || len(received) == 0, "%s %d of one request sent %d bytes and received %d: it did not "+
			"cross the connection", what, i+1, len(sent), len(received))
	}
}

// crosses makes a call of u. The name of u must be on the wire in both directions, and over TLS in neither.
func (f *session) crosses(u rpcbench.User, call rpcbench.Call) {
	sent, received, err := f.record(context.Background(), call)
	must(err, "call of %s", u.Name)
	f.connected(0)
	asked, answered := bytes.Contains(sent, []byte(u.Name)), bytes.Contains(received, []byte(u.Name))
	failIf(f.s.TLS && (asked || answered), "the user's name stands in clear on a connection that should be TLS")
	masked := f.s.masked()
	failIf(masked && asked, "the user's name can be read in a request: leave Traits.Varies out")
	failIf(len(sent) == 0 || len(received) == 0 || f.s.readable() && !((asked || masked) && answered),
		"the call of %s sent %d bytes and received %d; the name is in the request: %t, in the reply: %t: "+
			"the call did not cross the connection", u.Name, len(sent), len(received), asked, answered)
}

func oneRequest(f *session) {
	skipIf(f.Stack.Traits.HTTP == "", "messages of an unknown protocol can't be told apart")
	if f.Stack.Traits.Leased {
		f.oneMessage()
		return
	}
	for _, avatar := range []int{0, 1000} {
		before, _ := f.messages()
		must(f.both(0, avatar), "two calls of one user")
		requests, _ := f.messages()
		if f.s.TLS {
			return
		}
		failIf(len(requests)-len(before) != 2, "two calls took %d requests", len(requests)-len(before))
		neutral, prepared := f.alike(requests[len(requests)-2]), f.alike(requests[len(requests)-1])
		failIf(f.unlike(neutral, prepared), "CreateUser and PrepareUser send different requests:\n%s\n%s", neutral, prepared)
	}
}

// mostPart is how many bytes of a request may vary with Traits.Varies: a UUID or a traceparent.
const mostPart = 64

// unlike tells whether two requests for one user differ in more than Traits.Varies says.
func (f *session) unlike(a, b []byte) bool {
	if f.Stack.Traits.Varies != rpcbench.VariesNumbered {
		return !bytes.Equal(a, b)
	}
	failIf(bytes.Equal(a, b), "two requests for one user are equal: leave Traits.Varies out: %s", a)
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return max(len(a), len(b)) > mostPart
}

// alike returns a request's header and body without what differs rightly: the traceparent of a span, masked bytes,
// the length of a number, and the order in which entries of a map come.
func (f *session) alike(m wire.Message) []byte {
	if f.Stack.Traits.Traced != "" {
		m.Header = m.Header.Clone()
		m.Header.Set("Traceparent", "its span's")
	}
	if f.Stack.Traits.Varies == rpcbench.VariesNumbered {
		m.Header = m.Header.Clone()
		m.Header.Del("Content-Length")
	}
	if f.s.own() || f.s.masked() {
		return fmt.Appendf(nil, "%v, %d bytes", m.Header, len(m.Body))
	}
	return fmt.Appendf(nil, "%v %q", m.Header, m.Body)
}

// oneMessage is oneRequest for calls on leased streams: two calls one after the other are two equal messages on one
// stream, which stays open.
func (f *session) oneMessage() {
	for _, avatar := range []int{0, 1000} {
		before := f.openStreams()
		err := f.both(0, avatar)
		requests, _ := f.messages()
		after := f.openStreams()
		failIf(len(requests) > 0 || len(before) != 1 || len(after) != 1, "calls on a leased stream: before two calls %d "+
			"streams were open, then %d, and %d have ended; one must be open all the time",
			len(before), len(after), len(requests))
		sent := after[0].Body[len(before[0].Body):]
		half := len(sent) / 2
		failIf(half == 0 || !f.s.masked() && f.unlike(sent[:half], sent[half:]),
			"CreateUser and PrepareUser send different messages: %q", sent)
		must(err, "two calls of one user") // whose replies are wrong if their requests are
	}
}

func (f *session) openStreams() []wire.Message {
	sent, _ := f.bytes()
	return try(wire.Open(sent))
}

// protocol checks the declared version of HTTP. Over TLS it checks for TLS 1.3, and that the client verifies the
// server's certificate.
func protocol(f *session) {
	if state, ok := f.TLS(); f.s.TLS {
		failIf(!ok || state.Version != tls.VersionTLS13, "the connection has TLS version %#x, not 1.3", state.Version)
		version := cmp.Or(f.Stack.Traits.HTTPOverTLS, f.Stack.Traits.HTTP)
		failIf((version == "2") != (state.NegotiatedProtocol == "h2"),
			"TLS agreed on protocol %q, HTTP version %q is declared", state.NegotiatedProtocol, version)
		noRoots := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: x509.NewCertPool(), ServerName: state.ServerName}
		f.s.outOfReach("a client that does not trust the server's certificate", f.Addr, noRoots)
		return
	}
	skipIf(f.s.masked() && f.Stack.Traits.HTTP == "", "a protocol that masks its bytes may begin as HTTP does")
	requests, replies, err := wire.Read(f.bytes())
	failIf(err != nil && !errors.Is(err, wire.ErrNotHTTP), "%w", err)
	requests = append(requests, f.openStreams()...)
	version := rpcbench.HTTP("")
	if len(requests) > 0 {
		version = rpcbench.HTTP(requests[0].Version)
	}
	failIf(version != f.Stack.Traits.HTTP, "the wire has HTTP version %q, %q is declared", version, f.Stack.Traits.HTTP)
	for _, r := range replies {
		failIf(isGRPC(r) && r.Trailer.Get("Grpc-Status") != "0",
			"a reply of gRPC whose trailers are %v: they must say that the call went well", r.Trailer)
	}
}

func isGRPC(m wire.Message) bool {
	kind, _, _ := strings.Cut(m.Header.Get("Content-Type"), "+")
	return kind == "application/grpc"
}

// outOfReach checks that the first call of a client that can't reach its server fails as Unavailable. Dial may fail
// instead.
func (s Subject) outOfReach(what, addr string, config *tls.Config) {
	dial := new(net.Dialer).DialContext
	c, err := s.Stack.Dial(rpcbench.ClientConfig{Addr: addr, DialContext: dial, Conns: 1, TLS: config})
	failIf(c == nil && err == nil, "Dial returned no Client and no error")
	if err == nil {
		defer c.Close()
		var call rpcbench.Call
		if call, err = s.apiOf(c).prepare(0, 0); err == nil {
			err = call(context.Background())
		}
	}
	wantError(err, rpcbench.CodeUnavailable, "%s", what)
}

func compression(f *session) {
	if f.s.own() {
		must(f.call(0, 0)(context.Background()), "call")
	} else {
		f.payloadCosts()
	}
	requests, replies := f.messages()
	declared, asksGzip := f.Stack.Traits.Compression, f.Stack.Traits.AsksGzip
	for _, m := range requests {
		failIf(asksGzip && m.Header.Get("Accept-Encoding") != "gzip", "a request does not ask for gzip: leave AsksGzip out")
	}
	for _, m := range append(requests, replies...) {
		for _, name := range []string{"Content-Encoding", "Grpc-Encoding", "Accept-Encoding", "Grpc-Accept-Encoding"} {
			got, asks := m.Header.Get(name), strings.Contains(name, "Accept")
			failIf(got != "" && got != "identity" && !(asks && asksGzip) && (declared == "" || !asks && got != "gzip"),
				"%s is %q, compression %q is declared", name, got, declared)
		}
		if !isGRPC(m) {
			continue
		}
		failIf(try(wire.Compressed(m.Body)) && declared == "", "a gRPC message is flagged as compressed, none is declared")
	}
}

// payloadCosts checks what a user takes whose payload compresses well. Samples of a method may not.
func (f *session) payloadCosts() {
	const size = 64 << 10
	u := rpcbench.SampleUser(0, 0)
	u.Avatar = bytes.Repeat([]byte("rpcbench"), size/8)
	sent, received, err := f.record(context.Background(), f.prepare(u))
	must(err, "call")
	costs := func(bytes []byte, what string, declared bool) {
		compressed := len(bytes) < size/2
		failIf(compressed != declared || !compressed && len(bytes) < size,
			"64 kB that compress well cost %d bytes in %s; compression declared: %t", len(bytes), what, declared)
	}
	declared := f.Stack.Traits.Compression
	costs(sent, "requests", declared == "gzip")
	costs(received, "replies", declared != "")
}

const noHeaders = "the protocol has no headers"

func headers(s Subject) {
	asked := corpus.Headers()
	raw, requests := s.sentWith(asked)
	s.carried(asked, raw, requests, corpus.Round)
	_, requests = s.sentWith(nil)
	s.traced(requests)
	for i, h := range requests {
		agent, auth, trace := h.Get("User-Agent"), h.Get("Authorization"), h.Get("Traceparent")
		failIf(strings.HasPrefix(agent, asked.UserAgent) || auth != "" || trace != "" && s.Stack.Traits.Traced == "",
			"request %d has headers of Config.Headers, which is nil: %v", i, h)
	}
}

// carried checks what was sent, of so many calls or more, for the headers that were asked for.
func (s Subject) carried(asked *rpcbench.Headers, raw []byte, requests []http.Header, calls int) {
	s.traced(requests)
	next := corpus.Headers().Traceparent // starts with the first one again
	var traces []string
	for range calls + len(requests) {
		traces = append(traces, next())
	}
	for _, value := range append([]string{asked.UserAgent, asked.Authorization}, traces[:calls]...) {
		unknown := requests == nil // protocol
		failIf(unknown && !bytes.Contains(raw, []byte(value)), "%.60q of Config.Headers was not sent", value)
	}
	for i, h := range requests {
		agent, auth, own := h.Get("User-Agent"), h.Get("Authorization"), slices.Index(traces, h.Get("Traceparent"))
		if how := s.Stack.Traits.Traced; how != "" {
			failIf(own >= 0, "request %d has the traceparent of Config.Headers, and must have that of its span, "+
				"which is %s", i, how)
			traces, own = append(traces, ""), len(traces)
		}
		failIf(!strings.HasPrefix(agent, asked.UserAgent) || auth != asked.Authorization || own < 0,
			"request %d must have Config.Headers, and a traceparent made for it alone, it has %v", i, h)
		traces = slices.Delete(traces, own, own+1)
	}
}

// traced checks that each request has the traceparent of a span of its own, which is sampled or not as declared.
func (s Subject) traced(requests []http.Header) {
	flags := map[rpcbench.Traced]string{rpcbench.TracedSampled: "01",
		rpcbench.TracedUnsampled: "00"}[s.Stack.Traits.Traced]
	seen := map[string]bool{}
	for i, h := range requests {
		trace := h.Get("Traceparent")
		failIf(flags != "" && (!spans.MatchString(trace) || !strings.HasSuffix(trace, flags) || seen[trace]),
			"request %d must have the traceparent of a span of its own, which is %s: %v", i, s.Stack.Traits.Traced, h)
		seen[trace] = true
	}
}

var spans = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// sentWith returns what one connection carried to the server, and the headers of its requests if that is HTTP.
func (s Subject) sentWith(h *rpcbench.Headers) (raw []byte, requests []http.Header) {
	f, err := s.start(rpcbench.Config{Headers: h})
	skipIf(errors.Is(err, errors.ErrUnsupported), noHeaders)
	must(err, "with Config.Headers, which Dial may refuse with errors.ErrUnsupported alone")
	defer f.Close()
	for i := range corpus.Round {
		must(f.both(i, 0), "call %d", i)
	}
	f.callAtOnce(4, 3, 0)
	raw, _ = f.bytes()
	messages, _ := f.messages()
	failIf(f.Stack.Traits.HTTP != "" && len(messages) < 2*corpus.Round, "many calls took %d requests", len(messages))
	for _, m := range messages {
		requests = append(requests, m.Header)
	}
	return raw, requests
}

func headerLimit(s Subject) {
	for _, size := range []int{rpcbench.MaxHeader / 4, 2 * rpcbench.MaxHeader} {
		h := corpus.Headers()
		h.Authorization = "Bearer " + strings.Repeat("t", size)
		f, err := s.start(rpcbench.Config{Headers: h}) // start makes a call
		skipIf(errors.Is(err, errors.ErrUnsupported), noHeaders)
		if err == nil {
			err = f.Close()
		}
		small := size < rpcbench.MaxHeader
		failIf(small && err != nil, "headers of %d bytes are refused, MaxHeader is larger: %v", size, err)
		failIf(!small && err == nil, "headers of %d bytes are taken, MaxHeader is smaller", size)
	}
}

const cantReplace = "compressed bytes can't be replaced one by one; the uncompressed variant is checked"

// change describes how a reply is changed on its way to the client.
type change struct {
	held   string                         // what the changed reply contains
	old    []byte                         // what the right reply contains; nil matches any reply
	filter func(before []byte) tap.Filter // makes the change; before is the reply to another user of equal length
	avatar int                            // bytes of the users' payload
	breaks bool                           // the change breaks the connection
}

func replaced(held, old, with string) change {
	filter := func([]byte) tap.Filter { return tap.Replace([]byte(old), []byte(with)) }
	return change{held: held, old: []byte(old), filter: filter}
}

// changes lists changes of the reply to Sample 2 that keep its length and framing.
func changes() []change {
	asked, other := rpcbench.SampleUser(2, 0), rpcbench.SampleUser(1, 0)
	return []change{
		replaced("the name of the call before", asked.Name, other.Name),
		replaced("the email of the call before", asked.Email, other.Email),
		replaced("the password of the call before", asked.Password, other.Password),
		replaced("an id with one byte changed", rpcbench.UserID, "1000001"),
		replaced("the message KO", rpcbench.OKMessage, "KO"),
		{held: "one changed byte of the payload", avatar: 10_000, filter: changedByte},
	}
}

// codes are the code of a reply in JSON, XML, protobuf and MessagePack, and another one in its place. In protobuf the
// code alone is too short to be found.
var codes = [][2]string{
	{`"code":200`, `"code":201`},
	{`"code": 200`, `"code": 201`},
	{"<code>200</code>", "<code>201</code>"},
	{"\x08\xc8\x01\x12\x02OK", "\x08\xc9\x01\x12\x02OK"},
	{"\xa4code\xcc\xc8", "\xa4code\xcc\xc9"},
	{"\xa4code\xd1\x00\xc8", "\xa4code\xd1\x00\xc9"},
}

// changed lists changes, and one of the reply's code in formats where it is found.
func (f *session) changed() []change {
	all := changes()
	_, received, err := f.record(context.Background(), f.call(2, 0))
	must(err, "a call whose reply is not changed")
	for _, c := range codes {
		if bytes.Count(received, []byte(c[0])) == 1 {
			all = append(all, replaced("another code", c[0], c[1]))
		}
	}
	return all
}

// changedByte replaces one letter in the middle of a reply by another letter, which is valid in base64 too.
func changedByte(before []byte) tap.Filter {
	seen, done := 0, false
	return func(p []byte) ([]byte, error) {
		for i, b := range p {
			if seen++; seen > len(before)/2 && !done && (b >= 'a' && b < 'z' || b >= 'A' && b < 'Z') {
				p[i], done = b+1, true
			}
		}
		return p, nil
	}
}

// refuses makes a call whose reply is changed on its way. The call must fail without a second request. If the change
// did not break the connection, the same call must then succeed. before is a call for another user of equal length.
func (f *session) refuses(form string, c change, before, call rpcbench.Call) {
	var request, sent, received []byte
	var err error
	var changed atomic.Bool
	// On a busy machine net/http may dial anew. A new connection has no filter, so such a call tells nothing. Nor does one
	// that ended before its reply came: the next one has twice the time.
	for try := range 5 {
		var reply []byte
		request, reply, err = f.record(context.Background(), before)
		must(err, "a call whose reply is not changed")
		limit := f.s.patience()
		if c.breaks {
			limit = 250 * time.Millisecond << try // an HTTP/2 client that gets an old reply goes on waiting for its own
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		filter := c.filter(reply)
		f.tap.SetFilter(func(p []byte) ([]byte, error) { changed.Store(true); return filter(p) })
		sent, received, err = f.record(ctx, call)
		f.tap.SetFilter(nil)
		cancel()
		if changed.Load() || len(received) == 0 && !c.breaks {
			break
		}
	}
	failIf(len(received) == 0 || !bytes.Contains(received, c.old),
		"%s: the bytes to change are not on the connection", c.held)
	if !changed.Load() {
		f.connected(0)
	}
	failIf(err == nil && 2*len(sent) > 3*len(request), "the %s succeeded although the reply held %s: it asked again, "+
		"or the reply is not compared; a request has %d bytes, it sent %d", form, c.held, len(request), len(sent))
	failIf(err == nil, "the %s succeeded although the reply held %s: the reply is not compared", form, c.held)
	if !c.breaks {
		_, _, err := f.record(context.Background(), call)
		must(err, "the %s after one whose reply held %s", form, c.held)
	}
}

// changedReplies checks that a Call fails if its reply was changed, and that CreateUser returns the changed reply.
func changedReplies(s Subject) {
	skipIf(s.Stack.Traits.Compression != "", cantReplace)
	var all []change
	var last, next []byte // replies, of one length if they are users
	vary, differ := false, true
	s.with(rpcbench.Config{}, func(f *session) {
		if !s.own() {
			all = f.changed()
			return
		}
		last, next = try(f.replies.Sorted(1)), try(f.replies.Sorted(2))
		if vary = f.varies(); !vary {
			all = f.ownChanges()
		}
		differ = !vary && !bytes.Equal(last, next)
	})
	half := func(before []byte) tap.Filter { return tap.Cut((len(before) - len(last) + len(next)) / 2) }
	all = append(all, change{held: "only its first half", filter: half, breaks: true})
	if differ {
		all = append(all, change{held: "the bytes of the reply before", filter: tap.Replay, breaks: true})
	}
	for _, c := range all {
		watched(func(f *session) {
			before := f.call(1, c.avatar)
			err := ended(func() {
				f.refuses("Call", c, before, f.call(2, c.avatar))
				if !c.breaks {
					f.refuses("CreateUser", c, before, f.api.anew(2, c.avatar))
				}
			})
			varies := err != nil && !c.breaks && f.varies() // by now, as a time in seconds does
			vary = vary || varies
			failIf(err != nil && !varies, "%w", err)
		})(s)
	}
	skipIf(vary, "the answers of Handle vary, so what of a reply Equal leaves out can't be told. That half a reply is "+
		"refused was checked")
	skipIf(!differ,
		"of equal replies the one before is the right one: whether a Call refuses that can't be told. All else was checked")
}
