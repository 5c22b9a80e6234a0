// Package conform is the conformance suite: a table of checks, each of which proves one property of a stack. A check
// reads the bytes on the wire, the allocation profile and the goroutines, and trusts no claim of the stack.
package conform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
	"github.com/rpcbench/rpcbench/internal/suite/tap"
	"github.com/rpcbench/rpcbench/internal/suite/wire"
)

// Check proves one property of a stack.
type Check struct {
	Name      string
	ClearOnly bool // skip the check over TLS, where it can't read the wire or would find nothing new
	place     place
	run       func(Subject)
	Proves    string // what a stack that passes does, and what the check does not see
}

// place says beside what Together makes a check.
type place int

const (
	byItself place = iota // reads the process as a whole, or counts what a busy machine or another server changes
	inTurn                // beside those that wait, and one after the other
	waiting               // spends its time waiting: beside all that are not made by themselves
)

// Checks returns all checks in the order in which they run.
func Checks() []Check { return slices.Concat(ofBytes(), ofOutcomes()) }

// ofBytes are the checks of what crosses the wire, and of who does the work.
func ofBytes() []Check {
	return []Check{
		{"declared", true, byItself, declared,
			"Name, Protocol and Traits have allowed values."},
		{"connections", false, byItself, connections,
			"The server accepts as many connections as Conns says, all opened by DialContext, on the loopback " +
				"interface, with one caller and many, small payloads and large. A multiplexed stack uses each of them. With " +
				"Traits.Reconnects as many as the client needs."},
		{"shared", true, byItself, watched(shared),
			"Of two calls that share a connection the second request is sent before the first reply, unless " +
				"Traits.Turns says otherwise. What else waits for its turn is not seen. With Traits.Reconnects a second " +
				"call opens a connection where one is to be held."},
		{"traffic", false, byItself, watched(traffic),
			"The name of each call's user is in the bytes of the request and of the reply; over TLS in neither. With " +
				"Traits.Varies masked it is in the reply alone. A prepared call crosses the connection each time, some " +
				"hundred times."},
		{"codec", true, byItself, bare(codecRan),
			"Functions of Traits.Codec allocate at least once per call in client and server, and those of no other " +
				"codec do; likewise Traits.ClientLibraries and Traits.ServerLibraries. Code that does not allocate is " +
				"not seen. Of objects below 16 bytes some are seen: a message that has no other does not tell. What a handler of " +
				"somebody's own allocates is left out."},
		{"repeats", true, byItself, func(s Subject) { failing(s, bare(repeats), watched(keptRequests)) },
			"Encoding and decoding are done anew for a user that was sent before, and by a Call as by CreateUser, also " +
				"after a hundred calls. A kept value is not seen if the codec allocates as much without it, as where a server " +
				"clears the value that it decodes into and uses it again. A value kept by a single Call is not seen if the " +
				"transport's library calls the codec."},
		{"validation", true, byItself, bare(ofUsersAlone(validation)),
			"The server validates each user once, with NewUserValidator; the client does not. No check sees other work " +
				"that does not allocate: compare the stack's time with a direct use of its library."},
		{"replies in another order", true, byItself, watched(otherOrder),
			"A Call decodes replies: the right one with two fields in another order is right too, and the codec " +
				"allocates as much for either. Needs JSON or protobuf that can be read."},
		{"one request", true, byItself, watched(oneRequest),
			"CreateUser and Call send the same request, but for what Traits.Varies says. With Traits.Leased both send the " +
				"same message on one stream. Needs HTTP."},
		{"protocol", false, byItself, watched(protocol),
			"The HTTP version is the declared one. Over TLS it is TLS 1.3, and the client verifies the certificate. " +
				"Masked bytes that are not HTTP are not read."},
		{"compression", true, byItself, watched(compression),
			"64 kB that compress well take 64 kB each way unless Traits.Compression says otherwise. Headers agree with " +
				"it, and with Traits.AsksGzip."},
		{"headers", true, byItself, headers,
			"Each call carries Config.Headers, with a traceparent of its own. Without Config.Headers it carries none " +
				"of them. With Traits.Traced each call carries the traceparent of its span."},
		{"late", false, byItself, late,
			fmt.Sprintf("After %d calls with one fixture, over TLS %d, a stack does what it did at first: codec, validation, "+
				"headers and waits are those of their checks, and nothing is kept. No TLS connection of any check resumes a "+
				"session. What begins later is not seen, nor what a single Call keeps, or a handler of somebody's own does.",
				LateCalls, LateCalls/4)},
		{"changed replies", true, inTurn, changedReplies,
			"A Call compares every field of the reply with what was asked, and does not ask twice. Needs bytes that " +
				"can be read."},
		{"header limit", true, waiting, headerLimit,
			"Headers of a quarter of MaxHeader pass, those of twice MaxHeader do not."},
		{"body limit", true, byItself, watched(ofUsersAlone(bodyLimit)),
			"A body a little smaller than MaxBody is read, and one a little larger is TooLarge. Needs bytes that can " +
				"be read."},
	}
}

// ofOutcomes are the checks of what callers get, and when.
func ofOutcomes() []Check {
	return []Check{
		{"hostile values", false, inTurn, bare(ofUsersAlone(hostileValues)),
			"Values on which encoders differ come back as they were sent, unless Traits.Lossy names them. Invalid " +
				"UTF-8 becomes what Traits.InvalidUTF8 says."},
		{"echo", false, inTurn, watched(ofUsersAlone(echo)),
			"Values on which encoders differ come back in the message of an Echoer too, and its Call compares the " +
				"reply. The client of one stack, joined to the server of another that has no echo, is skipped."},
		{"streams", false, byItself, streams,
			"The calls of a stream cross the wire in one request, in order, on the declared connections, and Close " +
				"leaves nothing behind."},
		{"ended streams", false, byItself, endedStreams,
			"A stream ends with its context, its connection or a user that is refused, with the error of a single " +
				"call, and leaves nothing behind."},
		{"changed stream replies", true, inTurn, watched(changedStreamReplies),
			"A stream's Call compares every field of the reply, and the stream stays open and in step."},
		{"outcomes", false, byItself, watched(ofUsersAlone(func(f *session) { f.outcomes(single()) })),
			"Valid, invalid and oversized users end with the same codes and violations on every stack. The server " +
				"refuses them, the client gets the answer, and the next call works. An invalid user costs no connection. " +
				"A body that is too large may cost one."},
		{"wait", true, waiting, waits,
			"A handler waits for ServerConfig.Wait before it answers: in a call, in an echo and on a stream, many side by " +
				"side, and not for a user who is refused. It counts each of them."},
		{"deadline", false, waiting, func(s Subject) { s.interruptedCalls(rpcbench.CodeDeadlineExceeded) },
			"A call whose deadline passes ends with it and says so, also while it waits for a connection that " +
				"another call has. The next call works."},
		{"cancel", false, inTurn, func(s Subject) { s.interruptedCalls(rpcbench.CodeCanceled) },
			"A call whose context is cancelled ends with it and says so, also while it waits for a connection that " +
				"another call has. The next call works."},
		{"unavailable", false, byItself, unavailable,
			"A server that can't be reached, or that breaks the connection, has the code Unavailable."},
		{"neighbours", false, byItself, neighbours,
			"Two fixtures of the stack answer their own clients, and the end of one leaves the other."},
		{"limits", false, waiting, limits,
			"The server, not its client, ends an idle connection after IdleTimeout, and one without a request after " +
				"HeaderTimeout. The suite does not check how long a body may take."},
		{"close", false, byItself, closed,
			"Close of the client, of the server or of both ends the connections, and calls after it fail. Close of " +
				"both ends every goroutine but those of Traits.Background."},
		{"patience", true, waiting, watched(patience),
			"A call that the server answers after half a second succeeds: the client has no shorter timeout of its own. " +
				"With -long that takes five seconds."},
	}
}

// Skip is the error of a check that does not apply to a stack. Its text is the reason.
type Skip string

func (s Skip) Error() string { return string(s) }

// failure is what a check panics with to end early. Run returns the error.
type failure struct{ error }

// must ends the check if err is not nil, and says what was done.
func must(err error, doing string, args ...any) {
	failIf(err != nil, "%s: %w", fmt.Sprintf(doing, args...), err)
}

// try returns v unless err ends the check.
func try[T any](v T, err error) T {
	failIf(err != nil, "%w", err)
	return v
}

// failIf ends the check if wrong is true.
func failIf(wrong bool, format string, args ...any) {
	if wrong {
		panic(failure{fmt.Errorf(format, args...)})
	}
}

func skipIf(why bool, reason string) {
	if why {
		panic(failure{Skip(reason)})
	}
}

// failing makes parts of a check, and ends it with the first failure. A part that is skipped hides no other's failure:
// the first part's reason is that of the check.
func failing(s Subject, parts ...func(Subject)) {
	var skipped error
	for i, part := range parts {
		err := ended(func() { part(s) })
		_, skips := errors.AsType[Skip](err)
		failIf(err != nil && !skips, "%w", err)
		if i == 0 {
			skipped = err
		}
	}
	failIf(skipped != nil, "%w", skipped)
}

// ended returns the error that fn, a check or part of one, ends with.
func ended(fn func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err = p.error
		default:
			panic(p)
		}
	}()
	fn()
	return nil
}

// errRedialled marks the error of a check that counted too many connections. Such a check runs twice: on a busy machine
// net/http drops a connection if the goroutine that writes to it has not run for 50 ms.
var errRedialled = errors.New(" (counted twice)")

// Run makes the check. Its error is a Skip, or says what is wrong with the stack.
func (c Check) Run(s Subject) error {
	if s.Stack.Protocol == "" || s.Stack.Server == nil || s.Stack.Dial == nil {
		return errors.New("a stack needs a Protocol, a Server and a Dial")
	}
	s, shaken := s.shaking()
	return within(s.limit(), func() error {
		err := ended(func() { c.run(s) })
		if errors.Is(err, errRedialled) {
			err = ended(func() { c.run(s) })
		}
		return cmp.Or(shaken(), err)
	})
}

// Together returns a function that makes a check of one of the subjects. Checks with a place beside others are made
// when the first of them is asked for, of all subjects, and once. Any other is made when it is asked for.
func Together(subjects ...Subject) (run func(Check, Subject) error) {
	type key struct {
		check string
		tls   bool
	}
	var errs sync.Map
	beside := sync.OnceFunc(func() {
		var group sync.WaitGroup
		defer group.Wait()
		var turns []func()
		for _, s := range subjects {
			for _, c := range Checks() {
				check := func() { errs.Store(key{c.Name, s.TLS}, c.Run(s)) }
				switch {
				case c.ClearOnly && s.TLS:
				case c.place == waiting:
					group.Go(check)
				case c.place == inTurn:
					turns = append(turns, check)
				}
			}
		}
		for _, check := range turns {
			check()
		}
	})
	return func(c Check, s Subject) error {
		if c.place == byItself {
			return c.Run(s)
		}
		beside()
		result, _ := errs.Load(key{c.Name, s.TLS})
		err, _ := result.(error)
		return err
	}
}

// within runs fn and returns its error. If fn does not end in time, its goroutine is left behind.
func within(limit time.Duration, fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		return fmt.Errorf("still running after %v: a call or Close does not return", limit)
	}
}

// Subject is the stack under test, in one mode.
type Subject struct {
	Stack rpcbench.Stack
	TLS   bool
	Limit time.Duration // for each check; 0 is a minute
	Wait  time.Duration // how long the check of patience holds a reply back
	bare  bool          // connections are not recorded
}

func (s Subject) limit() time.Duration { return cmp.Or(s.Limit, time.Minute) }

// patience is the time limit of what should happen at once.
func (s Subject) patience() time.Duration { return min(10*time.Second, s.limit()/4) }

// readable says whether the bytes on the wire can be read, and changed one by one.
func (s Subject) readable() bool { return !s.TLS && s.Stack.Traits.Compression == "" }

// masked says whether no byte of a request's user can be read.
func (s Subject) masked() bool { return s.Stack.Traits.Varies == rpcbench.VariesMasked }

// session is a fixture under check.
type session struct {
	*rpcbench.Fixture
	s     Subject
	api   api            // of the client
	users rpcbench.Users // the client, or nil of a method of one's own
	conns int            // as declared
	tap   tap.Tap        // records the client's connections, unless the session is bare
	gate  tap.Gate       // holds back what the server's connections receive
	dials atomic.Int64   // begun: net/http gives a dial up if the call gets another connection meanwhile

	requests, replies rpcbench.Messages // of a method of one's own
}

// start starts a fixture whose bytes are recorded, and can be changed or held back.
func (s Subject) start(config rpcbench.Config) (f *session, err error) {
	f = &session{s: s, conns: max(1, config.Conns)}
	config.TLS = s.TLS
	if !s.bare {
		config.WrapClient, config.WrapServer = f.tap.Wrap, f.gate.Wrap
	}
	dial := s.Stack.Dial
	s.Stack.Dial = func(config rpcbench.ClientConfig) (rpcbench.Client, error) {
		connect := config.DialContext
		config.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			f.dials.Add(1)
			return connect(ctx, network, addr)
		}
		return dial(config)
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.limit()/2)
	defer cancel()
	f.Fixture, err = rpcbench.Start(ctx, s.Stack, config)
	if err != nil {
		return f, likely(err)
	}
	f.api = s.apiOf(f.Client)
	if s.own() {
		f.requests, f.replies = f.Client.(rpcbench.MethodClient).Messages()
		return f, nil
	}
	f.users, err = rpcbench.As[rpcbench.Users](f.Fixture)
	return f, err
}

// likely adds to the error of a start what is likely to have caused it.
func likely(err error) error {
	switch {
	case errors.Is(err, net.ErrClosed): // this fixture has closed nothing yet
		return fmt.Errorf("%w: is something shared, such as a transport, with a client that was closed before?", err)
	case rpcbench.CodeOf(err) == rpcbench.CodeInternal && strings.Contains(err.Error(), "wrong reply"):
		return fmt.Errorf("%w: is a value shared, such as the one that replies are decoded into?", err)
	}
	return err
}

// with makes a check of a function that needs a fixture.
func (s Subject) with(config rpcbench.Config, check func(*session)) {
	f := try(s.start(config))
	defer f.Close()
	check(f)
}

// watched and bare make a check of a function that needs a fixture with one connection.
func watched(check func(*session)) func(Subject) {
	return func(s Subject) { s.with(rpcbench.Config{}, check) }
}
func bare(check func(*session)) func(Subject) {
	return func(s Subject) { s.bare = true; s.with(rpcbench.Config{}, check) }
}

// ofUsersAlone is a check of what only the create-user API has.
func ofUsersAlone(check func(*session)) func(*session) {
	return func(f *session) {
		skipIf(f.s.own(), "the stack serves no create-user")
		check(f)
	}
}

// bytes joins what all connections have carried so far. The caller must not change it.
func (f *session) bytes() (sent, received []byte) {
	all := f.tap.Conns()
	if len(all) == 1 {
		return all[0].Bytes()
	}
	for _, c := range all {
		s, r := c.Bytes()
		sent, received = append(sent, s...), append(received, r...)
	}
	return sent, received
}

// record makes call, and returns the bytes that the only connection sent and received meanwhile.
func (f *session) record(ctx context.Context, call rpcbench.Call) (sent, received []byte, err error) {
	sentBefore, receivedBefore := f.bytes()
	err = within(f.s.limit()/2, func() error { return call(ctx) })
	sent, received = f.bytes()
	return sent[len(sentBefore):], received[len(receivedBefore):], err
}

// messages returns the HTTP messages that the only connection carried. There are none over TLS or another protocol.
func (f *session) messages() (requests, replies []wire.Message) {
	if f.s.TLS || f.Stack.Traits.HTTP == "" {
		return nil, nil
	}
	requests, replies, err := wire.Read(f.bytes())
	must(err, "read the recorded bytes")
	return requests, replies
}

// call prepares call i.
func (f *session) call(i, payload int) rpcbench.Call { return try(f.api.prepare(i, payload)) }

// prepare and create are the two forms of a call of one user, where checks have users that no index has.
func (f *session) prepare(u rpcbench.User) rpcbench.Call { return try(f.users.PrepareUser(u)) }
func (f *session) create(u rpcbench.User) rpcbench.Call  { return createUser{f.users}.create(u) }

// single lists the two forms of a call without a stream.
func single() []string { return []string{"CreateUser", "Call"} }

const onStream = "stream's Call"

// form prepares call i in one of its forms, the last of which is on a stream that ctx bounds.
func (f *session) form(ctx context.Context, name string, i int) rpcbench.Call {
	switch name {
	case "CreateUser":
		return f.api.anew(i, 0)
	case "Call":
		return f.call(i, 0)
	}
	return f.streamed(ctx, rpcbench.SampleUser(i, 0))
}

// ofUser prepares a call of u in one of its forms.
func (f *session) ofUser(name string, u rpcbench.User) rpcbench.Call {
	switch name {
	case "CreateUser":
		return f.create(u)
	case "Call":
		return f.prepare(u)
	}
	return f.streamed(context.Background(), u)
}

// streamed prepares a call of u on a stream that ctx bounds. The call also checks how the stream behaves afterwards.
func (f *session) streamed(ctx context.Context, u rpcbench.User) rpcbench.Call {
	stream := f.open(ctx, rpcbench.SampleUser(0, 0), u)
	must(f.next(stream.calls[0]), "the first Call of a stream")
	return func(context.Context) error {
		err := stream.calls[1](context.Background())
		return cmp.Or(ended(func() {
			if err != nil {
				f.staysEnded(stream, rpcbench.CodeOf(err))
			} else {
				failIf(stream.Close() != nil, "Close fails after a Call that succeeded")
			}
		}), err)
	}
}

// both makes call i anew, and as a Call.
func (f *session) both(i, payload int) error {
	err := f.api.anew(i, payload)(context.Background())
	return errors.Join(err, f.call(i, payload)(context.Background()))
}

// round prepares each call of a loop.
func (f *session) round(payload int) (calls []rpcbench.Call) {
	for i := range corpus.Round {
		calls = append(calls, f.call(i, payload))
	}
	return calls
}

// goRound makes all calls in turn, several times.
func goRound(calls []rpcbench.Call, times int) error {
	for _, call := range slices.Repeat(calls, times) {
		if err := call(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

// together lets all callers make their calls concurrently, each its own one after the other.
func together(callers ...[]rpcbench.Call) error {
	var group sync.WaitGroup
	errs := make([]error, len(callers))
	for i, calls := range callers {
		group.Go(func() { errs[i] = goRound(calls, 1) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// callAtOnce lets callers make so many calls each, with an index of its own per caller. A reply to the wrong caller is
// then an error.
func (f *session) callAtOnce(count, times, payload int) {
	var callers [][]rpcbench.Call
	for i := range count {
		callers = append(callers, slices.Repeat([]rpcbench.Call{f.call(i, payload)}, times))
	}
	must(together(callers...), "%d callers", count)
}

// connected checks that as many connections as declared were dialled and accepted. If the stack multiplexes, each must
// have sent at least so many bytes. Of a stack that reconnects, the client must have dialled those that were accepted.
func (f *session) connected(sent int) {
	dialled := f.tap.Conns()
	if f.Stack.Traits.Reconnects {
		failIf(f.Accepted() == 0 || f.Accepted() > f.dials.Load(),
			"%d connections are accepted, %d dialled with ClientConfig.DialContext", f.Accepted(), f.dials.Load())
		return
	}
	failIf(f.Accepted() != int64(f.conns) || len(dialled) != f.conns,
		"%d connections are declared, %d accepted, %d dialled%w", f.conns, f.Accepted(), len(dialled), errRedialled)
	for i, c := range dialled {
		got, _ := c.Bytes()
		failIf(f.Stack.Traits.Multiplexed && len(got) < sent,
			"connection %d of %d sent only %d bytes: PrepareUser and OpenStream must take the connections in turn",
			i+1, f.conns, len(got))
	}
}

// hold makes call i and returns when the gate holds its request, its context is done, or it ended without a request.
func (f *session) hold(ctx context.Context, i int, call rpcbench.Call) (result <-chan error) {
	var mark []byte // empty matches any bytes, where the request can't be read
	if f.s.readable() && !f.s.masked() {
		mark = f.api.mark(i)
	}
	held := f.gate.Hold(mark)
	ended := make(chan error, 1)
	go func() { ended <- call(ctx) }()
	select {
	case <-held:
	case <-ctx.Done():
	case err := <-ended:
		ended <- err
	}
	return ended
}

// wantError ends the check unless err is an *rpcbench.Error of the code.
func wantError(err error, code rpcbench.Code, doing string, args ...any) *rpcbench.Error {
	e, ok := errors.AsType[*rpcbench.Error](err)
	failIf(!ok || e.Code != code, "%s: want an *rpcbench.Error with the code %q, got: %v",
		fmt.Sprintf(doing, args...), code, err)
	return e
}
