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
	"sync"
	"time"

	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/codec"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/fixture"
	"github.com/rpcbench/rpcbench/internal/relay"
	"github.com/rpcbench/rpcbench/message"
)

func declared(s Subject) {
	t := s.Stack.Traits
	failIf(!regexp.MustCompile(`^[a-z0-9]+(\.[a-z0-9]+)*$`).MatchString(s.Stack.Name),
		"the name %q is not made of [a-z0-9.]: benchmark tools could not read its rows", s.Stack.Name)
	failIf(s.Stack.Protocol == "" || s.Stack.Server == nil || s.Stack.Dial == nil, "a stack has a Protocol, a Server and a Dial")
	failIf(t.Codec == "", "Traits.Codec must name the import path of the library that encodes and decodes")
	for _, trait := range []struct {
		name, value string
		allowed     []string
	}{
		{"HTTP", t.HTTP, []string{"", "1.1", "2"}},
		{"Compression", t.Compression, []string{"", "gzip", rpcbench.GzipReplies}},
		{"InvalidUTF8", t.InvalidUTF8, []string{codec.Rejected, codec.Replaced, codec.Kept}},
	} {
		failIf(!slices.Contains(trait.allowed, trait.value), "Traits.%s is %q, it must be one of %q", trait.name, trait.value, trait.allowed)
	}
	for _, name := range t.Lossy {
		ofFlexes := slices.ContainsFunc(corpus.Flexes(), func(c corpus.Flex) bool { return c.Name == name })
		failIf(!ofUsers(name) && !ofFlexes, "Traits.Lossy names %q, which is no case of the suite", name)
	}
}

func ofUsers(name string) bool {
	return slices.ContainsFunc(corpus.Users(), func(c corpus.User) bool { return c.Name == name })
}

// hostileValues begins with what was not decoded into a fresh value: a user without a payload shows it, after one with.
func hostileValues(f *session) {
	first := corpus.Sample(0, 1000)
	reply := try(f.both(first))
	_, err := f.both(corpus.Sample(1, 0))
	must(err, "a user without a payload, after one with: is a value decoded into again?")
	failIf(rpcbench.Check(&first, &reply) != nil, "the reply that CreateUser returned was changed by the next call: a value is decoded into again")
	for _, c := range corpus.Users() {
		reply, err := f.both(c.User)
		came := err == nil && rpcbench.Check(&c.User, &reply) == nil
		f.asDeclared(c.Name, came, "%.200q came back as %.200q: %v", c.User, reply.User, err)
	}
	f.invalidUTF8()
}

// asDeclared compares what became of a hostile value with what the stack declares.
func (f *session) asDeclared(name string, came bool, detail string, args ...any) {
	declared := slices.Contains(f.Stack.Traits.Lossy, name)
	failIf(!came && !declared, "%s: %s; Traits.Lossy does not declare it", name, fmt.Sprintf(detail, args...))
	failIf(came && declared, "%s: comes back as it was sent, Traits.Lossy declares that it does not", name)
}

func (f *session) invalidUTF8() {
	reply, err := f.Client.CreateUser(context.Background(), changedUser(func(u *rpcbench.User) { u.Name = corpus.InvalidUTF8 }))
	declared, want := f.Stack.Traits.InvalidUTF8, corpus.InvalidUTF8
	if declared == codec.Rejected {
		must(wantError(err, rpcbench.Malformed), "invalid UTF-8, declared to be rejected")
		return
	}
	if declared == codec.Replaced {
		want = strings.ToValidUTF8(want, "\ufffd")
	}
	failIf(err != nil || reply.User == nil, "invalid UTF-8, declared to be %s: %v", declared, err)
	failIf(reply.User.Name != want, "invalid UTF-8, declared to be %s, came back as %q", declared, reply.User.Name)
}

func echo(f *session) {
	client, ok := f.Client.(rpcbench.Echoer)
	for _, name := range f.Stack.Traits.Lossy {
		failIf(!ok && !ofUsers(name), "Traits.Lossy declares %q, which only a stack that echoes can lose: the client is no Echoer", name)
	}
	skipIf(!ok, "the client is no Echoer")
	_, err := client.Echo(context.Background(), &message.Flex{String: "echo"})
	must(err, "the client is an Echoer, and a plain message does not come back")
	for _, c := range corpus.Flexes() {
		got, err := client.Echo(context.Background(), c.Flex)
		f.asDeclared(c.Name, err == nil && c.Flex.Equal(got), "%+v came back as %+v: %v", c.Flex, got, err)
	}
	asked := []*message.Flex{{}, {String: "hello, flex"}}
	if !slices.Contains(f.Stack.Traits.Lossy, codec.FloatDigits) {
		asked = append(asked, message.Complex())
	}
	var calls []rpcbench.Call
	for _, m := range asked {
		calls = append(calls, try(client.PrepareEcho(m)))
	}
	must(goRound(calls, 1)(), "echo")
	if f.s.readable() {
		f.refuses(replaced("another string", "hello, flex", "HELLO, FLEX"), calls[1], form{"echo's Call", calls[1]})
	}
}

// changedUser is the first sample with a change.
func changedUser(change func(*rpcbench.User)) rpcbench.User {
	u := corpus.Sample(0, 0)
	change(&u)
	return u
}

// tooLarge has a payload that no server takes: so large that it is refused while it is still being sent.
func (s Subject) tooLarge() rpcbench.User {
	size := 2 * rpcbench.MaxBody
	if s.Stack.Traits.Compression == "gzip" {
		size = rpcbench.MaxBody // is sent whole in either case, and takes seconds under the race detector
	}
	return changedUser(func(u *rpcbench.User) { u.Avatar = bytes.Repeat([]byte{7}, size) })
}

func outcomes(f *session) {
	type broken = []rpcbench.Violation
	for _, c := range []struct {
		reason string
		user   rpcbench.User
		code   rpcbench.Code // "" for success
		broken broken
	}{
		{"nothing is wrong", corpus.Sample(3, 0), "", nil},
		{"no email", changedUser(func(u *rpcbench.User) { u.Email = "" }), rpcbench.Invalid, broken{{Field: "email", Rule: "required"}}},
		{"an email that is none", changedUser(func(u *rpcbench.User) { u.Email = "nobody" }), rpcbench.Invalid, broken{{Field: "email", Rule: "email"}}},
		{"a name too short", changedUser(func(u *rpcbench.User) { u.Name = "Ann" }), rpcbench.Invalid, broken{{Field: "name", Rule: "min=4"}}},
		{"a name of four characters in sixteen bytes", changedUser(func(u *rpcbench.User) { u.Name = strings.Repeat("\U0001F600", 4) }), "", nil},
		{"a name too long", changedUser(func(u *rpcbench.User) { u.Name = strings.Repeat("n", 101) }), rpcbench.Invalid, broken{{Field: "name", Rule: "max=100"}}},
		{"a password too short", changedUser(func(u *rpcbench.User) { u.Password = "abc" }), rpcbench.Invalid, broken{{Field: "password", Rule: "min=4"}}},
		{"a password too long", changedUser(func(u *rpcbench.User) { u.Password = strings.Repeat("p", 73) }), rpcbench.Invalid,
			broken{{Field: "password", Rule: "max=72"}}},
		{"everything is missing", rpcbench.User{}, rpcbench.Invalid,
			broken{{Field: "email", Rule: "required"}, {Field: "name", Rule: "min=4"}, {Field: "password", Rule: "min=4"}}},
		{"a payload of one byte more than the largest, which is among the hostile values",
			changedUser(func(u *rpcbench.User) { u.Avatar = bytes.Repeat([]byte{7}, rpcbench.MaxAvatar+1) }), rpcbench.Invalid,
			broken{{Field: "avatar", Rule: "max=1048576"}}},
		{"a body too large", f.s.tooLarge(), rpcbench.TooLarge, nil},
	} {
		for _, form := range f.forms(c.user) {
			f.endsAs(c.reason+", "+form.name, form.call, c.code, c.broken)
		}
	}
}

// endsAs makes a call, which must end with the code, and another one, which must succeed.
func (f *session) endsAs(what string, call rpcbench.Call, code rpcbench.Code, broken []rpcbench.Violation) {
	accepted := f.Accepted()
	sent, _, err := f.record(context.Background(), call)
	if code == "" {
		must(err, what)
		return
	}
	if wrong := refusedAs(err, code, broken); wrong != nil {
		must(fmt.Errorf("%w%s", wrong, f.status()), what)
	}
	failIf(len(sent) == 0, "%s: the client refused it and sent nothing: the server must", what)
	_, err = f.both(corpus.Sample(1, 0))
	must(err, "%s: the call after it", what)
	more := f.Accepted() - accepted
	failIf(code == rpcbench.Invalid && more != 0, "%s: the call after it took %d new connections: an error reply must leave the connection open%w",
		what, more, errRedialled)
}

// status is what HTTP said of the last call, where that can be read and was success.
func (f *session) status() string {
	if _, replies := f.messages(); len(replies) > 0 {
		h := replies[len(replies)-1].Header
		if status := h.Get(":status"); strings.HasPrefix(status, "2") && !strings.HasPrefix(h.Get("Content-Type"), "application/grpc") {
			return fmt.Sprintf("; the server answered with HTTP status %s, as if the call had succeeded", status)
		}
	}
	return ""
}

func neighbours(s Subject) {
	a := try(s.start(rpcbench.Config{}))
	defer a.Close()
	b, err := s.start(rpcbench.Config{})
	must(err, "a second fixture beside the first")
	defer b.Close()
	for i := range 2 * corpus.Round {
		_, err := []*session{a, b}[i%2].both(corpus.Sample(i/2, 0))
		must(err, "with a second fixture beside it")
	}
	must(a.Close(), "close")
	_, err = b.both(corpus.Sample(1, 0))
	must(err, "closing one fixture broke the other")
	a.connected(0)
	b.connected(0)
}

func limits(s Subject) {
	const short = 250 * time.Millisecond
	patience := s.patience()
	ended, end := context.WithCancel(context.Background())
	defer end()
	idle := try(s.start(rpcbench.Config{IdleTimeout: short, WrapServer: func(c net.Conn) net.Conn { return closing{c, end} }}))
	defer idle.Close()
	silent := try(s.start(rpcbench.Config{HeaderTimeout: short}))
	defer silent.Close()
	conn := try(net.DialTimeout("tcp", silent.Addr, patience))
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	_, err := io.Copy(io.Discard, conn)
	failIf(errors.Is(err, os.ErrDeadlineExceeded), "with a HeaderTimeout of %v the server has kept a connection without a request for %v", short, patience)
	select {
	case <-ended.Done():
	case <-time.After(patience):
		failIf(true, "with an IdleTimeout of %v the server has kept an idle connection for %v", short, patience)
	}
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
	f := try(s.start(rpcbench.Config{Conns: 2}))
	defer f.Close()
	call := f.prepare(corpus.Sample(0, 0))
	must(call(context.Background()))
	must(f.Close(), "close")
	ctx, cancel := context.WithTimeout(context.Background(), s.limit()/2)
	defer cancel()
	failIf(call(ctx) == nil, "a call succeeds after the fixture was closed")
	f.leavesNothing("Close", before)
}

// leavesNothing says which goroutines are left that were not there before.
func (f *session) leavesNothing(after string, before goleak.Option) {
	must(fixture.LeftBehind(append(fixture.Background(f.Stack), before)...), "goroutines left after %s, which Traits.Background does not name", after)
}

// interruption ends a call, or a stream under its Call, while the server holds the request.
type interruption struct {
	is       error         // that errors.Is must find in the call's
	deadline time.Duration // of the context; 0 is none
	end      func(context.CancelFunc, *relay.Gate)
}

// interruptions are by the code that a call ends with.
func interruptions() map[rpcbench.Code]interruption {
	return map[rpcbench.Code]interruption{
		rpcbench.DeadlineExceeded: {context.DeadlineExceeded, 50 * time.Millisecond, func(context.CancelFunc, *relay.Gate) {}},
		rpcbench.Canceled:         {context.Canceled, 0, func(cancel context.CancelFunc, _ *relay.Gate) { cancel() }},
		rpcbench.Unavailable:      {nil, 0, func(_ context.CancelFunc, gate *relay.Gate) { gate.Drop() }},
	}
}

// interrupt makes the call of u that open prepares for a context, and ends it.
func (f *session) interrupt(what string, code rpcbench.Code, u rpcbench.User, open func(context.Context) (func() error, error)) {
	i := interruptions()[code]
	ctx, cancel := context.WithCancel(context.Background())
	if i.deadline > 0 {
		ctx, cancel = context.WithTimeout(context.Background(), i.deadline)
	}
	defer cancel()
	call, err := open(ctx)
	skipIf(ctx.Err() != nil, "the machine is too slow to tell")
	must(err)
	result := f.hold(ctx, u, call)
	i.end(cancel, f.gate)
	err = f.within(f.s.patience(), func() error { return <-result })
	failIf(errors.Is(err, errStuck), "the %s ignores its context or connection: that ended as %q and the call did not return within %v",
		what, code, f.s.patience())
	must(wantError(err, code), "the %s, interrupted while the server holds the request", what)
	failIf(i.is != nil && !errors.Is(err, i.is), "the %s: errors.Is(err, %v) does not hold: %w", what, i.is, err)
}

// interrupted makes a check of an interruption, after which the next call works.
func interrupted(code rpcbench.Code) func(Subject) {
	return func(s Subject) {
		for n := range 2 { // a fixture for each form: what comes late of the first would be held in place of the second
			watched(func(f *session) {
				u := corpus.Sample(0, 0)
				form := f.forms(u)[n]
				f.interrupt(form.name, code, u, func(ctx context.Context) (func() error, error) {
					return func() error { return form.call(ctx) }, nil
				})
				if code != rpcbench.Unavailable {
					f.gate.Release()
					_, _, err := f.record(context.Background(), form.call)
					must(err, "the %s after one that ended as %q", form.name, code)
				}
			})(s)
		}
	}
}

func unavailable(s Subject) {
	if s.readable() { // else what arrives can't be told from a straggler of the call before
		interrupted(rpcbench.Unavailable)(s)
	}
	gone := try(new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0"))
	must(gone.Close())
	var config *tls.Config
	if s.TLS {
		config = new(tls.Config)
	}
	s.outOfReach("nobody listens", gone.Addr().String(), config)
}

// Patient is what Patience proves.
const Patient = "A call that the server answers after five seconds succeeds: the client has no shorter timeout of its own."

// Patience is the check of a client's own timeout. It begins a call, whose request the server is given after wait, and returns the rest
// of the check, so that others can run meanwhile.
func Patience(s Subject, wait time.Duration) (check func() error) {
	var f *session
	var result <-chan error
	began := time.Now()
	err := ended(func() {
		f = try(s.watch(rpcbench.Config{}))
		u := corpus.Sample(0, 0)
		call := f.prepare(u)
		result = f.hold(context.Background(), u, func() error { return call(context.Background()) })
	})
	return sync.OnceValue(func() error {
		if err != nil {
			return err
		}
		defer f.Close()
		return ended(func() {
			select {
			case err := <-result:
				failIf(true, "a call without a deadline ended before the server had its request: the client has a timeout of its own: %v", err)
			case <-time.After(wait - time.Since(began)):
			}
			f.gate.Release()
			must(f.within(s.patience(), func() error { return <-result }), "a call that was answered after %v", wait)
		})
	})
}
