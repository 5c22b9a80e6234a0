package conform

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/suite/crossed"
	"github.com/rpcbench/rpcbench/internal/suite/leaks"
	"github.com/rpcbench/rpcbench/internal/transport/message"
)

func declared(s Subject) {
	if s.own() {
		s.with(rpcbench.Config{}, func(f *session) {
			for _, m := range []rpcbench.Messages{f.requests, f.replies} {
				failIf(m.Encode == nil || m.Sorted == nil || m.Decode == nil,
					"the Messages of a MethodClient have Encode, Sorted and Decode: one of them is nil")
			}
		})
	}
	t := s.Stack.Traits
	failIf(!regexp.MustCompile(`^[a-z0-9]+(\.[a-z0-9]+)*$`).MatchString(s.Stack.Name),
		"the name %q is not made of [a-z0-9], with single dots between: benchmark tools could not read its rows",
		s.Stack.Name)
	failIf(t.Codec == "", "Traits.Codec must name the import path of the library that encodes and decodes")
	failIf(t.Turns && !t.Multiplexed,
		"Traits.Turns is of a connection that several callers share: set Multiplexed too, or leave Turns out")
	allowed(t.HTTP, "Traits.HTTP", "", "1.1", "2")
	allowed(t.HTTPOverTLS, "Traits.HTTPOverTLS", "", "2")
	allowed(t.Compression, "Traits.Compression", "", rpcbench.CompressionGzip, rpcbench.CompressionGzipReplies)
	allowed(t.Traced, "Traits.Traced", "", "sampled", "unsampled")
	allowed(t.Varies, "Traits.Varies", "", rpcbench.VariesNumbered, rpcbench.VariesMasked)
	failIf(t.Varies == rpcbench.VariesNumbered && t.HTTP == "",
		"Traits.Varies is numbered, and requests that are not HTTP are not compared: leave it out")
	allowed(t.InvalidUTF8, "Traits.InvalidUTF8", rpcbench.UTF8Rejected, rpcbench.UTF8Replaced, rpcbench.UTF8Kept)
	for _, name := range t.Lossy {
		ofFlexes := slices.ContainsFunc(corpus.Flexes(), func(c corpus.Flex) bool { return c.Name == name })
		failIf(!ofUsers(name) && !ofFlexes, "Traits.Lossy names %q, which is no constant of type rpcbench.Loss", name)
	}
}

func allowed[T ~string](value T, trait string, values ...T) {
	failIf(!slices.Contains(values, value), "%s is %q, it must be one of %q", trait, value, values)
}

func ofUsers(name rpcbench.Loss) bool {
	return slices.ContainsFunc(corpus.Users(), func(c corpus.User) bool { return c.Name == name })
}

// hostileValues begins with a user without a payload after one with a payload. A value that is not fresh would keep the
// payload.
func hostileValues(f *session) {
	first := rpcbench.SampleUser(0, 1000)
	reply, err := f.created(first)
	f.asDeclared("a user with a payload", cmp.Or(err, rpcbench.CheckUser(&first, &reply)), withID(first), reply.User)
	err = f.both(1, 0)
	must(err, "a user without a payload after one with a payload: does the stack decode into a used value?")
	failIf(rpcbench.CheckUser(&first, &reply) != nil,
		"the next call changed the reply that CreateUser had returned: the stack decodes into a used value")
	for _, c := range corpus.Users() {
		reply, err := f.created(c.User)
		f.asDeclared(c.Name, cmp.Or(err, rpcbench.CheckUser(&c.User, &reply)), withID(c.User), reply.User)
	}
	u := invalidUTF8()
	reply, err = f.users.CreateUser(context.Background(), u)
	declared, want := f.Stack.Traits.InvalidUTF8, u.Name
	switch declared {
	case rpcbench.UTF8Rejected:
		wantError(err, rpcbench.CodeMalformed, "invalid UTF-8, declared to be rejected")
		return
	case rpcbench.UTF8Replaced:
		want = strings.ToValidUTF8(want, "\ufffd")
	}
	must(err, "invalid UTF-8, declared to be %s", declared)
	came := cmp.Or(reply.User, new(rpcbench.User)).Name
	failIf(came != want, "invalid UTF-8, declared to be %s: %q came back as %q", declared, u.Name, came)
}

// created makes a call of u by CreateUser and by PrepareUser, whose results must agree.
func (f *session) created(u rpcbench.User) (rpcbench.Response, error) {
	reply, err := f.users.CreateUser(context.Background(), u)
	return reply, errors.Join(err, f.prepare(u)(context.Background()))
}

// withID is u as the service answers.
func withID(u rpcbench.User) *rpcbench.User { return rpcbench.AnswerUser(&u).User }

func invalidUTF8() rpcbench.User {
	u := rpcbench.SampleUser(0, 0)
	u.Name = corpus.InvalidUTF8
	return u
}

// asDeclared compares what happened to a hostile value with what the stack declares. err says why it is lost.
func (f *session) asDeclared(name rpcbench.Loss, err error, sent, came any) {
	lost := slices.Contains(f.Stack.Traits.Lossy, name)
	failIf(err == nil && lost, "%s: came back as it was sent, but Traits.Lossy declares it lost", name)
	if err != nil && !lost {
		failIf(true, "%s: %s; Traits.Lossy does not declare it", name, cmp.Or(difference(sent, came), fmt.Sprint(err)))
	}
}

// difference names the fields in which two messages of one type differ, given by pointers. Without came it is "".
func difference(sent, came any) string {
	var all []string
	from, to := reflect.ValueOf(sent).Elem(), reflect.ValueOf(came).Elem()
	if !to.IsValid() {
		return ""
	}
	for f, v := range from.Fields() {
		was, is := text(v), text(to.FieldByIndex(f.Index))
		if was != is {
			all = append(all, fmt.Sprintf("%s %.200s came back as %.200s", f.Name, was, is))
		}
	}
	return strings.Join(all, ", ")
}

// text prints the value of a field so that a person can tell it from others.
func text(v reflect.Value) string {
	data, err := json.Marshal(v.Interface())
	switch {
	case v.Kind() == reflect.String:
		return strconv.Quote(v.String())
	case err != nil: // NaN, say
		return fmt.Sprint(v)
	}
	return string(data)
}

func echo(f *session) {
	client, ok := f.Client.(rpcbench.Echoer)
	for _, name := range f.Stack.Traits.Lossy {
		failIf(!ok && !ofUsers(name), "Traits.Lossy has %q, which only an Echoer can lose, and the client is no Echoer", name)
	}
	skipIf(!ok, "the client is no Echoer")
	_, err := client.Echo(context.Background(), &rpcbench.Flex{String: "echo"})
	if server, is := crossed.Server(f.Stack); err != nil {
		skipIf(is, fmt.Sprintf("the server of %s does not echo: %v", server, err))
	}
	must(err, "the client is an Echoer, but a plain message does not come back")
	for _, c := range corpus.Flexes() {
		got, err := client.Echo(context.Background(), c.Flex)
		if err == nil && !c.Flex.Equal(got) {
			err = errors.New("the message that came back differs")
		}
		f.asDeclared(c.Name, err, c.Flex, got)
	}
	lossy := slices.Contains(f.Stack.Traits.Lossy, rpcbench.LossFloatDigits)
	var calls []rpcbench.Call
	for _, m := range []*rpcbench.Flex{{}, {String: "hello, flex"}, message.Complex()} {
		if !lossy || m.Double == 0 {
			calls = append(calls, try(client.PrepareEcho(m)))
		}
	}
	must(goRound(calls, 1), "echo")
	if f.s.readable() {
		f.refuses("echo's Call", replaced("another string", "hello, flex", "HELLO, FLEX"), calls[1], calls[1])
	}
}

// tooLarge sends a payload so large that the server refuses it while it is still being sent.
func (s Subject) tooLarge() rpcbench.User {
	size := 2 * rpcbench.MaxBody
	if s.Stack.Traits.Compression == rpcbench.CompressionGzip {
		size = rpcbench.MaxBody // sent whole in any case, and slow under the race detector
	}
	u := rpcbench.SampleUser(0, 0)
	u.Avatar = bytes.Repeat([]byte{7}, size)
	return u
}

// outcomes checks the result of valid and of invalid users, in several forms of a call.
func (f *session) outcomes(forms []string) {
	type user = rpcbench.User
	repeat := strings.Repeat
	for _, c := range []struct {
		reason string
		change func(*user)
		broken string // expected violations; "" for success
	}{
		{"nothing is wrong", func(*user) {}, ""},
		{"no email", func(u *user) { u.Email = "" }, "[{email required}]"},
		{"an email that is none", func(u *user) { u.Email = "nobody" }, "[{email email}]"},
		{"an email too long", func(u *user) { u.Email = "anna@" + repeat("a.", 124) + "com" }, "[{email max=254}]"},
		{"a name too short", func(u *user) { u.Name = "Ann" }, "[{name min=4}]"},
		{"a name of four characters in sixteen bytes", func(u *user) { u.Name = repeat("\U0001F600", 4) }, ""},
		{"a name too long", func(u *user) { u.Name = repeat("n", 101) }, "[{name max=100}]"},
		{"a password too short", func(u *user) { u.Password = "abc" }, "[{password min=4}]"},
		{"a password too long", func(u *user) { u.Password = repeat("p", 73) }, "[{password max=72}]"},
		{"everything is missing", func(u *user) { *u = user{} }, "[{email required} {name min=4} {password min=4}]"},
		{"a payload of one byte more than the largest, which is among the hostile values",
			func(u *user) { u.Avatar = make([]byte, rpcbench.MaxAvatar+1) }, "[{avatar max=1048576}]"},
	} {
		u := rpcbench.SampleUser(3, 0)
		c.change(&u)
		f.endsAs(forms, c.reason, u, rpcbench.CodeInvalid, c.broken)
	}
	large := f.s.tooLarge()
	f.endsAs(forms, fmt.Sprintf("a body too large, with a payload of %d bytes where MaxBody is %d",
		len(large.Avatar), rpcbench.MaxBody), large, rpcbench.CodeTooLarge, "[]")
}

// endsAs makes calls of u. They must succeed if broken is "". Else the server must refuse each, and a valid call after
// each must succeed.
func (f *session) endsAs(forms []string, reason string, u rpcbench.User, code rpcbench.Code, broken string) {
	for _, form := range forms {
		what := reason + ", " + form
		call := f.ofUser(form, u)
		accepted := f.Accepted()
		sent, _, err := f.record(context.Background(), call)
		if broken == "" {
			must(err, "%s", what)
			continue
		}
		got := fmt.Sprint(wantError(err, code, "%s", what).Violations)
		failIf(got != broken, "%s: got the violations %s, want %s", what, got, broken)
		failIf(len(sent) == 0, "%s: the client refused the user and sent nothing: the server must refuse it", what)
		must(f.both(1, 0), "%s: the call after it", what)
		more := f.Accepted() - accepted
		failIf(code == rpcbench.CodeInvalid && more != 0,
			"%s: the call after it took %d new connections: an error reply must leave the connection open%w",
			what, more, errRedialled)
	}
}

// bodyLimit sends bodies a little smaller and a little larger than MaxBody. A format decides how large a payload makes
// them so. The payload is larger than MaxAvatar, since no valid user comes near the limit.
func bodyLimit(f *session) {
	const aside = rpcbench.MaxBody / 128 // more than all frames and headers of such a request
	skipIf(!f.s.readable(), "the size of a compressed body can't be read off the wire")
	size := func(avatar int) int {
		sent, _, err := f.record(context.Background(), f.prepare(rpcbench.SampleUser(0, avatar)))
		must(err, "a payload of %d bytes", avatar)
		return len(sent)
	}
	const small, large = 1000, 301_000
	least, most := size(small), size(large)
	for _, c := range []struct {
		bytes  int
		code   rpcbench.Code
		broken string
	}{
		{rpcbench.MaxBody - aside, rpcbench.CodeInvalid, "[{avatar max=1048576}]"},
		{rpcbench.MaxBody + aside, rpcbench.CodeTooLarge, "[]"},
	} {
		u := rpcbench.SampleUser(0, small+(c.bytes-least)*(large-small)/(most-least))
		reason := fmt.Sprintf("a body of %d bytes, where MaxBody is %d", c.bytes, rpcbench.MaxBody)
		f.endsAs([]string{"Call"}, reason, u, c.code, c.broken)
	}
}

func neighbours(s Subject) {
	s.with(rpcbench.Config{}, func(a *session) {
		b, err := s.start(rpcbench.Config{})
		must(err, "a second fixture, beside the first")
		defer b.Close()
		for i := range 2 * corpus.Round {
			must([]*session{a, b}[i%2].both(i/2, 0), "with a second fixture beside it")
		}
		must(a.Close(), "close")
		must(b.both(1, 0), "closing one fixture broke the other")
		must(ended(func() { a.connected(0); b.connected(0) }), "of two fixtures, one of them closed")
	})
}

// short is the timeout that the server is told in the check of limits.
const short = 250 * time.Millisecond

func limits(s Subject) {
	s.bare = true // the only wrapper is that of closings
	var server closings
	s.inTime(rpcbench.Config{IdleTimeout: short, WrapServer: server.wrap}, func(*session) {
		idle := server.newest(1)[0]
		s.inTime(rpcbench.Config{HeaderTimeout: short}, func(silent *session) {
			conn := try(net.DialTimeout("tcp", silent.Addr, s.patience()))
			defer conn.Close()
			_ = conn.SetReadDeadline(time.Now().Add(s.patience()))
			_, err := io.Copy(io.Discard, conn)
			failIf(errors.Is(err, os.ErrDeadlineExceeded),
				"with a HeaderTimeout of %v the server keeps a connection without a request", short)
		})
		failIf(!idle.endsWithin(s.patience()), "with an IdleTimeout of %v the server keeps an idle connection", short)
		failIf(!idle.own, "with an IdleTimeout of %v the client ended an idle connection, and the server had not", short)
	})
}

// inTime is with, for a server whose timeout is short: it may rightly end a connection whose start takes longer.
func (s Subject) inTime(config rpcbench.Config, check func(*session)) {
	for attempt := 1; ; attempt++ {
		began := time.Now()
		f, err := s.start(config)
		if err == nil {
			defer f.Close()
			check(f)
			return
		}
		failIf(time.Since(began) < short, "%w", err)
		failIf(attempt == 3, "machine busy? Three starts took longer than the server's timeout of %v: %w", short, err)
	}
}

// closings are the connections of one side, in the order they were wrapped.
type closings struct {
	mu  sync.Mutex
	all []*closing
}

func (s *closings) wrap(c net.Conn) net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, &closing{Conn: c, ended: make(chan struct{})})
	return s.all[len(s.all)-1]
}

// newest returns the last n connections, or all: those before them are of a start that was tried again.
func (s *closings) newest(n int) []*closing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[max(0, len(s.all)-n):]
}

// closing is a connection that says which side ended it. Only its pointer is a net.Conn: libraries keep them in maps.
type closing struct {
	net.Conn
	asked   atomic.Pointer[time.Time] // when bytes came last
	goodbye atomic.Bool               // this side wrote long after: over HTTP/2 the other one then closes
	once    sync.Once
	ended   chan struct{}
	own     bool // this side ended it; read after ended
}

func (c *closing) end(own bool) {
	c.once.Do(func() { c.own = own; close(c.ended) })
}

func (c *closing) Write(p []byte) (int, error) {
	if asked := c.asked.Load(); asked != nil && time.Since(*asked) > short/2 {
		c.goodbye.Store(true)
	}
	return c.Conn.Write(p)
}

func (c *closing) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if now := time.Now(); n > 0 {
		c.asked.Store(&now)
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.end(c.goodbye.Load())
	}
	return n, err
}

func (c *closing) Close() error {
	c.end(true)
	return c.Conn.Close()
}

func (c *closing) endsWithin(limit time.Duration) bool {
	select {
	case <-c.ended:
		return true
	case <-time.After(limit):
		return false
	}
}

// closed closes a fixture, then the client of another alone, then the server of a third alone.
func closed(s Subject) {
	before := goleak.IgnoreCurrent()
	s.with(rpcbench.Config{Conns: 2}, func(f *session) {
		call := f.call(0, 0)
		must(call(context.Background()), "call")
		must(f.Close(), "close")
		err := within(s.limit()/2, func() error { return call(context.Background()) })
		failIf(err == nil, "a call succeeds after the fixture was closed")
		f.leavesNothing("Close", before)
	})
	s.closedAlone("Client")
	s.closedAlone("Server")
}

// closedAlone closes one side of a fixture while the other lives on.
func (s Subject) closedAlone(side string) {
	s.bare = true // the only wrapper is that of closings
	var own closings
	config, server, newServer := rpcbench.Config{Conns: 2}, new(alone), s.Stack.Server
	if side == "Client" {
		config.WrapClient = own.wrap
	} else {
		config.WrapServer = own.wrap
	}
	s.Stack.Server = func(c rpcbench.ServerConfig) (rpcbench.Server, error) {
		made, err := newServer(c)
		if err != nil {
			return nil, err
		}
		server = &alone{made, sync.OnceValue(made.Close), make(chan struct{})}
		return server, nil
	}
	s.with(config, func(f *session) {
		call, client, u := f.call(0, 0), f.Client, rpcbench.SampleUser(1, 0)
		shut := server.Close
		if side == "Client" {
			shut, f.Client = client.Close, nil // or the fixture would close it again
		}
		open := own.newest(f.conns)
		must(within(s.patience(), shut), "%s.Close", side)
		for i, c := range open {
			failIf(!c.endsWithin(s.patience()), "%s.Close leaves connection %d of %d open", side, i+1, len(open))
		}
		if side == "Server" {
			must(within(s.patience(), func() error { <-server.served; return nil }), "Serve after Server.Close")
		}
		err := within(s.patience(), func() error { return call(context.Background()) })
		wantError(err, rpcbench.CodeUnavailable, "a Call after %s.Close alone", side)
		if users, ok := client.(rpcbench.Users); ok {
			err = within(s.patience(), func() error { _, err := users.CreateUser(context.Background(), u); return err })
			wantError(err, rpcbench.CodeUnavailable, "CreateUser after %s.Close alone", side)
		}
	})
}

// alone is a server that is closed before its fixture closes it.
type alone struct {
	rpcbench.Server
	close  func() error // once
	served chan struct{}
}

func (s *alone) Serve(ln net.Listener) error {
	defer close(s.served)
	return s.Server.Serve(ln)
}

func (s *alone) Close() error { return s.close() }

// leavesNothing checks that a closed fixture leaves no goroutine behind.
func (f *session) leavesNothing(after string, before goleak.Option) {
	must(leaks.LeftBehind(min(leaks.Grace, f.s.patience()), append(leaks.Background(f.Stack), before)...),
		"goroutines left after %s, which Traits.Background does not name", after)
}

// interrupted ends calls while the server's side holds their requests back. It ends the context of the call or of the
// stream, or for Unavailable the connection. Each form has a fixture of its own: late bytes of the first form would be
// held in place of the second.
func (s Subject) interrupted(code rpcbench.Code, forms []string) {
	for _, form := range forms {
		s.with(rpcbench.Config{}, func(f *session) { f.interrupted(code, form) })
	}
}

// interruptedCalls interrupts calls that the server holds, and calls that wait behind one for the only connection.
// Calls of a client that reconnects don't wait.
func (s Subject) interruptedCalls(code rpcbench.Code) {
	s.interrupted(code, single())
	if s.Stack.Traits.Reconnects {
		return
	}
	watched(func(f *session) {
		first := f.hold(context.Background(), 1, f.call(1, 0))
		for _, form := range single() {
			ctx, cancel := until(code)
			defer cancel()
			result := make(chan error, 1)
			call := f.form(ctx, form, 2)
			go func() { result <- call(ctx) }()
			if code == rpcbench.CodeCanceled {
				time.AfterFunc(queues, cancel)
			}
			err := within(f.s.patience(), func() error { return <-result })
			wantError(err, code, "a %s, interrupted while another call has the only connection", form)
		}
		f.gate.Release()
		must(within(f.s.patience(), func() error { return <-first }),
			"a call, while others that waited behind it were interrupted")
	})(s)
}

// queues is how long a call is given to queue for a connection before it is cancelled.
const queues = 10 * time.Millisecond

// until returns a context that ends with the code: a short deadline, or by its cancel alone.
func until(code rpcbench.Code) (context.Context, context.CancelFunc) {
	if code == rpcbench.CodeDeadlineExceeded {
		return context.WithTimeout(context.Background(), 50*time.Millisecond)
	}
	return context.WithCancel(context.Background())
}

func (f *session) interrupted(code rpcbench.Code, form string) {
	ctx, cancel := until(code)
	defer cancel()
	var call rpcbench.Call
	err := ended(func() { call = f.form(ctx, form, 1) })
	skipIf(ctx.Err() != nil, "the machine is too slow to tell")
	failIf(err != nil, "%w", err)
	result := f.hold(ctx, 1, call)
	switch code {
	case rpcbench.CodeCanceled:
		cancel()
	case rpcbench.CodeUnavailable:
		f.gate.Drop()
	}
	err = within(f.s.patience(), func() error { return <-result })
	wantError(err, code, "the %s, interrupted while the server holds the request", form)
	failIf(ctx.Err() != nil && !errors.Is(err, ctx.Err()), "errors.Is(err, %v) does not hold: %w", ctx.Err(), err)
	if code != rpcbench.CodeUnavailable && form != onStream {
		f.gate.Release()
		// whose reply is not the interrupted call's
		_, _, err := f.record(context.Background(), f.api.anew(2, 0))
		must(err, "the call after one that ended as %q, of another user", code)
		_, _, err = f.record(context.Background(), call)
		must(err, "the %s after one that ended as %q", form, code)
	}
}

func unavailable(s Subject) {
	tiny := s.tiny()
	if s.readable() && !tiny { // else late bytes of the previous call can't be told apart
		s.interrupted(rpcbench.CodeUnavailable, single())
	}
	gone := try(new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0"))
	must(gone.Close(), "close")
	var config *tls.Config
	if s.TLS {
		config = new(tls.Config)
	}
	s.outOfReach("nobody listens", gone.Addr().String(), config)
	skipIf(tiny, tooSmall+", so a call whose connection breaks can't be made. That nobody listens was checked")
}

// controls are the bytes of a WINDOW_UPDATE, a PING and the reply to one.
const controls = 13 + 17 + 17

// shared checks whether a call waits for the reply of another one on its connection, or has a connection of its own.
func shared(f *session) {
	t := f.Stack.Traits
	skipIf(!t.Multiplexed && !t.Reconnects, "a connection has one caller at a time")
	skipIf(f.s.tiny(), tooSmall+", so whether a request waits can't be told")
	before, _ := f.bytes()
	held, other := f.call(1, 0), f.call(2, 0)
	first := f.hold(context.Background(), 1, held)
	sent, _ := f.bytes()
	request := len(sent) - len(before)
	second := make(chan error, 1)
	go func() { second <- other(context.Background()) }()
	limit, least := f.s.patience(), request/2
	if t.Turns {
		limit = 20 * queues
	} else if f.s.own() { // whose request may be smaller than what the reply before it asks of HTTP/2
		least = max(1, least-controls)
	}
	more := 0
	for began := time.Now(); more < least && time.Since(began) < limit; <-time.After(time.Millisecond) {
		now, _ := f.bytes()
		more = len(now) - len(sent)
	}
	f.gate.Release()
	for _, result := range []<-chan error{first, second} {
		must(within(f.s.patience(), func() error { return <-result }), "one of two calls on a connection")
	}
	failIf(t.Reconnects && (more < least || len(f.tap.Conns()) < 2),
		"with one connection to be held, a call opened none while another one waited for its reply: "+
			"without need of more connections leave Traits.Reconnects out")
	failIf(t.Turns && more >= least,
		"a call was sent before the reply of another one on its connection: Traits.Turns is wrong")
	failIf(!t.Turns && more < least, "a call waited for the reply of another one on its connection: "+
		"without Traits.Turns a connection carries several at a time")
}

// patience checks that a client has no timeout of its own.
func patience(f *session) {
	result := f.hold(context.Background(), 0, f.call(0, 0))
	select {
	case err := <-result:
		failIf(true, "a call ended before the server had it: the client has a timeout of its own: %v", err)
	case <-time.After(f.s.Wait):
	}
	f.gate.Release()
	must(within(f.s.patience(), func() error { return <-result }), "a call that was answered after %v", f.s.Wait)
}
