// Package conform is the conformance suite: a table of checks, each of which proves one property of a stack. A check takes nobody's
// word: it reads the bytes on the wire, the allocation profile and the goroutines. Package stacktest runs the table as subtests.
package conform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/corpus"
	"github.com/rpcbench/rpcbench/internal/relay"
	"github.com/rpcbench/rpcbench/internal/wire"
)

// Check proves one property of a stack.
type Check struct {
	Name      string
	ClearOnly bool   // not over TLS: the check reads or changes what is on the wire, or TLS makes no difference to it
	Proves    string // what a stack that passes does, and what the check does not see
	run       func(Subject)
}

// Checks is the suite in its order. Patience is one check more.
func Checks() []Check {
	return []Check{
		{"declared", true, "Name, Protocol and Traits have allowed values.", declared},
		{"connections", false, "The server accepts as many connections as Conns says, all opened by DialContext, on the loopback interface, " +
			"with one caller and many, small payloads and large. A multiplexed stack uses each of them.", connections},
		{"traffic", false, "The name of each call's user is in the bytes of the request and of the reply; over TLS in neither.", watched(traffic)},
		{"codec", true, "Functions of Traits.Codec allocate at least once per call in client and server, and those of no other codec do; " +
			"likewise Traits.Client and Traits.Server. Code that does not allocate is not seen.", bare(codecRan)},
		{"repeats", true, "Encoding and decoding are done anew for a user that was sent before, and by a Call as by CreateUser. " +
			"A kept value is not seen if the codec allocates as much without it, nor one of a single Call if the transport's library calls the codec.", bare(repeats)},
		{"validation", true, "The server validates each user once, with NewValidator; the client does not. " +
			"Other work that does not allocate is not seen by any check: compare the stack's time with a direct use of its library.", bare(validation)},
		{"changed replies", true, "A Call compares every field of the reply with what was asked, and does not ask twice. Needs bytes that can be read.", changedReplies},
		{"one request", true, "CreateUser and Call send the same request. Needs HTTP.", watched(oneRequest)},
		{"protocol", false, "The HTTP version is the declared one. Over TLS it is TLS 1.3, and the client verifies the certificate.", watched(protocol)},
		{"compression", true, "64 kB that compress well take 64 kB each way unless Traits.Compression says otherwise, and headers agree.", watched(compression)},
		{"headers", true, "Each call carries Config.Headers, with a traceparent of its own, and no such header without them.", headers},
		{"header limit", true, "Headers of a quarter of MaxHeader pass, those of twice MaxHeader do not.", headerLimit},
		{"hostile values", false, "What makes encoders differ comes back as it was sent, unless Traits.Lossy names it; " +
			"invalid UTF-8 becomes what Traits.InvalidUTF8 says.", bare(hostileValues)},
		{"echo", false, "What makes encoders differ comes back in the message of an Echoer too, and its Call compares the reply.", watched(echo)},
		{"streams", false, "The calls of a stream cross the wire in one request, in order, on the declared connections, and Close leaves nothing behind.", streams},
		{"ended streams", false, "A stream ends with its context, its connection or a user that is refused, with the error of a single call, " +
			"and leaves nothing behind.", endedStreams},
		{"changed stream replies", true, "A stream's Call compares every field of the reply, and the stream stays open and in step.", watched(changedStreamReplies)},
		{"outcomes", false, "Valid, invalid and oversized users end with the same codes and violations on every stack. " +
			"The server refuses them, the next call works, and an invalid user costs no connection.", watched(outcomes)},
		{"deadline", false, "A call whose deadline passes ends with it and says so, and the next call works.", interrupted(rpcbench.DeadlineExceeded)},
		{"cancel", false, "A call whose context is cancelled ends with it and says so, and the next call works.", interrupted(rpcbench.Canceled)},
		{"unavailable", false, "A server that can't be reached, or that breaks the connection, has the code Unavailable.", unavailable},
		{"neighbours", false, "Two fixtures of the stack answer their own clients, and the end of one leaves the other.", neighbours},
		{"limits", false, "The server ends an idle connection after IdleTimeout, and one without a request after HeaderTimeout. " +
			"A body that comes slowly has no limit in time.", limits},
		{"close", false, "Close ends every goroutine but those of Traits.Background, and a call after it fails.", closed},
	}
}

// Skip is the error of a check that does not apply to a stack: the reason.
type Skip string

func (s Skip) Error() string { return string(s) }

// failure is what a check panics with to end early. Run returns the error.
type failure struct{ error }

// must ends the check if err is not nil, and says what was done.
func must(err error, doing ...any) {
	if err != nil && len(doing) > 0 {
		err = fmt.Errorf("%s: %w", fmt.Sprintf(doing[0].(string), doing[1:]...), err)
	}
	if err != nil {
		panic(failure{err})
	}
}

// try returns v unless err ends the check.
func try[T any](v T, err error) T {
	must(err)
	return v
}

// failIf ends the check if what must not be is so.
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

// errRedialled ends the error of a check that counted too many connections. It runs twice: on a busy machine net/http gives a
// connection up when the goroutine that writes to it has not run for 50 ms.
var errRedialled = errors.New(" (counted twice)")

// Run returns nil, a Skip, or what is wrong with the stack. It is bounded in time: a call that never returns leaves goroutines behind.
func (c Check) Run(s Subject) error {
	done := make(chan error, 1)
	go func() {
		err := ended(func() { c.run(s) })
		if errors.Is(err, errRedialled) {
			err = ended(func() { c.run(s) })
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(s.limit()):
		return fmt.Errorf("still running after %v: some call or Close never returns", s.limit())
	}
}

// Subject is the stack under test, in one mode.
type Subject struct {
	Stack rpcbench.Stack
	TLS   bool
	Limit time.Duration // of a check; 0 is a minute
}

func (s Subject) limit() time.Duration { return cmp.Or(s.Limit, time.Minute) }

// patience is for what should happen at once.
func (s Subject) patience() time.Duration { return min(10*time.Second, s.limit()/4) }

// readable says whether the bytes on the wire can be read, and changed one by one.
func (s Subject) readable() bool { return !s.TLS && s.Stack.Traits.Compression == "" }

// session is a fixture under check. Its tap and its gate are nil unless it is watched.
type session struct {
	*rpcbench.Fixture
	s     Subject
	conns int         // as declared
	tap   *relay.Tap  // on the client's connections
	gate  *relay.Gate // on the server's
}

func (s Subject) start(config rpcbench.Config) (*session, error) {
	config.TLS = s.TLS
	ctx, cancel := context.WithTimeout(context.Background(), s.limit()/2)
	defer cancel()
	f, err := rpcbench.Start(ctx, s.Stack, config)
	return &session{Fixture: f, s: s, conns: max(1, config.Conns)}, err
}

// watch starts a fixture whose bytes are recorded and can be changed or held back.
func (s Subject) watch(config rpcbench.Config) (*session, error) {
	tap, gate := new(relay.Tap), new(relay.Gate)
	config.WrapClient, config.WrapServer = tap.Wrap, gate.Wrap
	f, err := s.start(config)
	f.tap, f.gate = tap, gate
	return f, err
}

// watched and bare make a check of one that has a fixture with one connection.
func watched(check func(*session)) func(Subject) {
	return func(s Subject) { with(s.watch, rpcbench.Config{}, check) }
}
func bare(check func(*session)) func(Subject) {
	return func(s Subject) { with(s.start, rpcbench.Config{}, check) }
}

func with(start func(rpcbench.Config) (*session, error), config rpcbench.Config, check func(*session)) {
	f := try(start(config))
	defer f.Close()
	check(f)
}

// bytes joins what all connections have carried so far.
func (f *session) bytes() (sent, received []byte) {
	for _, c := range f.tap.Conns() {
		s, r := c.Bytes()
		sent, received = append(sent, s...), append(received, r...)
	}
	return sent, received
}

// record makes call, and returns what it sent and received on the one connection.
func (f *session) record(ctx context.Context, call rpcbench.Call) (sent, received []byte, err error) {
	sentBefore, receivedBefore := f.bytes()
	err = f.within(f.s.limit()/2, func() error { return call(ctx) })
	sent, received = f.bytes()
	return sent[len(sentBefore):], received[len(receivedBefore):], err
}

var errStuck = errors.New("the call does not return")

// within runs fn, and closes the fixture under it when fn does not return in time.
func (f *session) within(limit time.Duration, fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		_ = f.Close()
		return errStuck
	}
}

// messages reads what the one connection carried; nothing with TLS, nor of an unknown protocol.
func (f *session) messages() (requests, replies []wire.Message) {
	if f.s.TLS || f.Stack.Traits.HTTP == "" {
		return nil, nil
	}
	requests, replies, err := wire.Read(f.bytes())
	must(err)
	return requests, replies
}

// form is one of the two ways to make a call.
type form struct {
	name string
	call rpcbench.Call
}

func (f *session) forms(u rpcbench.User) []form {
	return []form{{"CreateUser", f.create(u)}, {"Call", f.prepare(u)}}
}

// round prepares a call for each of the users that loops go round, with a payload of avatar bytes.
func (f *session) round(avatar int) (calls []rpcbench.Call) {
	for i := range corpus.Round {
		calls = append(calls, f.prepare(corpus.Sample(i, avatar)))
	}
	return calls
}

func (f *session) prepare(u rpcbench.User) rpcbench.Call { return try(f.Client.Prepare(u)) }

func (f *session) create(u rpcbench.User) rpcbench.Call {
	return func(ctx context.Context) error {
		reply, err := f.Client.CreateUser(ctx, u)
		if err != nil {
			return err
		}
		return rpcbench.Check(&u, &reply)
	}
}

// both makes a call in its two forms, which must agree.
func (f *session) both(u rpcbench.User) (rpcbench.Response, error) {
	reply, err := f.Client.CreateUser(context.Background(), u)
	return reply, errors.Join(err, f.prepare(u)(context.Background()))
}

// together makes the calls of each caller one after the other, all callers at a time.
func together(callers ...[]rpcbench.Call) error {
	var group sync.WaitGroup
	errs := make([]error, len(callers))
	for i, calls := range callers {
		group.Go(func() { errs[i] = goRound(calls, 1)() })
	}
	group.Wait()
	return errors.Join(errs...)
}

// callAtOnce has so many callers, each with n calls of a user of its own, so that a reply given to the wrong caller shows.
func (f *session) callAtOnce(count, n, avatar int) {
	callers := make([][]rpcbench.Call, count)
	for i := range callers {
		callers[i] = slices.Repeat([]rpcbench.Call{f.prepare(corpus.Sample(i, avatar))}, n)
	}
	must(together(callers...), "%d callers", count)
}

// connected: as many connections as declared were dialled and accepted, and if the stack multiplexes, each sent at least so many bytes.
func (f *session) connected(sent int) {
	dialled := f.conns
	if f.tap != nil {
		dialled = len(f.tap.Conns())
	}
	failIf(f.Accepted() != int64(f.conns) || dialled != f.conns,
		"%d connections are declared, %d were accepted, %d dialled%w", f.conns, f.Accepted(), dialled, errRedialled)
	if f.tap == nil || !f.Stack.Traits.Multiplexed {
		return
	}
	for i, c := range f.tap.Conns() {
		got, _ := c.Bytes()
		failIf(len(got) < sent, "connection %d of %d sent only %d bytes: Prepare and OpenStream must take the connections in turn",
			i+1, f.conns, len(got))
	}
}

// hold makes call and returns when the gate holds its request, its context is done, or it ended without a request.
func (f *session) hold(ctx context.Context, u rpcbench.User, call func() error) (result <-chan error) {
	var marker []byte // any bytes, where the name can't be read
	if f.s.readable() {
		marker = []byte(u.Name)
	}
	held := f.gate.Hold(marker)
	ended := make(chan error, 1)
	go func() { ended <- call() }()
	select {
	case <-held:
	case <-ctx.Done():
	case err := <-ended:
		ended <- err
	}
	return ended
}

// wantError says whether err is an *rpcbench.Error of the code.
func wantError(err error, code rpcbench.Code) error {
	e, ok := errors.AsType[*rpcbench.Error](err)
	switch {
	case err == nil:
		return fmt.Errorf("the call succeeded, it must fail as %q", code)
	case !ok:
		return fmt.Errorf("the error is no *rpcbench.Error: %w", err)
	case e.Code != code:
		return fmt.Errorf("the code is %q, it must be %q: %w", e.Code, code, err)
	}
	return nil
}

// refusedAs says whether err has the code and these violations.
func refusedAs(err error, code rpcbench.Code, broken []rpcbench.Violation) error {
	if e, ok := errors.AsType[*rpcbench.Error](err); ok && e.Code == code && !reflect.DeepEqual(e.Violations, broken) {
		return fmt.Errorf("the violations are %v, they must be %v", e.Violations, broken)
	}
	return wantError(err, code)
}
