package conform

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/fixture"
	"github.com/rpcbench/rpcbench/message"
)

func declared(s Subject) {
	t := s.Stack.Traits
	failIf(!regexp.MustCompile(`^[a-z0-9]+(\.[a-z0-9]+)*$`).MatchString(s.Stack.Name),
		"the name %q is not made of [a-z0-9], with single dots between: benchmark tools could not read its rows", s.Stack.Name)
	failIf(s.Stack.Protocol == "" || s.Stack.Server == nil || s.Stack.Dial == nil,
		"a stack needs a Protocol, a Server and a Dial")
	failIf(t.Codec == "", "Traits.Codec must name the import path of the library that encodes and decodes")
	allowed := func(trait, value string, values ...string) {
		failIf(!slices.Contains(values, value), "Traits.%s is %q, it must be one of %q", trait, value, values)
	}
	allowed("HTTP", t.HTTP, "", "1.1", "2")
	allowed("Compression", t.Compression, "", "gzip", rpcbench.GzipReplies)
	allowed("InvalidUTF8", t.InvalidUTF8, codec.Rejected, codec.Replaced, codec.Kept)
	for _, name := range t.Lossy {
		ofFlexes := slices.ContainsFunc(corpus.Flexes(), func(c corpus.Flex) bool { return c.Name == name })
		failIf(!ofUsers(name) && !ofFlexes, "Traits.Lossy names %q, which is not a constant of package codec", name)
	}
}

func ofUsers(name string) bool {
	return slices.ContainsFunc(corpus.Users(), func(c corpus.User) bool { return c.Name == name })
}

// hostileValues begins with a user without a payload after one with a payload. A value that is not fresh would keep the
// payload.
func hostileValues(f *session) {
	first := corpus.Sample(0, 1000)
	reply := try(f.both(first))
	_, err := f.both(corpus.Sample(1, 0))
	must(err, "a user without a payload after one with a payload: does the stack decode into a used value?")
	failIf(rpcbench.Check(&first, &reply) != nil,
		"the next call changed the reply that CreateUser had returned: the stack decodes into a used value")
	for _, c := range corpus.Users() {
		reply, err := f.both(c.User)
		f.asDeclared(c.Name, err == nil && rpcbench.Check(&c.User, &reply) == nil, c.User, reply.User, err)
	}
	u := invalidUTF8()
	reply, err = f.Client.CreateUser(context.Background(), u)
	declared, want := f.Stack.Traits.InvalidUTF8, u.Name
	switch declared {
	case codec.Rejected:
		wantError(err, rpcbench.Malformed, "invalid UTF-8, declared to be rejected")
		return
	case codec.Replaced:
		want = strings.ToValidUTF8(want, "\ufffd")
	}
	failIf(err != nil || reply.User == nil || reply.User.Name != want,
		"invalid UTF-8, declared to be %s, came back as %.200q: %v", declared, reply.User, err)
}

func invalidUTF8() rpcbench.User {
	u := corpus.Sample(0, 0)
	u.Name = corpus.InvalidUTF8
	return u
}

// asDeclared compares what happened to a hostile value with what the stack declares.
func (f *session) asDeclared(name string, same bool, sent, came any, err error) {
	lost := slices.Contains(f.Stack.Traits.Lossy, name)
	failIf(!same && !lost, "%s: %.200q came back as %.200q: %v; Traits.Lossy does not declare it", name, sent, came, err)
	failIf(same && lost, "%s: came back as it was sent, but Traits.Lossy declares it lost", name)
}

func echo(f *session) {
	client, ok := f.Client.(rpcbench.Echoer)
	for _, name := range f.Stack.Traits.Lossy {
		failIf(!ok && !ofUsers(name), "Traits.Lossy has %q, which only an Echoer can lose, and the client is no Echoer", name)
	}
	skipIf(!ok, "the client is no Echoer")
	_, err := client.Echo(context.Background(), &message.Flex{String: "echo"})
	must(err, "the client is an Echoer, but a plain message does not come back")
	for _, c := range corpus.Flexes() {
		got, err := client.Echo(context.Background(), c.Flex)
		f.asDeclared(c.Name, err == nil && c.Flex.Equal(got), c.Flex, got, err)
	}
	lossy := slices.Contains(f.Stack.Traits.Lossy, codec.FloatDigits)
	var calls []rpcbench.Call
	for _, m := range []*message.Flex{{}, {String: "hello, flex"}, message.Complex()} {
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
	if s.Stack.Traits.Compression == "gzip" {
		size = rpcbench.MaxBody // sent whole in any case, and slow under the race detector
	}
	u := corpus.Sample(0, 0)
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
		{"a name too short", func(u *user) { u.Name = "Ann" }, "[{name min=4}]"},
		{"a name of four characters in sixteen bytes", func(u *user) { u.Name = repeat("\U0001F600", 4) }, ""},
		{"a name too long", func(u *user) { u.Name = repeat("n", 101) }, "[{name max=100}]"},
		{"a password too short", func(u *user) { u.Password = "abc" }, "[{password min=4}]"},
		{"a password too long", func(u *user) { u.Password = repeat("p", 73) }, "[{password max=72}]"},
		{"everything is missing", func(u *user) { *u = user{} }, "[{email required} {name min=4} {password min=4}]"},
		{"a payload of one byte more than the largest, which is among the hostile values",
			func(u *user) { u.Avatar = make([]byte, rpcbench.MaxAvatar+1) }, "[{avatar max=1048576}]"},
	} {
		u := corpus.Sample(3, 0)
		c.change(&u)
		f.endsAs(forms, c.reason, u, rpcbench.Invalid, c.broken)
	}
	f.endsAs(forms, "a body too large", f.s.tooLarge(), rpcbench.TooLarge, "[]")
}

// endsAs makes calls of u. They must succeed if broken is "". Else the server must refuse each, and a valid call after
// each must succeed.
func (f *session) endsAs(forms []string, reason string, u rpcbench.User, code rpcbench.Code, broken string) {
	for _, form := range forms {
		what := reason + ", " + form
		call := f.form(context.Background(), form, u)
		accepted := f.Accepted()
		sent, _, err := f.record(context.Background(), call)
		if broken == "" {
			must(err, "%s", what)
			continue
		}
		got := fmt.Sprint(wantError(err, code, "%s", what).Violations)
		failIf(got != broken, "%s: got the violations %s, want %s", what, got, broken)
		failIf(len(sent) == 0, "%s: the client refused the user and sent nothing; the server must validate", what)
		_, err = f.both(corpus.Sample(1, 0))
		must(err, "%s: the call after it, on a connection that an error reply must leave open", what)
		more := f.Accepted() - accepted
		failIf(code == rpcbench.Invalid && more != 0,
			"%s: the call after it took %d new connections: an error reply must leave the connection open%w",
			what, more, errRedialled)
	}
}

func neighbours(s Subject) {
	s.with(rpcbench.Config{}, func(a *session) {
		s.with(rpcbench.Config{}, func(b *session) {
			for i := range 2 * corpus.Round {
				_, err := []*session{a, b}[i%2].both(corpus.Sample(i/2, 0))
				must(err, "with a second fixture beside it")
			}
			must(a.Close(), "close")
			_, err := b.both(corpus.Sample(1, 0))
			must(err, "closing one fixture broke the other")
			a.connected(0)
			b.connected(0)
		})
	})
}

func limits(s Subject) {
	const short = 250 * time.Millisecond
	s.bare = true // the only wrapper is closing
	ended, end := context.WithCancel(context.Background())
	defer end()
	idle := rpcbench.Config{IdleTimeout: short, WrapServer: func(c net.Conn) net.Conn { return closing{c, end} }}
	s.with(idle, func(*session) {
		s.with(rpcbench.Config{HeaderTimeout: short}, func(silent *session) {
			conn := try(net.DialTimeout("tcp", silent.Addr, s.patience()))
			defer conn.Close()
			_ = conn.SetReadDeadline(time.Now().Add(s.patience()))
			_, err := io.Copy(io.Discard, conn)
			failIf(errors.Is(err, os.ErrDeadlineExceeded),
				"with a HeaderTimeout of %v the server keeps a connection without a request", short)
		})
		select {
		case <-ended.Done():
		case <-time.After(s.patience()):
			failIf(true, "with an IdleTimeout of %v the server keeps an idle connection", short)
		}
	})
}

// closing is a server's connection that says when the server closes it.
type closing struct {
	net.Conn
	closed func()
}

func (c closing) Close() error {
	c.closed()
	return c.Conn.Close()
}

func closed(s Subject) {
	before := goleak.IgnoreCurrent()
	s.with(rpcbench.Config{Conns: 2}, func(f *session) {
		call := f.prepare(corpus.Sample(0, 0))
		must(call(context.Background()), "call")
		must(f.Close(), "close")
		err := within(s.limit()/2, func() error { return call(context.Background()) })
		failIf(err == nil, "a call succeeds after the fixture was closed")
		f.leavesNothing("Close", before)
	})
}

// leavesNothing checks that a closed fixture leaves no goroutine behind.
func (f *session) leavesNothing(after string, before goleak.Option) {
	must(fixture.LeftBehind(append(fixture.Background(f.Stack), before)...),
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

func (f *session) interrupted(code rpcbench.Code, form string) {
	ctx, cancel := context.WithCancel(context.Background())
	if code == rpcbench.DeadlineExceeded {
		ctx, cancel = context.WithTimeout(context.Background(), 50*time.Millisecond)
	}
	defer cancel()
	var call rpcbench.Call
	u := corpus.Sample(1, 0)
	err := ended(func() { call = f.form(ctx, form, u) })
	skipIf(ctx.Err() != nil, "the machine is too slow to tell")
	failIf(err != nil, "%w", err)
	result := f.hold(ctx, u, call)
	switch code {
	case rpcbench.Canceled:
		cancel()
	case rpcbench.Unavailable:
		f.gate.Drop()
	}
	err = within(f.s.patience(), func() error { return <-result })
	wantError(err, code, "the %s, interrupted while the server holds the request", form)
	failIf(ctx.Err() != nil && !errors.Is(err, ctx.Err()), "errors.Is(err, %v) does not hold: %w", ctx.Err(), err)
	if code != rpcbench.Unavailable && form != onStream {
		f.gate.Release()
		_, _, err := f.record(context.Background(), f.create(corpus.Sample(2, 0))) // whose reply is not the interrupted call's
		must(err, "the call after one that ended as %q, of another user", code)
		_, _, err = f.record(context.Background(), call)
		must(err, "the %s after one that ended as %q", form, code)
	}
}

func unavailable(s Subject) {
	if s.readable() { // else late bytes of the previous call can't be told apart
		s.interrupted(rpcbench.Unavailable, single())
	}
	gone := try(new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0"))
	must(gone.Close(), "close")
	var config *tls.Config
	if s.TLS {
		config = new(tls.Config)
	}
	s.outOfReach("nobody listens", gone.Addr().String(), config)
}

// patience checks that a client has no timeout of its own.
func patience(f *session) {
	skipIf(f.s.Wait == 0, "takes five seconds")
	u := corpus.Sample(0, 0)
	result := f.hold(context.Background(), u, f.prepare(u))
	select {
	case err := <-result:
		failIf(true, "a call ended before the server had it: the client has a timeout of its own: %v", err)
	case <-time.After(f.s.Wait):
	}
	f.gate.Release()
	must(within(f.s.patience(), func() error { return <-result }), "a call that was answered after %v", f.s.Wait)
}
