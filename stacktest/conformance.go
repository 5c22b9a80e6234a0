package stacktest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"regexp"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/hostile"
	"github.com/rpcbench/rpcbench/internal/netwrap"
	"github.com/rpcbench/rpcbench/internal/users"
)

// Conformance runs the suite over stack, in clear and with TLS. Each check is a subtest, bounded in time, whose error says which
// property is missing. A check that does not apply is skipped with the reason. With -short two things are left out: TLS for a stack
// that compresses, since gzip is slow under the race detector, and the check of patience, which takes five seconds. Conformance must
// not run in parallel with anything: some checks read the process's allocation profile, one its goroutines.
//
// What each check proves, and what it does not:
//
//   - declared: Name, Protocol and Traits have allowed values.
//   - connections: the server accepts as many connections as Conns says, all opened by DialContext, on the loopback interface, with
//     one caller and many, small payloads and large. A multiplexed stack uses each of them.
//   - traffic: the name of each call's user is in the bytes of the request and of the reply; over TLS in neither.
//   - codec: functions of Traits.Codec allocate at least once per call in client and server, and those of no other codec do;
//     likewise Traits.Client and Traits.Server. Code that does not allocate is not seen.
//   - repeats: encoding and decoding are done anew for a user that was sent before, and by a Call as by CreateUser. A kept value is
//     not seen if the codec allocates as much without it, nor one of a single Call if the transport's library calls the codec.
//   - validation: the server validates each user once, with NewValidator; the client does not. Other work that does not allocate is
//     not seen by any check: compare the stack's time with a direct use of its library.
//   - changed replies: a Call compares every field of the reply with what was asked, and does not ask twice. Needs bytes
//     that can be read.
//   - one request: CreateUser and Call send the same request. Needs HTTP.
//   - protocol: the HTTP version is the declared one. Over TLS it is TLS 1.3, and the client verifies the certificate.
//   - compression: 64 kB that compress well take 64 kB each way unless Traits.Compression says otherwise, and headers agree.
//   - headers: each call carries Config.Headers, with a traceparent of its own, and no such header without them.
//   - header limit: headers of a quarter of MaxHeader pass, those of twice MaxHeader do not.
//   - hostile values: what makes encoders differ comes back as it was sent, unless Traits.Lossy names it; invalid UTF-8 becomes
//     what Traits.InvalidUTF8 says.
//   - echo: likewise for the message of an Echoer, and its Call compares the reply.
//   - streams, ended streams, changed stream replies: likewise for a Streamer, whose streams use the declared connections,
//     end with their context and leave nothing behind.
//   - outcomes: valid, invalid and oversized users end with the same codes and violations on every stack. The server refuses them,
//     the next call works, and an invalid user costs no connection.
//   - deadline, cancel: a call ends with its context, says so, and the next call works.
//   - unavailable: a server that can't be reached, or that breaks the connection, has the code Unavailable.
//   - neighbours: two fixtures of the stack answer their own clients, and the end of one leaves the other.
//   - limits: the server ends an idle connection after IdleTimeout, and one without a request after HeaderTimeout. A body that comes
//     slowly has no limit in time.
//   - close: Close ends every goroutine but those of Traits.Background, and a call after it fails.
//   - patience: a call that the server answers after five seconds succeeds: the client has no shorter timeout of its own.
func Conformance(t *testing.T, stack rpcbench.Stack) {
	for _, mode := range []struct {
		name string
		tls  bool
	}{{"clear", false}, {"tls", true}} {
		t.Run(mode.name, func(t *testing.T) {
			if mode.tls && testing.Short() && stack.Traits.Compression != "" {
				t.Skip("takes long under the race detector")
			}
			s := subject{stack: stack, tls: mode.tls, limit: checkLimit}
			all := checks()
			if !mode.tls && !testing.Short() {
				wait := holdCall(s, longestHidden) // meanwhile the other checks run
				all = append(all, check{"patience", true, func(subject) error { return wait() }})
				defer func() { _ = wait() }() // also if -run leaves the check out
			}
			for _, c := range all {
				if mode.tls && c.clearOnly {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					err := c.verify(s)
					if why, ok := errors.AsType[skipped](err); ok {
						t.Skip(string(why))
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}

const (
	checkLimit    = time.Minute      // far more than any check takes; one that passes it has found a call that never returns
	patience      = 10 * time.Second // for what should happen at once
	longestHidden = 5 * time.Second  // a client's own timeout that is looked for
)

// skipped is why a check does not apply to a stack.
type skipped string

func (s skipped) Error() string { return string(s) }

// A check proves one property of a stack. clearOnly: it needs to read or change what is on the wire.
type check struct {
	name      string
	clearOnly bool
	run       func(subject) error
}

func checks() []check {
	return []check{
		{"declared", true, declared},
		{"connections", false, connections},
		{"traffic", false, traffic},
		{"codec", true, codecRan},
		{"repeats", true, repeats},
		{"validation", true, validation},
		{"changed replies", true, changedReplies},
		{"one request", true, oneRequest},
		{"protocol", false, protocol},
		{"compression", true, compression},
		{"headers", true, headers},
		{"header limit", true, headerLimit},
		{"hostile values", false, hostileValues},
		{"echo", false, echo},
		{"streams", false, streams},
		{"ended streams", false, endedStreams},
		{"changed stream replies", true, changedStreamReplies},
		{"outcomes", false, outcomes},
		{"deadline", false, deadline},
		{"cancel", false, cancelled},
		{"unavailable", false, unavailable},
		{"neighbours", false, neighbours},
		{"limits", false, limits},
		{"close", false, closed},
	}
}

// verify bounds a check in time: a stack whose call never returns fails it, though its goroutines stay behind.
func (c check) verify(s subject) error {
	done := make(chan error, 1)
	go func() {
		err := c.run(s)
		if errors.Is(err, errRedialled) {
			err = c.run(s)
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(s.limit):
		return fmt.Errorf("still running after %v: some call or Close never returns", s.limit)
	}
}

// errRedialled ends the error of a check that counted more connections than declared. Such a check runs twice: on a busy
// machine net/http may give up a connection, see reportReconnects.
var errRedialled = errors.New(" (counted twice)")

// subject is the stack under test, in one mode.
type subject struct {
	stack rpcbench.Stack
	tls   bool
	limit time.Duration
}

// patience is for what should happen at once.
func (s subject) patience() time.Duration { return min(patience, s.limit/4) }

func (s subject) start(config rpcbench.Config) (*rpcbench.Fixture, error) {
	config.TLS = s.tls
	ctx, cancel := context.WithTimeout(context.Background(), s.limit/2)
	defer cancel()
	return rpcbench.Start(ctx, s.stack, config)
}

// tapped starts a fixture of one connection whose bytes are recorded.
func (s subject) tapped() (*rpcbench.Fixture, *netwrap.Tap, error) {
	tap := new(netwrap.Tap)
	f, err := s.start(rpcbench.Config{WrapClient: tap.Wrap})
	return f, tap, err
}

// prepare makes one Call for each of the users that loops go round.
func prepare(f *rpcbench.Fixture, avatar int) ([]rpcbench.Call, error) {
	calls := make([]rpcbench.Call, users.Round)
	for i := range calls {
		var err error
		if calls[i], err = f.Client.Prepare(users.Sample(i, avatar)); err != nil {
			return nil, fmt.Errorf("prepare: %w", err)
		}
	}
	return calls, nil
}

func prepareOne(f *rpcbench.Fixture, u rpcbench.User) (rpcbench.Call, error) {
	call, err := f.Client.Prepare(u)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	return call, nil
}

// within runs fn, and closes f under it when it has not returned in time.
func within(limit time.Duration, f *rpcbench.Fixture, fn func() error) error {
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

var errStuck = errors.New("the call does not return")

// wantCode says whether err is an *rpcbench.Error of the code.
func wantCode(what string, err error, code rpcbench.Code) error {
	e, ok := errors.AsType[*rpcbench.Error](err)
	switch {
	case err == nil:
		return fmt.Errorf("%s: the call succeeded, it must fail as %q", what, code)
	case !ok:
		return fmt.Errorf("%s: the error is no *rpcbench.Error: %w", what, err)
	case e.Code != code:
		return fmt.Errorf("%s: the code is %q, it must be %q: %w", what, e.Code, code, err)
	}
	return nil
}

// both makes a call in its two forms, which must agree.
func both(ctx context.Context, f *rpcbench.Fixture, u rpcbench.User) (rpcbench.Response, error, error) {
	reply, err := f.Client.CreateUser(ctx, u)
	call, prepareErr := f.Client.Prepare(u)
	if prepareErr != nil {
		return reply, err, fmt.Errorf("prepare: %w", prepareErr)
	}
	return reply, err, call(ctx)
}

// declared: what a stack says about itself can be read and compared.
func declared(s subject) error {
	t := s.stack.Traits
	switch {
	case !regexp.MustCompile(`^[a-z0-9]+(\.[a-z0-9]+)*$`).MatchString(s.stack.Name):
		return fmt.Errorf("the name %q is not made of [a-z0-9.]: benchmark tools could not read its rows", s.stack.Name)
	case s.stack.Protocol == "" || s.stack.Server == nil || s.stack.Dial == nil:
		return errors.New("a stack has a Protocol, a Server and a Dial")
	case t.Codec == "":
		return errors.New("Traits.Codec must name the import path of the library that encodes and decodes")
	case t.HTTP != "" && t.HTTP != "1.1" && t.HTTP != "2":
		return fmt.Errorf(`Traits.HTTP is %q, it must be "1.1", "2" or ""`, t.HTTP)
	case t.Compression != "" && t.Compression != "gzip" && t.Compression != rpcbench.GzipReplies:
		return fmt.Errorf(`Traits.Compression is %q, it must be "", "gzip" or %q`, t.Compression, rpcbench.GzipReplies)
	case t.InvalidUTF8 != rpcbench.Rejected && t.InvalidUTF8 != rpcbench.Replaced && t.InvalidUTF8 != rpcbench.Kept:
		return fmt.Errorf("Traits.InvalidUTF8 is %q, it must be rejected, replaced or kept", t.InvalidUTF8)
	}
	known := map[string]bool{}
	for _, c := range hostile.Users() {
		known[c.Name] = true
	}
	for _, c := range hostile.Flexes() {
		known[c.Name] = true
	}
	for _, name := range t.Lossy {
		if !known[name] {
			return fmt.Errorf("Traits.Lossy names %q, which is no case of the suite", name)
		}
	}
	return nil
}

// neighbours: two fixtures of one stack at a time, each answering its own client.
func neighbours(s subject) error {
	a, err := s.start(rpcbench.Config{})
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := s.start(rpcbench.Config{})
	if err != nil {
		return fmt.Errorf("a second fixture beside the first: %w", err)
	}
	defer b.Close()
	for i := range users.Round {
		for _, f := range []*rpcbench.Fixture{a, b} {
			if _, err, callErr := both(context.Background(), f, users.Sample(i, 0)); err != nil || callErr != nil {
				return fmt.Errorf("with a second fixture beside it: %w", errors.Join(err, callErr))
			}
		}
	}
	if err := a.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if _, err, callErr := both(context.Background(), b, users.Sample(1, 0)); err != nil || callErr != nil {
		return fmt.Errorf("closing one fixture broke the other: %w", errors.Join(err, callErr))
	}
	if a.Accepted() != 1 || b.Accepted() != 1 {
		return fmt.Errorf("two fixtures of one connection each accepted %d and %d%w", a.Accepted(), b.Accepted(), errRedialled)
	}
	return nil
}

// closed: Close ends everything that Start began, and a call after it fails.
func closed(s subject) error {
	before := goleak.IgnoreCurrent()
	f, err := s.start(rpcbench.Config{Conns: 2})
	if err != nil {
		return err
	}
	call, err := prepareOne(f, users.Sample(0, 0))
	if err != nil {
		return err
	}
	if err := call(context.Background()); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.limit/2)
	defer cancel()
	if err := call(ctx); err == nil {
		return errors.New("a call succeeds after the fixture was closed")
	}
	if err := leftBehind(append(background(s.stack), before)...); err != nil {
		return fmt.Errorf("goroutines left after Close, which Traits.Background does not name: %w", err)
	}
	return nil
}

// unavailable: a server that can't be reached, or that breaks the connection under a call, has one code.
func unavailable(s subject) error {
	if s.readable() { // else what arrives can't be told from a straggler of the call before
		if err := dropped(s); err != nil {
			return err
		}
	}
	gone, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := gone.Close(); err != nil {
		return err
	}
	config := rpcbench.ClientConfig{Addr: gone.Addr().String(), DialContext: new(net.Dialer).DialContext, Conns: 1}
	if s.tls {
		config.TLS = new(tls.Config)
	}
	c, err := s.stack.Dial(config)
	if err == nil { // a client may as well refuse to be made
		defer c.Close()
		_, err = c.CreateUser(context.Background(), users.Sample(0, 0))
	}
	return wantCode("nobody listens", err, rpcbench.Unavailable)
}

func dropped(s subject) error {
	gate := new(netwrap.Gate)
	f, err := s.start(rpcbench.Config{WrapServer: gate.Wrap})
	if err != nil {
		return err
	}
	defer f.Close()
	u := users.Sample(0, 0)
	call, err := prepareOne(f, u)
	if err != nil {
		return err
	}
	result := underway(context.Background(), gate, []byte(u.Name), func() error { return call(context.Background()) })
	gate.Drop()
	return wantCode("the server closed the connection under the call", <-result, rpcbench.Unavailable)
}

// underway makes call and returns when the gate holds its request, or when there is nothing to wait for: a deadline may pass
// before a request arrives, and a call may end without one.
func underway(ctx context.Context, gate *netwrap.Gate, marker []byte, call func() error) (result <-chan error) {
	held := gate.Hold(marker)
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

// deadline: a call whose deadline passes while the server holds it says so, and the next call works.
func deadline(s subject) error {
	return interrupted(s, rpcbench.DeadlineExceeded, context.DeadlineExceeded, func() (context.Context, func(), context.CancelFunc) {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		return ctx, func() {}, cancel
	})
}

// cancelled: likewise for a call whose context is cancelled.
func cancelled(s subject) error {
	return interrupted(s, rpcbench.Canceled, context.Canceled, func() (context.Context, func(), context.CancelFunc) {
		ctx, cancel := context.WithCancel(context.Background())
		return ctx, cancel, cancel
	})
}

// interrupted holds a request at the server and ends its context, by itself or by interrupt.
func interrupted(s subject, code rpcbench.Code, is error, begin func() (ctx context.Context, interrupt func(), release context.CancelFunc)) error {
	for _, form := range []string{"Call", "CreateUser"} {
		gate := new(netwrap.Gate)
		f, err := s.start(rpcbench.Config{WrapServer: gate.Wrap})
		if err != nil {
			return err
		}
		defer f.Close()
		u := users.Sample(0, 0)
		call, err := prepareOne(f, u)
		if err != nil {
			return err
		}
		if form == "CreateUser" {
			call = func(ctx context.Context) error {
				_, err := f.Client.CreateUser(ctx, u)
				return err
			}
		}
		ctx, interrupt, release := begin()
		defer release()
		result := underway(ctx, gate, s.marker(u), func() error { return call(ctx) })
		interrupt()
		err = within(s.patience(), f, func() error { return <-result })
		if errors.Is(err, errStuck) {
			return fmt.Errorf("%s ignores its context: it was %s and the call did not return within %v", form, code, s.patience())
		}
		if err := wantCode(form+" interrupted while the server holds the request", err, code); err != nil {
			return err
		}
		if !errors.Is(err, is) {
			return fmt.Errorf("%s: errors.Is(err, %v) does not hold: %w", form, is, err)
		}
		gate.Release()
		if err := within(s.patience(), f, func() error { return call(context.Background()) }); err != nil {
			return fmt.Errorf("the call after one that was %s: %w", code, err)
		}
	}
	return nil
}
